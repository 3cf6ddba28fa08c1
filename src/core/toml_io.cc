// SPDX-License-Identifier: Apache-2.0
#include "core/toml_io.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/toml_node.h"
#include "util/text.h"

namespace forge {
namespace {

std::string describe(const TomlNode& node) {
  switch (node.kind) {
    case TomlNode::Kind::table:
      return "a table";
    case TomlNode::Kind::array:
      return "an array";
    case TomlNode::Kind::text:
      return "a string";
    case TomlNode::Kind::integer:
      return "an integer";
    case TomlNode::Kind::real:
      return "a number";
    case TomlNode::Kind::boolean:
      return "true or false";
    case TomlNode::Kind::date:
      break;
  }
  return "a date or time";
}

// Texts and keys are left where toml++ has them.
void take_over(const toml::node& from, TomlNode& to) {
  to.line = static_cast<int>(from.source().begin.line);
  switch (from.type()) {
    case toml::node_type::table:
      to.kind = TomlNode::Kind::table;
      for (const auto& [key, item] : *from.as_table()) {
        TomlNode& n = to.items.emplace_back();
        n.key = key.str(), n.key_line = static_cast<int>(key.source().begin.line);
        take_over(item, n);
      }
      break;
    case toml::node_type::array:
      to.kind = TomlNode::Kind::array;
      for (const toml::node& item : *from.as_array()) take_over(item, to.items.emplace_back());
      break;
    case toml::node_type::string:
      to.kind = TomlNode::Kind::text, to.text = from.as_string()->get();
      break;
    case toml::node_type::integer:
      to.kind = TomlNode::Kind::integer, to.integer = from.as_integer()->get();
      break;
    case toml::node_type::floating_point:
      to.kind = TomlNode::Kind::real, to.real = from.as_floating_point()->get();
      break;
    case toml::node_type::boolean:
      to.kind = TomlNode::Kind::boolean, to.integer = from.as_boolean()->get();
      break;
    default:
      to.kind = TomlNode::Kind::date;
  }
}

// Whether a list of keys, each with an end of line, has this one.
bool asked_for(std::string_view list, std::string_view key) {
  while (!list.empty()) {
    const std::size_t end = list.find('\n');
    if (list.substr(0, end) == key) return true;
    list.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

struct TomlReader::State {
  std::string text, file;            // the tree looks into the text, if it is a plain one,
  std::shared_ptr<const void> made;  // else into this
  TomlNode root;
  std::optional<Error> error;
  bool about_absent_key = false;
  struct Visited {
    const TomlNode* table;
    std::string path;
    std::string known;  // the keys asked for, each with an end of line
  };
  std::vector<Visited> tables;

  Visited& visited(TomlNode& table) {
    if (table.visit < 0)
      table.visit = static_cast<std::int32_t>(tables.size()), tables.push_back({&table, {}, {}}), tables.back().known.reserve(160);
    return tables[static_cast<std::size_t>(table.visit)];
  }
};

// The line of a key of more parts than any of ours, or 0. The parser limits how deep values nest, but a dotted key makes tables in
// tables too, and their destruction recurses.
static int line_of_deep_key(const std::string& text) {
  constexpr int k_most = 64;
  int line = 1, dots = 0;
  for (const char c : text) {
    if (c == '.') ++dots;
    if ((c == '=' || c == ']') && dots > k_most) return line;
    if (c == '=' || c == ']' || c == ',' || c == '{' || c == '\n') dots = 0;
    line += c == '\n';
  }
  return 0;
}

Result<std::shared_ptr<const void>> parse_any_toml(const std::string& text, const std::string& file, TomlNode& root) {
  const auto bad = [&](std::string message, int line) {
    return fail(Error{.code = Code::bad_input, .message = std::move(message), .file = file, .line = line, .field = {}, .fix = {}});
  };
  if (const int line = line_of_deep_key(text); line > 0) return bad("not TOML of ours: a key of too many parts", line);
  try {
    const auto made = std::make_shared<const toml::table>(toml::parse(text, file));
    take_over(*made, root);
    return made;
  } catch (const toml::parse_error& e) {
    return bad(fmt::format("not TOML: {} (column {})", e.description(), e.source().begin.column), static_cast<int>(e.source().begin.line));
  }
}

Result<TomlReader> TomlReader::parse(const std::string& text, const std::string& file) {
  TomlReader reader;
  reader.m_state = std::make_shared<State>();
  State& state = *reader.m_state;
  state.file = file, state.text = text;
  reader.m_table = &state.root;
  if (parse_plain_toml(state.text, state.root)) return reader;
  state.root = {};
  FORGE_TRY_ASSIGN(state.made, parse_any_toml(text, file, state.root));
  return reader;
}

std::string TomlReader::dotted(const std::string& key) const {
  if (key.empty()) return m_path;
  return m_path.empty() ? key : m_path + "." + key;
}

void TomlReader::note(const std::string& key) const {
  if (!m_table) return;
  std::string& known = m_state->visited(*m_table).known;
  known += key, known += '\n';
}

bool TomlReader::has(const std::string& key) const {
  note(key);
  return m_table && m_table->get(key);
}

const TomlNode* TomlReader::find(const std::string& key, bool need) {
  if (!m_table) return nullptr;
  note(key);
  if (const TomlNode* node = m_table->get(key)) return node;
  if (need) add_error(key, "missing");
  return nullptr;
}

int TomlReader::line(const std::string& key) const {
  if (!m_table) return 0;
  const TomlNode* node = key.empty() ? nullptr : m_table->get(key);
  return node ? node->line : m_table->line;
}

void TomlReader::add_error(const std::string& key, const std::string& message, const std::string& fix) {
  if (!m_state || m_state->error) return;
  const std::string first = key.substr(0, key.find_first_of(".["));  // "offset.A" stands at the line of "offset"
  m_state->error =
      Error{.code = Code::bad_input, .message = message, .file = m_state->file, .line = line(first), .field = dotted(key), .fix = fix};
  m_state->about_absent_key = !m_table || !m_table->get(first);
}

bool TomlReader::ok() const { return !m_state->error; }

Status TomlReader::finish() const {
  // A misspelt key is also a missing one; the misspelling is the better message.
  if (m_state->error && !m_state->about_absent_key) return fail(*m_state->error);
  std::optional<Error> unknown;
  for (const auto& [table, path, asked] : m_state->tables) {
    std::set<std::string, std::less<>> known;  // of a table with an unknown key
    for (const TomlNode& n : table->items) {
      if (asked_for(asked, n.key)) continue;
      if (unknown && unknown->line <= n.key_line) continue;
      if (known.empty())
        for (const std::string& key : split(asked, '\n'))
          if (!key.empty()) known.insert(key);
      const std::vector<std::string> names(known.begin(), known.end());
      const std::string text(n.key), near = closest(text, names);
      unknown = Error{.code = Code::bad_input,
                      .message = "unknown key",
                      .file = m_state->file,
                      .line = n.key_line,
                      .field = path.empty() ? text : path + "." + text,
                      .fix = near.empty() ? fmt::format("known here: {}", join(names, ", ")) : fmt::format("did you mean '{}'?", near)};
    }
  }
  if (unknown) return fail(*unknown);
  if (m_state->error) return fail(*m_state->error);
  return {};
}

void TomlReader::format(int version) {
  int found = version;
  need("format", found);
  check(found == version, "format", fmt::format("format {} is not known", found), fmt::format("this program reads format {}", version));
}

void TomlReader::need_text(const std::string& key, std::string& out) {
  need(key, out);
  if (has(key)) check(!trim(out).empty(), key, "must not be empty");
}

TomlReader TomlReader::of_table(const TomlReader& parent, TomlNode& table, std::string path) {
  TomlReader reader;
  reader.m_state = parent.m_state;
  reader.m_table = &table;
  reader.m_path = std::move(path);
  reader.m_state->visited(table).path = reader.m_path;
  return reader;
}

TomlReader TomlReader::table(const std::string& key) {
  TomlReader nothing;
  nothing.m_state = m_state;
  nothing.m_path = dotted(key);
  const TomlNode* node = find(key, false);
  if (!node) return nothing;
  if (node->kind != TomlNode::Kind::table) return add_error(key, fmt::format("expected a table, found {}", describe(*node))), nothing;
  return of_table(*this, const_cast<TomlNode&>(*node), nothing.m_path);
}

TomlReader TomlReader::need_table(const std::string& key) {
  find(key, true);
  return table(key);
}

std::vector<TomlReader> TomlReader::tables(const std::string& key) {
  std::vector<TomlReader> rows;
  const TomlNode* node = find(key, false);
  if (!node) return rows;
  if (node->kind != TomlNode::Kind::array) {
    add_error(key, fmt::format("expected an array of tables, found {}", describe(*node)), fmt::format("write [[{}]]", dotted(key)));
    return rows;
  }
  for (const TomlNode& item : node->items) {
    std::string place = fmt::format("{}[{}]", key, rows.size());
    if (item.kind != TomlNode::Kind::table) {
      add_error(place, fmt::format("expected a table, found {}", describe(item)));
      return rows;
    }
    rows.push_back(of_table(*this, const_cast<TomlNode&>(item), dotted(place)));
  }
  return rows;
}

// One value of the file into a T; on failure the error is recorded and `out` is left alone.
template <class T>
bool TomlReader::convert(const TomlNode& node, const std::string& key, T& out) {
  using Kind = TomlNode::Kind;
  const auto wrong = [&](const char* expected) {
    add_error(key, fmt::format("expected {}, found {}", expected, describe(node)));
    return false;
  };
  if constexpr (std::is_same_v<T, std::string>) {
    if (node.kind != Kind::text) return wrong("a string");
    out = node.text;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (node.kind != Kind::boolean) return wrong("true or false");
    out = node.integer != 0;
  } else if constexpr (std::is_same_v<T, double>) {
    if (node.kind == Kind::integer) {
      out = static_cast<double>(node.integer);
      return true;
    }
    if (node.kind != Kind::real) return wrong("a number");
    if (!std::isfinite(node.real)) return add_error(key, "must be finite"), false;
    out = node.real;
  } else if constexpr (std::is_same_v<T, Expr>) {
    if (node.kind != Kind::text && node.kind != Kind::integer) return wrong("an expression (integer or string)");
    auto expr = parse_expr(node.kind == Kind::text ? std::string(node.text) : std::to_string(node.integer));
    if (!expr) return add_error(key, expr.error().message), false;
    out = std::move(*expr);
  } else {
    if (node.kind != Kind::integer) return wrong("an integer");
    if (node.integer < std::numeric_limits<T>::min() || node.integer > std::numeric_limits<T>::max())
      return add_error(key, fmt::format("{} is out of range", node.integer)), false;
    out = static_cast<T>(node.integer);
  }
  return true;
}

template <class T>
void TomlReader::read_list(const std::string& key, bool needed, std::vector<T>& out) {
  const TomlNode* node = find(key, needed);
  if (!node) return;
  if (node->kind != TomlNode::Kind::array) return add_error(key, fmt::format("expected an array, found {}", describe(*node)));
  std::vector<T> values;
  values.reserve(node->items.size());
  for (const TomlNode& item : node->items) {
    T value{};
    if (!convert(item, key + "[" + std::to_string(values.size()) + "]", value)) return;
    values.push_back(std::move(value));
  }
  out = std::move(values);
}

template <class T>
void TomlReader::read_map(const std::string& key, bool needed, std::map<std::string, T>& out) {
  const TomlNode* node = find(key, needed);
  if (!node) return;
  if (node->kind != TomlNode::Kind::table) return add_error(key, fmt::format("expected a table, found {}", describe(*node)));
  std::map<std::string, T> values;
  for (const TomlNode& item : node->items) {
    T value{};
    if (!convert(item, key + "." + std::string(item.key), value)) return;
    values.emplace(item.key, value);
  }
  out = std::move(values);
}

void TomlReader::read(const std::string& key, bool n, bool& out) {
  if (const TomlNode* p = find(key, n)) convert(*p, key, out);
}
void TomlReader::read(const std::string& key, bool n, int& out) {
  if (const TomlNode* p = find(key, n)) convert(*p, key, out);
}
void TomlReader::read(const std::string& key, bool n, std::int64_t& out) {
  if (const TomlNode* p = find(key, n)) convert(*p, key, out);
}
void TomlReader::read(const std::string& key, bool n, double& out) {
  if (const TomlNode* p = find(key, n)) convert(*p, key, out);
}
void TomlReader::read(const std::string& key, bool n, std::string& out) {
  if (const TomlNode* p = find(key, n)) convert(*p, key, out);
}
void TomlReader::read(const std::string& key, bool n, Expr& out) {
  if (const TomlNode* p = find(key, n)) convert(*p, key, out);
}
void TomlReader::read(const std::string& key, bool n, std::vector<std::string>& out) { read_list(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::vector<int>& out) { read_list(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::vector<std::int64_t>& out) { read_list(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::vector<Expr>& out) { read_list(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::map<std::string, std::int64_t>& out) { read_map(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::map<std::string, double>& out) { read_map(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::map<std::string, std::string>& out) { read_map(key, n, out); }

bool TomlReader::choose_text(const std::string& key, bool needed, std::string& out, const std::vector<std::string>& names) {
  const TomlNode* node = find(key, needed);
  if (!node || !convert(*node, key, out)) return false;
  if (std::find(names.begin(), names.end(), out) != names.end()) return true;
  const std::string near = closest(out, names);
  add_error(key, fmt::format("'{}' is not one of {}", out, join(names, ", ")), near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  return false;
}

Signature read_signature(TomlReader& toml, const std::string& key) {
  Signature signature;
  for (TomlReader& row : toml.tables(key)) {
    SignatureTerm term;
    row.need("mnemonic", term.mnemonic);
    row.maybe("operand", term.operand);
    row.maybe_choice("scope", term.scope, {Scope::image, Scope::hot_loop});
    row.maybe("min", term.min);
    row.maybe("max", term.max);
    if (row.ok())
      for (const SignatureProblem& p : problems_of(term)) row.add_error(p.key, p.message, p.fix);
    signature.all.push_back(std::move(term));
  }
  return signature;
}

}  // namespace forge
