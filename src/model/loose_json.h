// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: reads what a server sent, or a file that anybody may have written, where a missing or odd field is no error
// but empty.
#pragma once
#include "core/json_io.h"

namespace forge {

inline const Json& field_of(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto at = object.find(key);
  return at == object.end() ? nothing : *at;
}

// A string; the JSON text of anything else but null.
inline std::string text_of(const Json& object, const char* key) {
  const Json& value = field_of(object, key);
  if (value.is_null()) return {};
  return value.is_string() ? value.get<std::string>() : dump(value);
}

// Never negative: these are counts and positions.
inline std::int64_t count_of(const Json& object, const char* key) {
  const Json& value = field_of(object, key);
  return value.is_number_unsigned() ? static_cast<std::int64_t>(std::min<std::uint64_t>(value.get<std::uint64_t>(), INT64_MAX / 16)) : 0;
}

}  // namespace forge
