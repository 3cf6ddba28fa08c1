// SPDX-License-Identifier: Apache-2.0
// What can be seen of a kernel from outside: instructions in its image, how it uses the machine. Never source.
// A Signature is a mechanism check: a pattern that must hold in an image.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "util/result.h"

namespace forge {

// Where instructions are counted.
enum class Scope { image, hot_loop };  // hot_loop: the innermost loops that hold the most vector instructions
const char* name(Scope);

struct SignatureTerm {
  std::string mnemonic;  // glob over lower-case mnemonics: Intel's "vfmadd*ps", "vmovntps"; SASS with modifiers, "hgmma*", "ldg*.128*"
  std::string operand;   // "zmm", "ymm", "xmm", "mem", "" = any: must appear among the operands
  Scope scope = Scope::image;
  std::int64_t min = 1;
  std::optional<std::int64_t> max;
};
struct Signature {
  std::vector<SignatureTerm> all;
  bool empty() const { return all.empty(); }
};

// What is wrong with a term, by key; empty when it is well formed.
struct SignatureProblem {
  std::string key, message, fix;
};
std::vector<SignatureProblem> problems_of(const SignatureTerm&);

struct LoopView {
  std::string symbol;
  std::uint64_t offset = 0;  // of the loop head in the symbol
  int instructions = 0, vector_instructions = 0, fma = 0, loads = 0, stores = 0, spills = 0;
  std::string listing;  // Intel syntax or SASS, at most 60 lines
};

struct InstructionMix {
  std::map<std::string, std::int64_t> mnemonics;  // whole image
  std::map<std::string, std::int64_t> hot;        // hot loops only
  // "vfmadd231ps zmm": instructions that have such an operand among those they show (zmm ymm xmm mem), image and hot loops.
  std::map<std::string, std::int64_t> operands, hot_operands;
  int widest_vector_bits = 0;   // SASS: of a thread's accesses to global memory
  int spills = 0;               // in hot loops: vector stores to the stack; SASS: loads and stores of local memory
  std::vector<LoopView> loops;  // hottest first, at most 4
  std::int64_t instructions = 0, undecoded = 0;
  std::vector<std::string> notes;  // how it was taken, where that limits what it can tell
};

struct SignatureResult {
  bool ok = false;
  std::vector<std::string> found;
};  // one line a term: "vmovntps in image: 8 (min 1)"

// Evidence for the architecture agent: named metrics, the machine's ceilings among them, and what they were taken from.
struct Evidence {
  std::string subject;                    // "expert onednn 2.6.3", "gen0 1f2e...", "candidate 9a..."
  std::map<std::string, double> metrics;  // units in the name: seconds, achieved_gflops, achieved_gbs, memory_percent,
                                          // compute_percent, working_set_bytes, vector_bits, spills, fma_per_load, ...
  InstructionMix mix;
  std::vector<std::string> notes;                           // what was missing and why; how the library was composed
  std::vector<std::pair<std::string, double>> hot_symbols;  // share of samples, for libraries: mapping or symbol, JIT code as "jit"
};

}  // namespace forge
