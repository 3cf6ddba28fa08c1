// SPDX-License-Identifier: Apache-2.0
// Counters of one call on a GPU, through Nsight Compute: it starts the call as a program of its own (Runner::once) and reads the card
// while it runs. Evidence only, never a verdict. Whatever is missing becomes a note that says why.
#pragma once
#include "core/evidence.h"
#include "gate/ncu_csv.h"
#include "runner/runner.h"

namespace forge {

struct CallCounters {
  std::vector<KernelCounters> kernels;
  std::vector<std::string> notes;  // metrics that this card or this version does not know
  std::string made;                // an expert's description in that process: it may have tuned itself differently there
};
// `folder`: scratch, of the caller's; `until`: a time of monotonic_seconds. Errors: unsupported (no ncu, not permitted), timeout, crashed.
Result<CallCounters> take_counters(const OnceProgram&, const fs::path& folder, double until);
// Of one kernel of the call.
Result<InstructionMix> take_instructions(const OnceProgram&, const fs::path& folder, double until, std::size_t kernel = 0);
std::size_t slowest_kernel(const CallCounters&);

// Metrics counter_*, the kernels' shares of the time as hot symbols, and a note a kernel with its launch shape.
void add_counter_metrics(Evidence&, const CallCounters&);
// All of that for a call, within `seconds`; `library`: its instruction mix too, since there is no image to disassemble.
void add_counters(Evidence&, const Runner&, const CallSpec&, bool library, double seconds);

}  // namespace forge
