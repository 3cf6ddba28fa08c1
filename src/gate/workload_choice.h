// SPDX-License-Identifier: Apache-2.0
// Which workloads a correctness run checks.
#pragma once
#include <string>
#include <vector>

#include "core/operator.h"
#include "util/random.h"

namespace forge {

// The timed shape with its own and with one more generator (an algorithm that is exact only on the small shapes is caught there),
// the public workloads, every corner shape, every hidden draw; every generator at least once, an adversarial one once for each of
// its `adversarial_variants`, all on small shapes. Which generator meets which shape is drawn too.
std::vector<Workload> choose_workloads(const TaskFile&, int adversarial_variants, Random&);

}  // namespace forge
