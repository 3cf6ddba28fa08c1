// SPDX-License-Identifier: Apache-2.0
// JSON as text: parsing with line numbers, dumping, and finding the line of a field after the parser has dropped positions.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "core/json_reader.h"

namespace forge {
namespace {

constexpr int kMaxNesting = 200;  // ours need 8; more is an attack on the stack

int line_at(const std::string& text, std::size_t at) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(at, text.size())), '\n'));
}

// The tokens of a well-formed text, one after the other.
class Scanner {
 public:
  explicit Scanner(const std::string& text) : m_text(text) {}

 protected:
  void space() {
    while (m_at < m_text.size() && std::isspace(static_cast<unsigned char>(m_text[m_at]))) m_at++;
  }
  char peek() { return space(), m_at < m_text.size() ? m_text[m_at] : '\0'; }

  std::string_view string() {
    const std::size_t start = ++m_at;
    while (m_at < m_text.size() && m_text[m_at] != '"') m_at += m_text[m_at] == '\\' ? 2 : 1;
    const std::size_t end = std::min(m_at++, m_text.size());
    return std::string_view(m_text).substr(start, end - start);
  }
  void word() {
    while (m_at < m_text.size() && !std::strchr(",]} \t\r\n", m_text[m_at])) m_at++;
  }

  const std::string& m_text;
  std::size_t m_at = 0;
};

// A key that an object has twice: the parser keeps one of them and says nothing. Of a text that is parsed already.
class DuplicateFinder : Scanner {
 public:
  using Scanner::Scanner;
  struct Found {
    std::string key;
    std::size_t at = 0;
  };
  std::optional<Found> run() {
    value();
    return m_found;
  }

 private:
  void value() {
    const char c = peek();
    if (c == '"') {
      string();
    } else if (c == '{' || c == '[') {
      std::set<std::string_view> keys;
      m_at++;
      while (!m_found && peek() != '}' && peek() != ']' && m_at < m_text.size()) {
        if (c == '{') {
          const std::size_t start = m_at;
          const std::string_view key = string();
          if (!keys.insert(key).second) m_found = Found{std::string(key), start};
          if (peek() == ':') m_at++;
        }
        value();
        if (peek() == ',') m_at++;
      }
      m_at++;
    } else {
      word();
    }
  }

  std::optional<Found> m_found;
};

// Walks a well-formed text and remembers where the deepest part of `field` begins.
class Locator : Scanner {
 public:
  Locator(const std::string& text, const std::string& field) : Scanner(text), m_field(field) {}
  std::size_t run() {
    value("", 0);
    return m_best;
  }

 private:
  void reached(const std::string& path, std::size_t at) {
    const bool hit = m_field.compare(0, path.size(), path) == 0 &&
                     (m_field.size() == path.size() || m_field[path.size()] == '.' || m_field[path.size()] == '[');
    if (hit && path.size() >= m_length) m_best = at, m_length = path.size();
  }

  void value(const std::string& path, int depth) {
    const char c = peek();
    if (depth > kMaxNesting) {
      m_at = m_text.size();
    } else if (c == '{') {
      m_at++;
      while (peek() == '"') {
        const std::size_t start = m_at;
        const std::string key(string());
        const std::string child = path.empty() ? key : path + "." + key;
        reached(child, start);
        if (peek() == ':') m_at++;
        value(child, depth + 1);
        if (peek() != ',') break;
        m_at++;
      }
      m_at++;
    } else if (c == '[') {
      m_at++;
      for (int i = 0; peek() != ']' && m_at < m_text.size(); i++) {
        const std::string child = fmt::format("{}[{}]", path, i);
        reached(child, m_at);
        value(child, depth + 1);
        if (peek() == ',') m_at++;
      }
      m_at++;
    } else if (c == '"') {
      string();
    } else {
      word();
    }
  }

  const std::string& m_field;
  std::size_t m_best = 0, m_length = 0;
};

int nesting(const std::string& text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        i++;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      depth--;
    }
  }
  return deepest;
}

}  // namespace

Result<Json> parse_json(const std::string& text, const std::string& file) {
  const auto bad = [&](std::string message, std::size_t at) {
    return fail(
        Error{.code = Code::bad_input, .message = std::move(message), .file = file, .line = line_at(text, at), .field = {}, .fix = {}});
  };
  if (std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c); })) return bad("not JSON: the text is empty", 0);
  if (nesting(text) > kMaxNesting) return bad(fmt::format("nested deeper than {}", kMaxNesting), 0);
  try {
    Json parsed = Json::parse(text);
    if (const auto twice = DuplicateFinder(text).run())
      return bad(fmt::format("the key '{}' is there twice in one object", twice->key), twice->at);
    return parsed;
  } catch (const Json::parse_error& e) {
    // "[json.exception.parse_error.101] parse error at line 2, column 3: syntax error while parsing ..." -> the part that helps.
    std::string what = e.what();
    if (const std::size_t colon = what.find(": "); colon != std::string::npos) what = what.substr(colon + 2);
    return bad("not JSON: " + what, e.byte > 0 ? e.byte - 1 : 0);
  } catch (const Json::exception& e) {  // a number that no double can hold
    std::string what = e.what();
    if (const std::size_t bracket = what.find("] "); bracket != std::string::npos) what = what.substr(bracket + 2);
    return bad("not JSON: " + what, 0);
  }
}

std::string dump(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

int line_of_field(const std::string& text, const std::string& field) { return line_at(text, Locator(text, field).run()); }

Error with_line(Error error, const std::string& text) {
  if (error.line == 0 && !error.field.empty()) error.line = line_of_field(text, error.field);
  return error;
}

}  // namespace forge
