// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: reads a TOML file into structs, with errors that name file, line and key.
// A reader is a table of the file. Getters never return errors: the first one is kept and finish() returns it, together with
// any key that nobody asked for, so that a parser is a list of keys:
//
//   FORGE_TRY_ASSIGN(TomlReader toml, TomlReader::parse(text, file));
//   toml.format(1);
//   toml.need("id", entry.id);                     // missing: an error
//   toml.maybe("title", entry.title);              // missing: keeps its value
//   toml.need_choice("kind", kind, {Kind::a, Kind::b});   // through name(Kind)
//   for (TomlReader& row : toml.tables("advice")) { row.need("value", ...); row.check(ok, "value", "must be positive"); }
//   FORGE_TRY(toml.finish());
//
// Copies share the file and the error. After an error the structs hold defaults: look at them only after finish().
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/evidence.h"
#include "core/expr.h"
#include "util/result.h"

namespace forge {

class TomlReader {
 public:
  static Result<TomlReader> parse(const std::string& text, const std::string& file);

  void format(int version);  // demands `format = version`
  bool has(const std::string& key) const;

  // T: bool, int, int64_t, double (an integer is one too), std::string, Expr (integer or string), a vector of
  // std::string, int, int64_t or Expr, a map from std::string to int64_t, double or std::string. Strings may be empty, doubles are finite.
  template <class T>
  void need(const std::string& key, T& out) {
    read(key, true, out);
  }
  template <class T>
  void maybe(const std::string& key, T& out) {
    read(key, false, out);
  }
  template <class T>
  void maybe(const std::string& key, std::optional<T>& out) {
    T value{};
    if (has(key))
      read(key, true, value), out = std::move(value);
    else
      note(key);
  }
  void need_text(const std::string& key, std::string& out);  // a string that is not blank

  // An enumerator by its name(): found by argument-dependent lookup.
  template <class E>
  void need_choice(const std::string& key, E& out, std::initializer_list<E> all) {
    choose(key, true, out, all);
  }
  template <class E>
  void maybe_choice(const std::string& key, E& out, std::initializer_list<E> all) {
    choose(key, false, out, all);
  }

  TomlReader need_table(const std::string& key);
  TomlReader table(const std::string& key);                // absent: a reader without a table, which has nothing and needs nothing
  std::vector<TomlReader> tables(const std::string& key);  // array of tables; absent: none
  bool present() const { return m_table != nullptr; }

  // `condition` false: an error at the key (at the table when the key is absent or empty).
  void check(bool condition, const std::string& key, const std::string& message, const std::string& fix = {}) {
    if (!condition) add_error(key, message, fix);
  }
  void add_error(const std::string& key, const std::string& message, const std::string& fix = {});
  bool ok() const;        // no error so far, unknown keys aside
  Status finish() const;  // call once, after everything was read

  const std::string& path() const { return m_path; }  // dotted: "launch[0]"
  int line(const std::string& key) const;             // of the key, else of the table; 0 unknown

 private:
  struct State;
  void note(const std::string& key) const;              // the key is known
  const void* find(const std::string& key, bool need);  // notes it; records an error when needed and missing
  void read(const std::string& key, bool need, bool& out);
  void read(const std::string& key, bool need, int& out);
  void read(const std::string& key, bool need, std::int64_t& out);
  void read(const std::string& key, bool need, double& out);
  void read(const std::string& key, bool need, std::string& out);
  void read(const std::string& key, bool need, Expr& out);
  void read(const std::string& key, bool need, std::vector<std::string>& out);
  void read(const std::string& key, bool need, std::vector<int>& out);
  void read(const std::string& key, bool need, std::vector<std::int64_t>& out);
  void read(const std::string& key, bool need, std::vector<Expr>& out);
  void read(const std::string& key, bool need, std::map<std::string, std::int64_t>& out);
  void read(const std::string& key, bool need, std::map<std::string, double>& out);
  void read(const std::string& key, bool need, std::map<std::string, std::string>& out);
  template <class T>
  void read_list(const std::string& key, bool need, std::vector<T>& out);
  template <class T>
  void read_map(const std::string& key, bool need, std::map<std::string, T>& out);
  template <class T>
  bool convert(const void* node, const std::string& key, T& out);
  std::string dotted(const std::string& key) const;

  template <class E>
  void choose(const std::string& key, bool needed, E& out, std::initializer_list<E> all) {
    std::string text;
    std::vector<std::string> names;
    for (E e : all) names.emplace_back(name(e));
    if (!choose_text(key, needed, text, names)) return;
    for (E e : all)
      if (text == name(e)) out = e;
  }
  bool choose_text(const std::string& key, bool need, std::string& out, const std::vector<std::string>& names);

  std::shared_ptr<State> m_state;
  const void* m_table = nullptr;  // toml::table
  std::string m_path;
};

// The array of tables `key` (mnemonic, operand, scope, min, max; docs/formats/entry.md). Errors go to the reader.
Signature read_signature(TomlReader&, const std::string& key);

}  // namespace forge
