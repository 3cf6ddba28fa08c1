// SPDX-License-Identifier: Apache-2.0
// What a tensor map must keep: cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col refuse the rest on a card, without a word on why.
// Private to this layer.
#pragma once
#include <optional>
#include <string>

#include "core/launch_plan.h"

namespace forge {

struct MapProblem {
  std::string field, message, fix;  // field: behind "map[i]", as ".box[0]"
};
// What no shape can mend: box, im2col, swizzle, l2, given the element's type.
std::optional<MapProblem> problem_of(const MapSpec&, DType);
// The type of the map's elements; nothing when there is none (an unknown tensor, a type that maps do not have).
std::optional<DType> element_type(const MapSpec&, const Definition&);
// In numbers. `names`: axes, lets, sm_count. `index` is the map's place in the plan.
Result<ConcreteMap> make_concrete_map(const LaunchPlan&, std::size_t index, const Definition&, const std::vector<ConcreteWorkspace>&,
                                      const Names& names);

}  // namespace forge
