// SPDX-License-Identifier: Apache-2.0
// Which machine instructions a kernel must not hold, and a linear sweep that finds them. A tripwire, not a proof: the boundary
// is the sandbox of the process that runs the kernel. Private to this layer.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace forge {

// What admission needs to know of one instruction that it has passed.
struct SweptInstruction {
  std::uint64_t offset = 0;
  std::uint8_t length = 0;
  std::uint8_t displacement_at = 0, immediate_at = 0;  // of a 32-bit field in the instruction; 0: none
  bool has_target = false;                             // a direct jump or call
  std::uint64_t target = 0;                            // in the section
};

struct InstructionFinding {
  std::string rule;  // "instruction", "isa", "undecodable"
  std::uint64_t offset = 0;
  std::string what;  // the instruction, why not, and what to write instead
};

struct Sweep {
  std::vector<SweptInstruction> instructions;                    // ascending, without gaps unless there is an "undecodable" finding
  std::vector<InstructionFinding> findings;                      // at most 16
  const SweptInstruction* at(std::uint64_t offset) const;        // the one that starts there, or null
  const SweptInstruction* covering(std::uint64_t offset) const;  // the one that holds that byte, or null
};
// allow_evex: false for a target without AVX-512.
Sweep sweep_instructions(std::string_view code, bool allow_evex);

}  // namespace forge
