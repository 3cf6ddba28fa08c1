// SPDX-License-Identifier: Apache-2.0
// A language model in the architect's seat. Its plan is validated, and what is wrong goes back to it until the plan is right or its
// tries are spent. Every question is a step of the journal.
#pragma once
#include <memory>
#include <string>

#include "agents/agent.h"
#include "agents/driver.h"
#include "core/blueprint.h"

namespace forge {

inline constexpr int kPlanTries = 5;

struct ModelArchitectOptions {
  std::string instructions;             // the system prompt
  std::optional<Blueprint> vocabulary;  // of a coder that renders a template: plans may use nothing else
  Budget budget;                        // tokens and dollars of the run: no further question once either is spent
  double seconds = 900;                 // of one question, retries included
};
std::unique_ptr<ArchitectureAgent> make_model_architect(std::unique_ptr<Model>, Journal&, Meter&, ModelArchitectOptions);

}  // namespace forge
