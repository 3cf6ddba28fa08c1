// SPDX-License-Identifier: Apache-2.0
#include "core/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "util/text.h"

namespace forge {

struct JsonReader::State {
  std::string where;
  std::optional<Error> error;
  bool about_absent_key = false;
  struct Visited {
    const Json* object;
    std::set<std::string> known;
    std::string path;
    bool strict = true;
  };
  std::vector<Visited> objects;  // in reading order
  Visited* visited(const Json* object) {
    for (Visited& v : objects)
      if (v.object == object) return &v;
    return nullptr;
  }
  void visit(const Json* object, const std::string& path) {
    if (!visited(object)) objects.push_back({object, {}, path});
  }
};

JsonReader::JsonReader(const Json& value, const std::string& where) : m_state(std::make_shared<State>()) {
  m_state->where = where;
  if (!value.is_object()) {
    wrong(value, "", "an object");
    return;
  }
  m_value = &value;
  m_state->visit(m_value, "");
}

std::string JsonReader::dotted(const std::string& key) const {
  if (key.empty()) return m_path;
  return m_path.empty() ? key : m_path + "." + key;
}

bool JsonReader::ok() const { return !m_state->error; }

void JsonReader::add_error(const std::string& key, const std::string& message, const std::string& fix) {
  if (m_state->error) return;
  m_state->error = Error{.code = Code::bad_input, .message = message, .file = m_state->where, .line = 0, .field = dotted(key), .fix = fix};
  m_state->about_absent_key = !present() || !m_value->contains(key.substr(0, key.find_first_of(".[")));
}

bool JsonReader::wrong(const Json& value, const std::string& key, const char* expected) {
  add_error(key, fmt::format("expected {}, found {}", expected,
                             value.is_null()     ? "null"
                             : value.is_object() ? "an object"
                             : value.is_array()  ? "an array"
                                                 : fmt::format("a {}", value.type_name())));
  return false;
}

void JsonReader::ignore_unknown_keys() {
  if (present()) m_state->visited(m_value)->strict = false;
}

const Json* JsonReader::find(const std::string& key, bool need) {
  if (!present()) return nullptr;
  m_state->visited(m_value)->known.insert(key);
  const auto it = m_value->find(key);
  if (it != m_value->end() && !it->is_null()) return &*it;
  if (need) add_error(key, it == m_value->end() ? "missing" : "must not be null");
  return nullptr;
}

bool JsonReader::has(const std::string& key) const {
  if (!present()) return false;
  m_state->visited(m_value)->known.insert(key);
  const auto it = m_value->find(key);
  return it != m_value->end() && !it->is_null();
}

Status JsonReader::finish() const {
  // A misspelt key is also a missing one; the misspelling is the better message.
  if (m_state->error && !m_state->about_absent_key) return fail(*m_state->error);
  for (const State::Visited& v : m_state->objects) {
    if (!v.strict) continue;
    const std::vector<std::string> known(v.known.begin(), v.known.end());
    for (const auto& [key, item] : v.object->items()) {
      if (v.known.count(key)) continue;
      const std::string near = closest(key, known);
      return fail(Error{.code = Code::bad_input,
                        .message = "unknown key",
                        .file = m_state->where,
                        .line = 0,
                        .field = v.path.empty() ? key : v.path + "." + key,
                        .fix = near.empty() ? fmt::format("known here: {}", join(known, ", ")) : fmt::format("did you mean '{}'?", near)});
    }
  }
  if (m_state->error) return fail(*m_state->error);
  return {};
}

void JsonReader::format(int version) {
  int found = version;
  need("format", found);
  check(found == version, "format", fmt::format("format {} is not known", found), fmt::format("this program reads format {}", version));
}

void JsonReader::need_text(const std::string& key, std::string& out) {
  need(key, out);
  if (has(key)) check(!trim(out).empty(), key, "must not be empty");
}

bool JsonReader::known_choice(const std::string& key, const std::string& text, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), text) != names.end()) return true;
  const std::string near = closest(text, names);
  add_error(key, fmt::format("'{}' is not one of {}", text, join(names, ", ")),
            near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  return false;
}

JsonReader JsonReader::object(const std::string& key) {
  JsonReader child;
  child.m_state = m_state;
  child.m_path = dotted(key);
  const Json* value = find(key, false);
  if (!value) return child;
  if (!value->is_object()) return wrong(*value, key, "an object"), child;
  child.m_value = value;
  m_state->visit(value, child.m_path);
  return child;
}

JsonReader JsonReader::need_object(const std::string& key) {
  find(key, true);
  return object(key);
}

std::vector<JsonReader> JsonReader::objects(const std::string& key) {
  std::vector<JsonReader> rows;
  const Json* list = find(key, false);
  if (!list) return rows;
  if (!list->is_array()) return wrong(*list, key, "an array of objects"), rows;
  for (const Json& item : *list) {
    const std::string item_key = fmt::format("{}[{}]", key, rows.size());
    if (!item.is_object()) return wrong(item, item_key, "an object"), rows;
    JsonReader row;
    row.m_state = m_state;
    row.m_value = &item;
    row.m_path = dotted(item_key);
    m_state->visit(&item, row.m_path);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<JsonReader> JsonReader::need_objects(const std::string& key) {
  find(key, true);
  return objects(key);
}

bool JsonReader::convert(const Json& j, const std::string& key, bool& out) {
  if (!j.is_boolean()) return wrong(j, key, "true or false");
  out = j.get<bool>();
  return true;
}

bool JsonReader::convert(const Json& j, const std::string& key, std::int64_t& out) {
  if (!j.is_number_integer()) return wrong(j, key, "an integer");
  if (j.is_number_unsigned() && j.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return add_error(key, "is out of range"), false;
  out = j.get<std::int64_t>();
  return true;
}

bool JsonReader::convert(const Json& j, const std::string& key, int& out) {
  std::int64_t wide = 0;
  if (!convert(j, key, wide)) return false;
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    return add_error(key, fmt::format("{} is out of range", wide)), false;
  out = static_cast<int>(wide);
  return true;
}

bool JsonReader::convert(const Json& j, const std::string& key, std::uint64_t& out) {
  if (!j.is_number_integer()) return wrong(j, key, "an integer");
  if (!j.is_number_unsigned() && j.get<std::int64_t>() < 0) return add_error(key, "must not be negative"), false;
  out = j.get<std::uint64_t>();
  return true;
}

bool JsonReader::convert(const Json& j, const std::string& key, double& out) {
  if (j.is_string()) {
    const std::string& text = j.get_ref<const std::string&>();
    if (text == "NaN") return out = std::numeric_limits<double>::quiet_NaN(), true;
    if (text == "Infinity") return out = std::numeric_limits<double>::infinity(), true;
    if (text == "-Infinity") return out = -std::numeric_limits<double>::infinity(), true;
  }
  if (!j.is_number()) return wrong(j, key, "a number");
  out = j.get<double>();
  return true;
}

bool JsonReader::convert(const Json& j, const std::string& key, std::string& out) {
  if (!j.is_string()) return wrong(j, key, "a string");
  out = j.get<std::string>();
  return true;
}

Json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace forge
