// SPDX-License-Identifier: Apache-2.0
// A plan, as the journal keeps it and as a model proposes it. Input: plan.json, or a call's arguments.
// link: forge_agents
#include "core/plan.h"

#include "agents/plan_tool.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(plan) {
  const std::string text(bytes);
  if (const auto p = parse_plan(text, "plan.json")) {
    (void)check_plan(*p);
    const std::string json = plan_to_json(*p);
    const auto again = parse_plan(json, "again");
    HOLDS(again && plan_to_json(*again) == json);
  }
  PlanRequest request;
  request.definition.name = "gemm_f32";
  request.machine.target.name = "cpu:x86-64-avx2";
  for (const int revision : {0, 1})
    if (const auto p = read_proposed_plan(text, request, revision)) (void)check_plan(*p);
}

}  // namespace forge
