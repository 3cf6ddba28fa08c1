// SPDX-License-Identifier: Apache-2.0
// What an architecture agent that is a model gets to read. It sees evidence and certified knowledge, never a source.
#pragma once
#include <string>

#include "agents/agent.h"
#include "core/blueprint.h"

namespace forge {

// The operator, the machine, the reference's evidence, the knowledge that applies. `vocabulary`: the blueprint whose decisions the coder
// understands; null: the coder writes source and takes any decision.
std::string architect_brief(const PlanRequest&, const Blueprint* vocabulary);
// What was planned, what became of it, what the best kernel looks like.
std::string trajectory_brief(const ReviseRequest&);

}  // namespace forge
