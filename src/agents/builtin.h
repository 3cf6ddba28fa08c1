// SPDX-License-Identifier: Apache-2.0
// The built-in agents: no LLM, no network. The architect chooses among a blueprint's decisions by the advice of entries and,
// on revision, by what limited the branch; the coder renders packages and tunes local decisions within the plan's ranges.
#pragma once
#include <memory>

#include "agents/agent.h"
#include "core/blueprint.h"

namespace forge {

std::unique_ptr<ArchitectureAgent> make_builtin_architect(Blueprint);
std::unique_ptr<CodingAgent> make_builtin_coder(Blueprint);

}  // namespace forge
