// SPDX-License-Identifier: Apache-2.0
// How inputs are filled (all kinds but `adversarial`, which is the operator's own code).
//   normal           scale * N(0,1)
//   heavy_tailed     scale * Student t with 2 degrees of freedom, clipped at 1e4: infinite variance, outliers anywhere
//   large_magnitude  scale * N(0,1) * 2^k, k uniform in 0..13: magnitudes mixed within one tensor
//   small_integers   uniform in [-scale, scale]: sums of products are exact in any order
// then + offset[tensor], clipped to the largest finite value of the type, rounded to nearest even.
#pragma once
#include <cstdint>
#include <string>

#include "core/operator.h"
#include "gate/thread_team.h"

namespace forge {

// Same content for the same seed, however many threads there are. Not for `adversarial`.
void fill_tensor(const GeneratorRule&, const std::string& tensor, DType, std::uint64_t seed, void* data, std::int64_t count, ThreadTeam&);
double draw_scalar(const GeneratorRule&, const std::string& tensor, std::uint64_t seed);  // for inputs passed by value

}  // namespace forge
