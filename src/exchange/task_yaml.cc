// SPDX-License-Identifier: Apache-2.0
#include "exchange/task_yaml.h"

#include <fmt/format.h>

#include "util/text.h"

namespace forge {
namespace {

struct YamlLine {
  int number = 0;
  std::size_t indent = 0;
  std::string text;
};

std::string unquoted(const std::string& text) {
  const std::string t = trim(text);
  return t.size() >= 2 && (t[0] == '"' || t[0] == '\'') && t.back() == t[0] ? t.substr(1, t.size() - 2) : t;
}

// The end of a comment-free text: '#' at the start or after a blank, outside quotes.
std::string without_comment(const std::string& text) {
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (quote)
      quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t'))
      return text.substr(0, i);
  }
  return text;
}

// Splits outside quotes and brackets.
std::vector<std::string> pieces(const std::string& text, char separator, int limit = 0) {
  std::vector<std::string> out{""};
  char quote = 0;
  int depth = 0;
  for (const char c : text) {
    if (quote)
      quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '[' || c == '{' || c == '(')
      ++depth;
    else if (c == ']' || c == '}' || c == ')')
      --depth;
    if (c == separator && !quote && depth == 0 && (limit == 0 || static_cast<int>(out.size()) < limit))
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

class TaskYaml {
 public:
  TaskYaml(const std::string& text, const std::string& file) : m_text(text), m_file(file) {}

  Result<std::map<std::string, YamlSection>> run() {
    read_lines();
    std::map<std::string, YamlSection> out;
    while (m_at < m_lines.size()) {
      const YamlLine& line = m_lines[m_at];
      if (line.indent != 0 || line.text.starts_with("-")) return bad(line, "is no key at the left margin");
      auto [key, value] = key_and_value(line.text);
      if (key.empty()) return bad(line, "is no 'key: value'");
      ++m_at;
      YamlSection section{.line = line.number, .word = {}, .items = {}, .map = {}};
      FORGE_TRY(read_section(section, value, line));
      out[key] = std::move(section);
    }
    return out;
  }

 private:
  tl::unexpected<Error> bad(const YamlLine& line, const std::string& what) const {
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("'{}' {}", utf8_head(line.text, 60), what),
                      .file = m_file,
                      .line = line.number,
                      .field = {},
                      .fix = "of YAML only what GPU MODE's tasks use is read: keys, words, | blocks, lists of flat maps"});
  }

  void read_lines() {
    int number = 0;
    for (const std::string& raw : split(m_text, '\n')) {
      ++number;
      std::string text = raw;
      if (!text.empty() && text.back() == '\r') text.pop_back();
      std::size_t indent = text.find_first_not_of(' ');
      m_raw.push_back(text);
      if (indent == std::string::npos) continue;
      text = trim(without_comment(text));
      if (text.empty() || text == "---" || text == "...") continue;
      m_lines.push_back({number, indent, text});
    }
  }

  static std::pair<std::string, std::string> key_and_value(const std::string& text) {
    const auto parts = pieces(text, ':', 2);
    if (parts.size() != 2) return {};
    return {unquoted(parts[0]), trim(parts[1])};
  }

  Status read_section(YamlSection& section, const std::string& value, const YamlLine& head) {
    if (value.starts_with("|") || value.starts_with(">")) {
      read_block(section, head);
      return {};
    }
    if (!value.empty()) {
      section.word = unquoted(value);
      if (value.starts_with("{")) {
        FORGE_TRY_ASSIGN(section.map, flow_map(value, head));
      } else if (value.starts_with("[") && value.find('{') != std::string::npos) {
        return bad(head, "is a list in brackets");
      }
      return {};
    }
    while (m_at < m_lines.size() && (m_lines[m_at].indent > 0 || m_lines[m_at].text.starts_with("-"))) {
      const YamlLine line = m_lines[m_at];
      if (line.text == "-" || line.text.starts_with("- ")) {
        FORGE_TRY(read_item(section, line));
        continue;
      }
      auto [key, word] = key_and_value(line.text);
      if (key.empty()) return bad(line, "is no 'key: value'");
      section.map[key] = unquoted(word);
      ++m_at;
      const bool nested = word.empty();  // a list or a map below a key of a section: its text is not needed
      while (nested && m_at < m_lines.size() && m_lines[m_at].indent > line.indent) ++m_at;
    }
    return {};
  }

  // Lines deeper than the key, as they stand.
  void read_block(YamlSection& section, const YamlLine& head) {
    std::size_t row = static_cast<std::size_t>(head.number);  // of the next line, from 0
    for (; row < m_raw.size(); row++) {
      const std::size_t indent = m_raw[row].find_first_not_of(' ');
      if (indent == std::string::npos) {
        section.word += "\n";
        continue;
      }
      if (indent <= head.indent) break;
      section.word += m_raw[row] + "\n";
    }
    while (m_at < m_lines.size() && m_lines[m_at].number <= static_cast<int>(row)) ++m_at;
  }

  Result<YamlMap> flow_map(std::string text, const YamlLine& line) {
    text = trim(text);
    if (text.size() < 2 || text[0] != '{' || text.back() != '}') return bad(line, "is no map in braces on one line");
    YamlMap out;
    for (const std::string& part : pieces(text.substr(1, text.size() - 2), ',')) {
      if (trim(part).empty()) continue;
      auto [key, value] = key_and_value(part);
      if (key.empty()) return bad(line, "holds something that is no 'key: value'");
      out[key] = unquoted(value);
    }
    return out;
  }

  // "- {a: 1}", "- word", or "- a: 1" with more keys below.
  Status read_item(YamlSection& section, const YamlLine& line) {
    ++m_at;
    const std::string rest = trim(line.text.substr(1));
    YamlMap item;
    if (rest.starts_with("{")) {
      FORGE_TRY_ASSIGN(item, flow_map(rest, line));
    } else if (const auto [key, value] = key_and_value(rest); !key.empty()) {
      item[key] = unquoted(value);
      while (m_at < m_lines.size() && m_lines[m_at].indent > line.indent) {
        const YamlLine& more = m_lines[m_at++];
        const auto [name, word] = key_and_value(more.text);
        if (name.empty()) return bad(more, "is no 'key: value'");
        item[name] = unquoted(word);
      }
    } else {
      item[""] = unquoted(rest);
    }
    section.items.push_back(std::move(item));
    return {};
  }

  const std::string& m_text;
  const std::string& m_file;
  std::vector<std::string> m_raw;
  std::vector<YamlLine> m_lines;
  std::size_t m_at = 0;
};

}  // namespace

Result<std::map<std::string, YamlSection>> parse_task_yaml(const std::string& text, const std::string& file) {
  return TaskYaml(text, file).run();
}

}  // namespace forge
