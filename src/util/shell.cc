// SPDX-License-Identifier: Apache-2.0
#include "util/shell.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace forge {

std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || std::string_view("_@%+:,./-").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string out = "'";
  for (const char c : text) c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

}  // namespace forge
