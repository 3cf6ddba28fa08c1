// SPDX-License-Identifier: Apache-2.0
// What Nsight Compute prints: metrics, and SASS with counts. Input: its CSV.
// link: forge_gate
#include "fuzz/target.h"
#include "gate/ncu_csv.h"

namespace forge {

FORGE_FUZZ_TARGET(ncu) {
  const std::string text(bytes);
  for (const KernelCounters& k : parse_ncu_counters(text).kernels)
    for (const auto& [metric, value] : k.values) HOLDS(!metric.empty() && value == value);
  const InstructionMix mix = counted_mix(parse_ncu_source(text));
  HOLDS(mix.instructions >= 0);
  (void)ncu_number(text);
}

}  // namespace forge
