// SPDX-License-Identifier: Apache-2.0
// A journal from a fuzzer's bytes: a line's hash is set right first, or hardly an input would come past it; a line that ends with "raw"
// keeps the one that it has.
#pragma once
#include <string>
#include <string_view>

#include "util/hash.h"
#include "util/text.h"

namespace forge::fuzz {

inline std::string chained(std::string_view bytes) {
  std::string out, previous;
  for (std::string line : split(std::string(bytes), '\n')) {
    const std::size_t hash = line.rfind(",\"hash\":\""), prev = line.rfind(",\"prev\":\"");
    if (!line.ends_with("raw") && hash != std::string::npos && prev != std::string::npos && prev < hash) {
      line = line.substr(0, prev) + ",\"prev\":\"" + previous + "\"}";
      previous = sha256_hex(line).substr(0, 16);
      line = line.substr(0, line.size() - 1) + ",\"hash\":\"" + previous + "\"}";
    }
    out += line + "\n";
  }
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace forge::fuzz
