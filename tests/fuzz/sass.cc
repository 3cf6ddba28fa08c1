// SPDX-License-Identifier: Apache-2.0
// Input: a listing of nvdisasm -c or cuobjdump -sass.
// link: forge_build
#include "build/sass.h"

#include "build/build.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(sass) {
  const InstructionMix mix = sass_mix(std::string(bytes));
  HOLDS(mix.loops.size() <= 4 && mix.instructions >= 0);
  Signature s;
  s.all.push_back({.mnemonic = "*g*", .operand = "", .scope = Scope::hot_loop, .min = 1, .max = 4});
  (void)check_signature(s, mix);
}

}  // namespace forge
