// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: reads what a server sent, a record of an earlier version, or a file that anybody may have written, where a
// missing or odd field is no error but empty. Where it is an error, core/json_reader.h reads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "core/json_io.h"

namespace forge {

// Null: not an object, or it has no such field. What is there may be JSON's null.
inline const Json* find_field(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}
inline const Json& field_of(const Json& object, const char* key) {
  static const Json nothing;
  const Json* found = find_field(object, key);
  return found ? *found : nothing;
}

// A string; the JSON text of anything else but null.
inline std::string text_of(const Json& value) {
  if (value.is_null()) return {};
  return value.is_string() ? value.get<std::string>() : dump(value);
}
inline std::string text_of(const Json& object, const char* key) { return text_of(field_of(object, key)); }

// A string, and nothing else.
inline std::string string_of(const Json& object, const char* key) {
  const Json& value = field_of(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// Never negative: these are counts and positions.
inline std::int64_t count_of(const Json& object, const char* key) {
  const Json& value = field_of(object, key);
  return value.is_number_unsigned() ? static_cast<std::int64_t>(std::min<std::uint64_t>(value.get<std::uint64_t>(), INT64_MAX / 16)) : 0;
}

}  // namespace forge
