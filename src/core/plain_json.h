// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: the JSON that this program writes, parsed several times as fast as the library parses all of JSON.
#pragma once
#include <string_view>

#include "core/json_io.h"

namespace forge {

// Printable ASCII without escapes, a few levels, a few dozen keys an object and none twice; then `out` is what the library makes of
// the text. False: the text has something else, or a fault, which the library then says.
bool parse_plain_json(std::string_view text, Json& out);

}  // namespace forge
