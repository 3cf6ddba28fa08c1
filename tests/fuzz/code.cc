// SPDX-License-Identifier: Apache-2.0
// Sampled code, which a runner sends. Input: two bytes that name places in it, then machine code.
// link: forge_build
#include "build/build.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(code) {
  if (bytes.size() < 3) return;
  const auto a = static_cast<unsigned char>(bytes[0]), b = static_cast<unsigned char>(bytes[1]);
  const std::string text(bytes.substr(2));
  const std::uint64_t base = b & 1 ? 0x7f0000001000 : UINT64_MAX - 64;  // addresses are the runner's to choose
  (void)disassemble_code({{base, text}, {base + text.size() / 2, text}}, "jit", {base + a, base + b, 0});
  const InstructionMix mix = disassemble_code({{base, text}}, "jit");
  HOLDS(mix.instructions >= 0 && mix.undecoded >= 0);
}

}  // namespace forge
