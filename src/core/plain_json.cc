// SPDX-License-Identifier: Apache-2.0
#include "core/plain_json.h"

#include <charconv>

namespace forge {

namespace {

constexpr int kDeepest = 8;
constexpr std::size_t kMostKeys = 64;  // of an object, as each is compared with all before it

// Every function is false where the text is not plain, and then whatever was read is thrown away.
class PlainJson {
 public:
  explicit PlainJson(std::string_view text) : m_at(text.data()), m_end(text.data() + text.size()) {}
  bool run(Json& out) { return value(out, 0) && (space(), m_at == m_end); }

 private:
  char peek() const { return m_at < m_end ? *m_at : '\0'; }
  void space() {
    while (m_at < m_end && (*m_at == ' ' || *m_at == '\n' || *m_at == '\t' || *m_at == '\r')) m_at++;
  }
  bool take(char c) { return space(), peek() == c && (m_at++, true); }

  bool text(std::string& out) {
    const char* const start = ++m_at;
    while (m_at < m_end && *m_at >= ' ' && *m_at < 0x7f && *m_at != '"' && *m_at != '\\') m_at++;
    if (peek() != '"') return false;
    out.assign(start, m_at++);
    return true;
  }

  bool value(Json& out, int depth) {
    space();
    const char c = peek();
    if (c == '"') {
      std::string s;
      if (!text(s)) return false;
      out = std::move(s);
      return true;
    }
    if (c == '{') return depth < kDeepest && object(out, depth);
    if (c == '[') return depth < kDeepest && array(out, depth);
    if (c == 't') return word("true", out, true);
    if (c == 'f') return word("false", out, false);
    if (c == 'n') return word("null", out, nullptr);
    return number(out);
  }
  bool word(std::string_view w, Json& out, Json meant) {
    if (static_cast<std::size_t>(m_end - m_at) < w.size() || std::string_view(m_at, w.size()) != w) return false;
    m_at += w.size(), out = std::move(meant);
    return true;
  }

  bool object(Json& out, int depth) {
    Json::object_t members;
    members.reserve(depth == 0 ? 16 : 4);
    m_at++;
    if (!take('}'))
      for (;;) {
        space();
        std::string key;
        if (peek() != '"' || !text(key) || !take(':') || members.size() >= kMostKeys) return false;
        for (const auto& [other, ignored] : members)
          if (other == key) return false;
        members.emplace_back(std::move(key), Json());
        if (!value(members.back().second, depth + 1)) return false;
        if (take('}')) break;
        if (!take(',')) return false;
      }
    out = std::move(members);
    return true;
  }

  bool array(Json& out, int depth) {
    Json::array_t items;
    m_at++;
    if (!take(']'))
      for (;;) {
        if (!value(items.emplace_back(), depth + 1)) return false;
        if (take(']')) break;
        if (!take(',')) return false;
      }
    out = std::move(items);
    return true;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  bool digits() {
    const char* const start = m_at;
    while (is_digit(peek())) m_at++;
    return m_at > start;
  }
  bool number(Json& out) {
    const char* const start = m_at;
    if (peek() == '-') m_at++;
    const char* const whole = m_at;
    if (!digits() || (*whole == '0' && m_at - whole > 1)) return false;
    const bool is_whole = peek() != '.' && peek() != 'e' && peek() != 'E';
    if (is_whole) {
      if (m_at - whole > 18) return false;
      std::int64_t n = 0;
      std::from_chars(start, m_at, n);
      if (whole > start)
        out = n;
      else
        out = static_cast<std::uint64_t>(n);
      return true;
    }
    if (peek() == '.' && (m_at++, !digits())) return false;
    if (peek() == 'e' || peek() == 'E') {
      m_at++;
      if (peek() == '-' || peek() == '+') m_at++;
      if (!digits()) return false;
    }
    double x = 0;
    if (std::from_chars(start, m_at, x).ec != std::errc()) return false;
    out = x;
    return true;
  }

  const char *m_at, *m_end;
};

}  // namespace

bool parse_plain_json(std::string_view text, Json& out) { return PlainJson(text).run(out); }

}  // namespace forge
