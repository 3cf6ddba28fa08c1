// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "core/toml_node.h"

namespace forge {

namespace {

bool is_bare(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_plain(std::string_view text) {
  unsigned strange = 0;
  for (const char c : text) strange |= static_cast<unsigned>((c < ' ' && c != '\n' && c != '\t') || c == 0x7f);  // above 0x7f: negative
  return strange == 0;
}

// Every function is false where the text is not plain, and then whatever was read is thrown away.
class PlainToml {
 public:
  PlainToml(std::string_view text, TomlNode& root) : m_text(text), m_root(root) {}

  bool run() {
    m_root.kind = TomlNode::Kind::table, m_root.line = 1;
    m_root.items.reserve(16);
    for (;;) {
      lines();
      if (m_at == m_text.size()) return true;
      if (!(m_text[m_at] == '[' ? header() : member())) return false;
      blanks();
      if (peek() == '#') comment();
      if (m_at < m_text.size() && m_text[m_at] != '\n') return false;
    }
  }

 private:
  char peek() const { return m_at < m_text.size() ? m_text[m_at] : '\0'; }
  bool take(char c) { return peek() == c && (m_at++, true); }
  void blanks() {
    while (peek() == ' ' || peek() == '\t') m_at++;
  }
  void comment() {
    m_at = m_text.find('\n', m_at);
    if (m_at == std::string_view::npos) m_at = m_text.size();
  }
  void lines() {  // blanks, ends of lines and comments
    for (;; m_at++, m_line++) {
      blanks();
      if (peek() == '#') comment();
      if (peek() != '\n') return;
    }
  }
  std::string_view bare() {
    const std::size_t start = m_at;
    while (is_bare(peek())) m_at++;
    return m_text.substr(start, m_at - start);
  }

  // The table of the last header. By its place: the root's items move as they grow.
  TomlNode& table() {
    if (m_open < 0) return m_root;
    TomlNode& n = m_root.items[static_cast<std::size_t>(m_open)];
    return n.kind == TomlNode::Kind::array ? n.items.back() : n;
  }

  bool header() {
    m_at++;
    const bool many = take('[');
    blanks();
    const std::string_view key = bare();
    blanks();
    if (key.empty() || !take(']') || (many && !take(']'))) return false;
    std::size_t i = 0;
    while (i < m_root.items.size() && m_root.items[i].key != key) i++;
    const bool is_new = i == m_root.items.size();
    if (is_new && i >= kMostKeys) return false;
    if (!is_new && (!many || m_root.items[i].kind != TomlNode::Kind::array || m_root.items[i].visit != kOfHeaders)) return false;
    if (is_new) {
      TomlNode& n = m_root.items.emplace_back();
      n.kind = many ? TomlNode::Kind::array : TomlNode::Kind::table, n.key = key, n.key_line = n.line = m_line;
      n.visit = many ? kOfHeaders : -1;
    }
    if (many) m_root.items[i].items.emplace_back().line = m_line;
    m_open = static_cast<std::ptrdiff_t>(i);
    table().items.reserve(8);
    return true;
  }

  bool member() {
    const std::string_view key = bare();
    blanks();
    if (key.empty() || !take('=')) return false;
    TomlNode& in = table();
    if (in.items.size() >= kMostKeys || in.get(key)) return false;
    TomlNode& n = in.items.emplace_back();
    n.key = key, n.key_line = m_line;
    blanks();
    return value(n, 0);
  }

  // From `start` to the closing quotes at `end`.
  bool between(TomlNode& n, std::size_t start, std::size_t end, std::size_t quotes) {
    if (end == std::string_view::npos || m_text.substr(start, end - start).find('\\') != std::string_view::npos) return false;
    n.kind = TomlNode::Kind::text, n.text = m_text.substr(start, end - start);
    m_at = end + quotes;
    return peek() != '"';
  }
  bool text(TomlNode& n) {
    const std::size_t start = m_at + 1, end = m_text.find('"', start);
    return between(n, start, end, 1) && n.text.find('\n') == std::string_view::npos;
  }
  bool long_text(TomlNode& n) {
    const std::size_t start = m_at + 3;
    if (!between(n, start, m_text.find(kThree, start), 3)) return false;
    m_line += static_cast<int>(std::count(n.text.begin(), n.text.end(), '\n'));
    if (n.text.starts_with('\n')) n.text.remove_prefix(1);  // that is none of the text's
    return true;
  }

  bool inline_table(TomlNode& n, int depth) {
    n.kind = TomlNode::Kind::table;
    m_at++, blanks();
    if (take('}')) return true;
    for (;;) {
      const std::string_view key = bare();
      blanks();
      if (key.empty() || !take('=') || n.items.size() >= kMostKeys || n.get(key)) return false;
      TomlNode& item = n.items.emplace_back();
      item.key = key, item.key_line = m_line;
      blanks();
      if (!value(item, depth + 1) || m_line != n.line) return false;
      blanks();
      if (take('}')) return true;
      if (!take(',')) return false;
      blanks();
    }
  }

  bool value(TomlNode& n, int depth) {
    n.line = m_line;
    const char c = peek();
    if (c == '"') return m_text.substr(m_at, 3) == kThree ? long_text(n) : text(n);
    if (c == '{') return depth < 4 && inline_table(n, depth);
    if (c == '[') return depth < 4 && array(n, depth);
    if (c == 't' || c == 'f') {
      const std::string_view word = bare();
      n.kind = TomlNode::Kind::boolean, n.integer = word == "true";
      return word == "true" || word == "false";
    }
    return number(n);
  }

  bool array(TomlNode& n, int depth) {
    n.kind = TomlNode::Kind::array;
    m_at++;
    for (;;) {
      lines();
      if (take(']')) return true;
      if (!value(n.items.emplace_back(), depth + 1)) return false;
      lines();
      if (!take(',') && peek() != ']') return false;
    }
  }

  bool number(TomlNode& n) {
    const std::size_t start = m_at;
    take('-');
    const std::size_t whole = m_at;
    while (is_digit(peek())) m_at++;
    const std::size_t digits = m_at - whole;
    if (digits == 0 || digits > 15 || (digits > 1 && m_text[whole] == '0')) return false;
    n.kind = TomlNode::Kind::integer;
    if (take('.')) {
      const std::size_t fraction = m_at;
      while (is_digit(peek())) m_at++;
      if (m_at == fraction) return false;
      n.kind = TomlNode::Kind::real;
    }
    const char* const end = m_text.data() + m_at;
    if (n.kind == TomlNode::Kind::integer)
      std::from_chars(m_text.data() + start, end, n.integer);
    else
      std::from_chars(m_text.data() + start, end, n.real);
    const char next = peek();  // an exponent, an underscore, a date, a time, 0x...: not plain
    return !is_bare(next) && next != '.' && next != ':' && next != '+';
  }

  static constexpr std::string_view kThree = "\"\"\"";
  static constexpr std::size_t kMostKeys = 64;    // of a table, as each is compared with all before it
  static constexpr std::int32_t kOfHeaders = -2;  // while parsing: an array that [[headers]] made, which further ones extend
  std::string_view m_text;
  TomlNode& m_root;
  std::size_t m_at = 0;
  int m_line = 1;
  std::ptrdiff_t m_open = -1;
};

}  // namespace

bool parse_plain_toml(std::string_view text, TomlNode& root) { return is_plain(text) && PlainToml(text, root).run(); }

}  // namespace forge
