// SPDX-License-Identifier: Apache-2.0
#include "agents/plan_tool.h"

#include <algorithm>

namespace forge {

namespace {

// docs/formats/plan.md as a schema; what it cannot say, check_plan does.
constexpr const char* k_schema = R"({"type":"object","required":["reason","milestones"],"properties":{
"reason":{"type":"string","description":"why this plan, or what the figures taught: one or two sentences"},
"restart_at":{"type":"integer","minimum":0,"description":"index of the earliest milestone that differs from the plan before; 0 in a first plan"},
"milestones":{"type":"array","minItems":1,"items":{"type":"object","required":["id","title","decisions"],"properties":{
"id":{"type":"string","description":"M0, M1, ... in order"},"title":{"type":"string"},
"prerequisites":{"type":"array","items":{"type":"string"}},"cost":{"type":"integer","minimum":1},
"acceptance":{"type":"object","properties":{
"performance":{"type":"object","description":"never in M0","required":["against","min_gain"],"properties":{
"against":{"enum":["reference","branch_best","global_best"]},"min_gain":{"type":"number"}}},
"mechanism":{"type":"array","items":{"type":"object","required":["mnemonic"],"properties":{
"mnemonic":{"type":"string","description":"lower case, may hold *"},"operand":{"type":"string"},
"scope":{"enum":["image","hot"]},"min":{"type":"integer"},"max":{"type":"integer"}}}}}},
"decisions":{"type":"array","minItems":1,"items":{"type":"object","required":["id","name","choice","structural","evidence","expected_effect"],
"properties":{"id":{"type":"string","description":"D<m>.<n>, n from 1"},"name":{"type":"string"},"choice":{"type":"string"},
"structural":{"type":"boolean"},"range":{"type":"array","items":{"type":"string"},"description":"local decisions only, the choice among them"},
"rejected":{"type":"array","items":{"type":"object","required":["value","why"],"properties":{"value":{"type":"string"},"why":{"type":"string"}}}},
"evidence":{"type":"array","minItems":1,"items":{"type":"object","required":["observed","text"],"properties":{"observed":{"type":"boolean"},"text":{"type":"string"}}}},
"expected_effect":{"type":"string"},"depends_on":{"type":"array","items":{"type":"string"}},"cites":{"type":"array","items":{"type":"string"}}}}}}}},
"avoided":{"type":"array","items":{"type":"object","required":["decision","value","because"],"properties":{
"decision":{"type":"string"},"value":{"type":"string"},"because":{"type":"string"}}}}}})";

}  // namespace

std::vector<ModelTool> plan_tools(bool may_end) {
  std::vector<ModelTool> tools{
      {"propose_plan", "The plan, whole. It is checked, and either taken or sent back with what is wrong.", k_schema}};
  if (may_end)
    tools.push_back({"no_further_plan", "Nothing is left to decide that could gain more than the noise floor.",
                     R"({"type":"object","properties":{"why":{"type":"string"}}})"});
  return tools;
}

Result<Plan> read_proposed_plan(const std::string& arguments, const PlanRequest& request, int revision) {
  FORGE_TRY_ASSIGN(Json j, parse_json(arguments, "plan"));
  if (!j.is_object()) return fail(Code::bad_input, "a plan is a JSON object");
  j["format"] = 1, j["operator"] = request.definition.name, j["target"] = request.machine.target.name, j["revision"] = revision;
  // Correctness is always demanded, so a milestone that asks for nothing more may leave its acceptance out.
  if (j.contains("milestones") && j["milestones"].is_array())
    for (Json& m : j["milestones"])
      if (m.is_object() && !m.contains("acceptance")) m["acceptance"] = Json::object();
  FORGE_TRY_ASSIGN(Plan plan, read_plan(j, "plan"));
  if (revision == 0 && plan.restart_at != 0) return fail(Code::bad_input, "plan: restart_at: a first plan starts at 0");
  for (const Milestone& m : plan.milestones)
    for (const Decision& d : m.decisions)
      for (const std::string& id : d.cites)
        if (std::none_of(request.knowledge.begin(), request.knowledge.end(), [&](const Retrieved& r) { return r.entry.id == id; }))
          return fail(Code::bad_input, "plan: " + d.id + " cites '" + id + "', which is none of the entries that apply here");
  return plan;
}

}  // namespace forge
