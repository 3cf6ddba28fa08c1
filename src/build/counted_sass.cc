// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>

#include "build/build.h"
#include "build/sass.h"
#include "util/process.h"

namespace forge {
namespace {

constexpr double kHotShare = 0.5;

// What waits repeats itself: in a warp-specialised kernel the polls of a barrier are the most executed instructions by far.
bool waits(const std::string& text) {
  const std::size_t at = text.starts_with('@') ? text.find(' ') + 1 : 0;
  for (const char* start : {"BRA", "NANOSLEEP", "SYNCS", "YIELD", "WARPSYNC", "NOP"})
    if (text.compare(at, std::string(start).size(), start) == 0) return true;
  return false;
}

// As a disassembler would have printed it.
std::string listing_of(const std::vector<CountedKernel>& kernels, double least) {
  std::string out;
  for (const CountedKernel& k : kernels) {
    out += "Function : " + k.name + "\n";
    for (const CountedLine& l : k.lines)
      if (l.executed >= least) out += fmt::format("/*{:x}*/ {} ;\n", l.address, l.text.substr(0, l.text.find(';')));
  }
  return out;
}

}  // namespace

InstructionMix counted_mix(const std::vector<CountedKernel>& kernels) {
  double most = 0;
  for (const CountedKernel& k : kernels)
    for (const CountedLine& l : k.lines)
      if (!waits(l.text)) most = std::max(most, l.executed);
  InstructionMix mix = sass_mix(listing_of(kernels, 0));
  mix.loops.clear();  // found by control flow; here the counts say more
  mix.spills = 0;
  mix.hot.clear();
  if (most > 0) {
    mix.hot = sass_mix(listing_of(kernels, kHotShare * most)).mnemonics;
    for (const auto& [mnemonic, times] : mix.hot)
      if (mnemonic.starts_with("stl") || mnemonic.starts_with("ldl")) mix.spills += int(times);
    mix.notes.push_back("hot: what was executed at least half as often as the most executed instruction that does not wait");
  } else {
    mix.notes.push_back("nothing says how often each instruction was executed");
  }
  return mix;
}

fs::path find_ncu() {
  if (const char* named = std::getenv("FORGE_NCU"); named && *named) return find_program(named);
  for (const char* candidate : {"ncu", "/usr/local/cuda/bin/ncu"})
    if (fs::path program = find_program(candidate); !program.empty()) return program;
  fs::path newest;  // installations carry their version in the folder's name
  glob_t found{};
  if (glob("/opt/nvidia/nsight-compute/*/ncu", 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i)
      if (fs::path program = find_program(found.gl_pathv[i]); !program.empty()) newest = program;
  globfree(&found);
  return newest;
}

}  // namespace forge
