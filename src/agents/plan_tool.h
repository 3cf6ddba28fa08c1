// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: a plan as the arguments of a tool call.
#pragma once
#include <string>
#include <vector>

#include "agents/agent.h"
#include "core/json_io.h"
#include "model/model.h"

namespace forge {

std::vector<ModelTool> plan_tools(bool may_end);  // propose_plan, and on a revision no_further_plan
// The fields that are the run's own (format, operator, target, revision) are filled in. The error names the field.
Result<Plan> read_proposed_plan(const std::string& arguments, const PlanRequest&, int revision);

}  // namespace forge
