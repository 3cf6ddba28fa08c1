// SPDX-License-Identifier: Apache-2.0
// Goal mode, the baseline arm: no plan and no memory. In the architect's seat sits something that only says "faster": M0 asks for a
// correct kernel, and each further milestone for one that beats the best so far.
#pragma once
#include <memory>
#include <optional>

#include "agents/agent.h"
#include "core/blueprint.h"

namespace forge {

// `vocabulary`: of a coder that renders a template, which then has all its decisions to try, in no order that anybody chose.
std::unique_ptr<ArchitectureAgent> make_goal_architect(std::optional<Blueprint> vocabulary);

}  // namespace forge
