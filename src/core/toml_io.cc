// SPDX-License-Identifier: Apache-2.0
#include "core/toml_io.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "util/text.h"

namespace forge {
namespace {

const toml::node& as_node(const void* p) { return *static_cast<const toml::node*>(p); }

std::string describe(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

}  // namespace

struct TomlReader::State {
  toml::table root;
  std::string file;
  std::optional<Error> error;
  bool about_absent_key = false;
  struct Visited {
    std::set<std::string> known;
    std::string path;
  };
  std::map<const void*, Visited> tables;  // what was asked of which table
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

Result<TomlReader> TomlReader::parse(const std::string& text, const std::string& file) {
  TomlReader reader;
  if (const int line = line_of_deep_key(text); line > 0)
    return fail(Error{.code = Code::bad_input,
                      .message = "not TOML of ours: a key of too many parts",
                      .file = file,
                      .line = line,
                      .field = {},
                      .fix = {}});
  reader.m_state = std::make_shared<State>();
  reader.m_state->file = file;
  try {
    reader.m_state->root = toml::parse(text, file);
  } catch (const toml::parse_error& e) {
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("not TOML: {} (column {})", e.description(), e.source().begin.column),
                      .file = file,
                      .line = static_cast<int>(e.source().begin.line),
                      .field = {},
                      .fix = {}});
  }
  const toml::node& root = reader.m_state->root;
  reader.m_table = &root;
  reader.m_state->tables[reader.m_table];
  return reader;
}

std::string TomlReader::dotted(const std::string& key) const {
  if (key.empty()) return m_path;
  return m_path.empty() ? key : m_path + "." + key;
}

void TomlReader::note(const std::string& key) const {
  if (m_table) m_state->tables[m_table].known.insert(key);
}

bool TomlReader::has(const std::string& key) const {
  note(key);
  return m_table && as_node(m_table).as_table()->contains(key);
}

const void* TomlReader::find(const std::string& key, bool need) {
  if (!m_table) return nullptr;
  note(key);
  if (const toml::node* node = as_node(m_table).as_table()->get(key)) return node;
  if (need) add_error(key, "missing");
  return nullptr;
}

int TomlReader::line(const std::string& key) const {
  if (!m_table) return 0;
  const toml::table* table = as_node(m_table).as_table();
  const toml::node* node = key.empty() ? nullptr : table->get(key);
  return static_cast<int>((node ? node->source() : table->source()).begin.line);
}

void TomlReader::add_error(const std::string& key, const std::string& message, const std::string& fix) {
  if (!m_state || m_state->error) return;
  const std::string first = key.substr(0, key.find_first_of(".["));  // "offset.A" stands at the line of "offset"
  m_state->error =
      Error{.code = Code::bad_input, .message = message, .file = m_state->file, .line = line(first), .field = dotted(key), .fix = fix};
  m_state->about_absent_key = !m_table || !as_node(m_table).as_table()->contains(first);
}

bool TomlReader::ok() const { return !m_state->error; }

Status TomlReader::finish() const {
  // A misspelt key is also a missing one; the misspelling is the better message.
  if (m_state->error && !m_state->about_absent_key) return fail(*m_state->error);
  std::optional<Error> unknown;
  for (const auto& [table, visited] : m_state->tables) {
    const std::vector<std::string> known(visited.known.begin(), visited.known.end());
    for (const auto& [key, node] : *as_node(table).as_table()) {
      const std::string text(key.str());
      if (visited.known.count(text)) continue;
      const int at = static_cast<int>(key.source().begin.line);
      if (unknown && unknown->line <= at) continue;
      const std::string near = closest(text, known);
      unknown = Error{.code = Code::bad_input,
                      .message = "unknown key",
                      .file = m_state->file,
                      .line = at,
                      .field = visited.path.empty() ? text : visited.path + "." + text,
                      .fix = near.empty() ? fmt::format("known here: {}", join(known, ", ")) : fmt::format("did you mean '{}'?", near)};
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

TomlReader TomlReader::table(const std::string& key) {
  TomlReader child;
  child.m_state = m_state;
  child.m_path = dotted(key);
  const void* node = find(key, false);
  if (!node) return child;
  if (!as_node(node).is_table()) return add_error(key, fmt::format("expected a table, found {}", describe(as_node(node)))), child;
  child.m_table = node;
  m_state->tables[node].path = child.m_path;
  return child;
}

TomlReader TomlReader::need_table(const std::string& key) {
  find(key, true);
  return table(key);
}

std::vector<TomlReader> TomlReader::tables(const std::string& key) {
  std::vector<TomlReader> rows;
  const void* node = find(key, false);
  if (!node) return rows;
  const toml::array* array = as_node(node).as_array();
  if (!array) {
    add_error(key, fmt::format("expected an array of tables, found {}", describe(as_node(node))), fmt::format("write [[{}]]", dotted(key)));
    return rows;
  }
  for (const toml::node& item : *array) {
    if (!item.is_table()) {
      add_error(fmt::format("{}[{}]", key, rows.size()), fmt::format("expected a table, found {}", describe(item)));
      return rows;
    }
    TomlReader row;
    row.m_state = m_state;
    row.m_table = &item;
    row.m_path = fmt::format("{}[{}]", dotted(key), rows.size());
    m_state->tables[row.m_table].path = row.m_path;
    rows.push_back(std::move(row));
  }
  return rows;
}

// One value of the file into a T; on failure the error is recorded and `out` is left alone.
template <class T>
bool TomlReader::convert(const void* pointer, const std::string& key, T& out) {
  const toml::node& node = as_node(pointer);
  const auto wrong = [&](const char* expected) {
    add_error(key, fmt::format("expected {}, found {}", expected, describe(node)));
    return false;
  };
  if constexpr (std::is_same_v<T, std::string>) {
    if (!node.is_string()) return wrong("a string");
    out = node.as_string()->get();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!node.is_boolean()) return wrong("true or false");
    out = node.as_boolean()->get();
  } else if constexpr (std::is_same_v<T, double>) {
    if (node.is_integer()) {
      out = static_cast<double>(node.as_integer()->get());
      return true;
    }
    if (!node.is_floating_point()) return wrong("a number");
    const double value = node.as_floating_point()->get();
    if (!std::isfinite(value)) return add_error(key, "must be finite"), false;
    out = value;
  } else if constexpr (std::is_same_v<T, Expr>) {
    if (!node.is_string() && !node.is_integer()) return wrong("an expression (integer or string)");
    auto expr = parse_expr(node.is_string() ? node.as_string()->get() : std::to_string(node.as_integer()->get()));
    if (!expr) return add_error(key, expr.error().message), false;
    out = std::move(*expr);
  } else {
    if (!node.is_integer()) return wrong("an integer");
    const std::int64_t value = node.as_integer()->get();
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
      return add_error(key, fmt::format("{} is out of range", value)), false;
    out = static_cast<T>(value);
  }
  return true;
}

template <class T>
void TomlReader::read_list(const std::string& key, bool needed, std::vector<T>& out) {
  const void* node = find(key, needed);
  if (!node) return;
  const toml::array* array = as_node(node).as_array();
  if (!array) return add_error(key, fmt::format("expected an array, found {}", describe(as_node(node))));
  std::vector<T> values;
  for (const toml::node& item : *array) {
    T value{};
    if (!convert(&item, fmt::format("{}[{}]", key, values.size()), value)) return;
    values.push_back(std::move(value));
  }
  out = std::move(values);
}

template <class T>
void TomlReader::read_map(const std::string& key, bool needed, std::map<std::string, T>& out) {
  const void* node = find(key, needed);
  if (!node) return;
  const toml::table* table = as_node(node).as_table();
  if (!table) return add_error(key, fmt::format("expected a table, found {}", describe(as_node(node))));
  std::map<std::string, T> values;
  for (const auto& [name, item] : *table) {
    T value{};
    if (!convert(&item, key + "." + std::string(name.str()), value)) return;
    values.emplace(name.str(), value);
  }
  out = std::move(values);
}

void TomlReader::read(const std::string& key, bool n, bool& out) {
  if (const void* p = find(key, n)) convert(p, key, out);
}
void TomlReader::read(const std::string& key, bool n, int& out) {
  if (const void* p = find(key, n)) convert(p, key, out);
}
void TomlReader::read(const std::string& key, bool n, std::int64_t& out) {
  if (const void* p = find(key, n)) convert(p, key, out);
}
void TomlReader::read(const std::string& key, bool n, double& out) {
  if (const void* p = find(key, n)) convert(p, key, out);
}
void TomlReader::read(const std::string& key, bool n, std::string& out) {
  if (const void* p = find(key, n)) convert(p, key, out);
}
void TomlReader::read(const std::string& key, bool n, Expr& out) {
  if (const void* p = find(key, n)) convert(p, key, out);
}
void TomlReader::read(const std::string& key, bool n, std::vector<std::string>& out) { read_list(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::vector<int>& out) { read_list(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::vector<std::int64_t>& out) { read_list(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::vector<Expr>& out) { read_list(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::map<std::string, std::int64_t>& out) { read_map(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::map<std::string, double>& out) { read_map(key, n, out); }
void TomlReader::read(const std::string& key, bool n, std::map<std::string, std::string>& out) { read_map(key, n, out); }

bool TomlReader::choose_text(const std::string& key, bool needed, std::string& out, const std::vector<std::string>& names) {
  const void* node = find(key, needed);
  if (!node || !convert(node, key, out)) return false;
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
