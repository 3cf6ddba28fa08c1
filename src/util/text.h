// SPDX-License-Identifier: Apache-2.0
// Small text helpers: the {{name}} expander that blueprints and reports use, and formatting of figures.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.h"

namespace forge {

// Replaces every {{name}}. An unknown name is an error that gives the line; a value is inserted as it is.
Result<std::string> expand(std::string_view text, const std::map<std::string, std::string>& values, const std::string& file);

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string trim(std::string_view);
bool glob_match(std::string_view pattern, std::string_view text);                     // '*' and '?'
std::string format_seconds(double);                                                   // "12.3 ms"
std::string closest(const std::string& word, const std::vector<std::string>& known);  // for "did you mean"; empty when none is near

std::size_t utf8_length(std::string_view);                   // of the well-formed sequence at the front; 0: none. Not of an empty text
std::size_t utf8_prefix(std::string_view);                   // bytes up to the first that is not UTF-8; all of them in a valid text
std::string utf8_head(std::string_view, std::size_t bytes);  // at most so many bytes, no sequence cut

}  // namespace forge
