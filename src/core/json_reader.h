// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: reads a JSON value into structs; the twin of TomlReader (core/toml_io.h), with the same habits:
// getters keep the first error, finish() returns it, or the first key that nobody asked for.
// The Json must outlive the reader. A double may be written as "NaN", "Infinity" or "-Infinity".
#pragma once
#include <initializer_list>
#include <memory>

#include "core/json_io.h"

namespace forge {

class JsonReader {
 public:
  JsonReader(const Json& value, const std::string& where);  // anything but an object is an error

  void format(int version);                // demands "format": version
  bool has(const std::string& key) const;  // present and not null

  // T: bool, int, int64_t, uint64_t, double, std::string, std::vector or std::map from std::string of one of these.
  template <class T>
  void need(const std::string& key, T& out) {
    if (const Json* j = find(key, true)) convert(*j, key, out);
  }
  template <class T>
  void maybe(const std::string& key, T& out) {
    if (const Json* j = find(key, false)) convert(*j, key, out);
  }
  void need_text(const std::string& key, std::string& out);  // a string that is not blank

  template <class E>
  void need_choice(const std::string& key, E& out, std::initializer_list<E> all) {
    std::string text;
    std::vector<std::string> names;
    for (E e : all) names.emplace_back(name(e));
    need(key, text);
    if (!present() || !ok() || !known_choice(key, text, names)) return;
    for (E e : all)
      if (text == name(e)) out = e;
  }

  JsonReader object(const std::string& key);  // absent or null: a reader that has nothing and needs nothing
  JsonReader need_object(const std::string& key);
  std::vector<JsonReader> objects(const std::string& key);  // absent: none
  std::vector<JsonReader> need_objects(const std::string& key);
  const Json* find(const std::string& key, bool need);  // null counts as absent
  bool present() const { return m_value != nullptr; }

  void check(bool condition, const std::string& key, const std::string& message, const std::string& fix = {}) {
    if (!condition) add_error(key, message, fix);
  }
  void add_error(const std::string& key, const std::string& message, const std::string& fix = {});
  bool ok() const;
  void ignore_unknown_keys();  // for formats of others, whose loaders do the same
  Status finish() const;
  const std::string& path() const { return m_path; }
  const Json& value() const { return *m_value; }

 private:
  struct State;
  JsonReader() = default;
  std::string dotted(const std::string& key) const;
  bool known_choice(const std::string& key, const std::string& text, const std::vector<std::string>& names);
  bool wrong(const Json& value, const std::string& key, const char* expected);

  bool convert(const Json&, const std::string& key, bool&);
  bool convert(const Json&, const std::string& key, int&);
  bool convert(const Json&, const std::string& key, std::int64_t&);
  bool convert(const Json&, const std::string& key, std::uint64_t&);
  bool convert(const Json&, const std::string& key, double&);
  bool convert(const Json&, const std::string& key, std::string&);
  template <class T>
  bool convert(const Json& list, const std::string& key, std::vector<T>& out) {
    if (!list.is_array()) return wrong(list, key, "an array");
    std::vector<T> values;
    for (const Json& item : list) {
      T v{};
      if (!convert(item, key + "[" + std::to_string(values.size()) + "]", v)) return false;
      values.push_back(std::move(v));
    }
    out = std::move(values);
    return true;
  }
  template <class T>
  bool convert(const Json& object, const std::string& key, std::map<std::string, T>& out) {
    if (!object.is_object()) return wrong(object, key, "an object");
    std::map<std::string, T> values;
    for (const auto& [item_key, item] : object.items())
      if (!convert(item, key + "." + item_key, values[item_key])) return false;
    out = std::move(values);
    return true;
  }

  std::shared_ptr<State> m_state;
  const Json* m_value = nullptr;
  std::string m_path;
};

// Doubles that JSON has no word for become strings.
Json number(double);
// The line of a field ("milestones[1].decisions[0].choice") in a well-formed text; of its nearest parent when it is missing.
int line_of_field(const std::string& text, const std::string& field);
// Adds the line to an error about a field of `text`.
Error with_line(Error, const std::string& text);

// The nouns, for the parsers of those that hold them.
Interval get_interval(JsonReader);
Signature get_signature(JsonReader&, const std::string& key);
SignatureResult get_signature_result(JsonReader);
InstructionMix get_instruction_mix(JsonReader);
Evidence get_evidence(JsonReader);
NoiseFloor get_noise_floor(JsonReader);
PairedTiming get_paired_timing(JsonReader);
Verdict get_verdict(JsonReader);
Plan get_plan(JsonReader);
Task get_task(JsonReader);
KernelPackage get_package(JsonReader);
Generation get_generation(JsonReader);
Certification get_certification(JsonReader);

// Text to noun: parse, read, and say the line of what is wrong.
template <class T>
Result<T> parse_with(T (*get)(JsonReader), const std::string& text, const std::string& file) {
  FORGE_TRY_ASSIGN(const Json json, parse_json(text, file));
  JsonReader reader(json, file);
  T value = get(reader);
  if (Status s = reader.finish(); !s) return fail(with_line(s.error(), text));
  return value;
}
template <class T>
Result<T> read_with(T (*get)(JsonReader), const Json& json, const std::string& where) {
  JsonReader reader(json, where);
  T value = get(reader);
  FORGE_TRY(reader.finish());
  return value;
}

}  // namespace forge
