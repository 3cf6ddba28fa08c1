// SPDX-License-Identifier: Apache-2.0
// Part of make_concrete: tensor maps. Private to this layer.
#pragma once
#include "core/launch_plan.h"

namespace forge {

Result<ConcreteMap> make_concrete_map(const MapSpec&, std::size_t index, const Names&, const Definition&, const AxisValues&,
                                      const std::vector<ConcreteWorkspace>&);

}  // namespace forge
