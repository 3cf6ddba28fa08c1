// SPDX-License-Identifier: Apache-2.0
// What a compiler says of foreign source, and that source. Input: source, ====, output.
// link: forge_build
#include "build/compiler_log.h"

#include "fuzz/target.h"
#include "util/text.h"

namespace forge {

FORGE_FUZZ_TARGET(compiler_log) {
  const auto texts = fuzz::parts(bytes, 2);
  (void)renames_lines(texts[0]);
  const std::string log = clean_log(texts[1], "/build-1");
  HOLDS(utf8_prefix(log) == log.size());
  for (const unsigned char c : log) HOLDS(c >= ' ' || c == '\n' || c == '\t');
}

}  // namespace forge
