// SPDX-License-Identifier: Apache-2.0
// Straight decoding of a stretch of code, and the loops in it. Private to this layer.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace forge {

class X86Decoder;

// One instruction, as far as an instruction mix needs it.
struct CodeLine {
  std::uint64_t offset = 0;
  std::uint64_t target = 0;  // of a direct jump
  std::uint16_t mnemonic = 0;
  std::uint16_t vector_bits = 0;  // widest vector register that it shows
  std::uint8_t length = 0;
  enum class Flow : std::uint8_t { next, conditional, jump, stop } flow = Flow::next;  // calls go on; stop: ret, jump by register
  bool known_target = false;                                                           // of a jump
  bool scalar = false;                                                                 // one element of a vector register: vaddss
  bool fma = false, load = false, store = false;
  bool stack_store = false;                                 // stores a vector register beside the stack pointer or frame pointer
  bool xmm = false, ymm = false, zmm = false, mem = false;  // among its visible operands
  bool is_vector() const { return vector_bits > 0 && !scalar; }
};

struct CodeRegion {
  std::string symbol;
  std::uint64_t address = 0;  // of its first byte, for listings: 0 in an object
  std::string_view bytes;
  std::vector<CodeLine> lines;
  std::int64_t undecoded = 0;  // bytes skipped
};
// All of it, one instruction after the other.
void decode_region(const X86Decoder&, CodeRegion&);
// Only what control flow leads to from these offsets. A code generator keeps its tables of constants beside its code, and they
// decode as instructions that nobody runs.
void decode_reachable(const X86Decoder&, CodeRegion&, const std::vector<std::uint64_t>& entries);

// A natural loop (its head dominates the jump back) that holds no other: the lines of its blocks, ascending. A block that the
// compiler moved out of line and that jumps back into an outer loop is none.
struct CodeLoop {
  std::uint32_t head = 0;
  std::vector<std::uint32_t> lines;
  double heat = 0;
};
// With the heat of each: vector instructions, wider ones counting more.
std::vector<CodeLoop> innermost_loops(const CodeRegion&);
double heat(const CodeRegion&, const std::vector<std::uint32_t>& lines);

// What a disassembly shows.
inline constexpr std::size_t kHotLoops = 4, kListingLines = 60;

}  // namespace forge
