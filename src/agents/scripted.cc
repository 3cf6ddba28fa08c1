// SPDX-License-Identifier: Apache-2.0
#include "agents/scripted.h"

namespace forge {

Result<Plan> ScriptedArchitect::plan(const PlanRequest& request) {
  asked.push_back(request);
  if (m_plans.empty()) return fail(Code::bad_input, "the script has no plan");
  Plan plan = std::move(m_plans.front());
  m_plans.pop_front();
  return plan;
}

Result<std::optional<Plan>> ScriptedArchitect::revise(const ReviseRequest& request) {
  asked_to_revise.push_back(request);
  if (m_plans.empty()) return std::optional<Plan>();
  std::optional<Plan> plan = std::move(m_plans.front());
  m_plans.pop_front();
  return plan;
}

KernelPackage scripted_package(const std::string& source) {
  return {.source_name = "kernel.cpp", .source = source, .plan_text = "format = 1\n", .origin = "script " + source};
}

ScriptedAction hands_in(const std::string& source, std::vector<std::pair<std::string, std::string>> decisions) {
  return {.kind = ScriptedAction::Kind::submit, .packages = {scripted_package(source)}, .decisions = std::move(decisions), .why = {}};
}

ScriptedAction times(const std::vector<std::string>& sources) {
  ScriptedAction a{.kind = ScriptedAction::Kind::time, .packages = {}, .decisions = {}, .why = {}};
  for (const auto& s : sources) a.packages.push_back(scripted_package(s));
  return a;
}

ScriptedAction gives_up(const std::string& why) {
  return {.kind = ScriptedAction::Kind::give_up, .packages = {}, .decisions = {}, .why = why};
}
ScriptedAction leaves() { return {.kind = ScriptedAction::Kind::leave, .packages = {}, .decisions = {}, .why = {}}; }

Status ScriptedCoder::work(Workbench& bench) {
  milestones.push_back(bench.milestone().id);
  while (bench.may_go_on()) {
    if (m_actions.empty()) {
      bench.give_up("the script is at its end");
      return {};
    }
    const ScriptedAction action = std::move(m_actions.front());
    m_actions.pop_front();
    switch (action.kind) {
      case ScriptedAction::Kind::submit: {
        FORGE_TRY_ASSIGN(Verdict verdict, bench.submit(action.packages.at(0), action.decisions));
        verdicts.push_back(std::move(verdict));
        break;
      }
      case ScriptedAction::Kind::time:
        FORGE_TRY(bench.time(action.packages));
        break;
      case ScriptedAction::Kind::examine:
        FORGE_TRY(bench.examine(action.packages.at(0)));
        break;
      case ScriptedAction::Kind::give_up:
        bench.give_up(action.why);
        return {};
      case ScriptedAction::Kind::leave:
        return {};
    }
  }
  return {};
}

}  // namespace forge
