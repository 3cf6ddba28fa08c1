// SPDX-License-Identifier: Apache-2.0
// The fakes of both agents: they play back what a test wrote down, and keep what they were asked.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "agents/agent.h"

namespace forge {

// The first plan answers plan(), the others revise() one after another; then there is nothing left to decide.
class ScriptedArchitect final : public ArchitectureAgent {
 public:
  explicit ScriptedArchitect(std::deque<Plan> plans) : m_plans(std::move(plans)) {}
  std::string identity() const override { return "scripted architect"; }
  Result<Plan> plan(const PlanRequest&) override;
  Result<std::optional<Plan>> revise(const ReviseRequest&) override;

  std::vector<PlanRequest> asked;
  std::vector<ReviseRequest> asked_to_revise;

 private:
  std::deque<Plan> m_plans;
};

struct ScriptedAction {
  enum class Kind {
    submit,   // package, decisions
    time,     // packages
    examine,  // package
    give_up,  // why
    leave,    // returns from work()
  } kind = Kind::submit;
  std::vector<KernelPackage> packages;
  std::vector<std::pair<std::string, std::string>> decisions;
  std::string why;
};
ScriptedAction hands_in(const std::string& source, std::vector<std::pair<std::string, std::string>> decisions = {});
ScriptedAction times(const std::vector<std::string>& sources);
ScriptedAction gives_up(const std::string& why);
ScriptedAction leaves();
KernelPackage scripted_package(const std::string& source);

// Each work() plays on where the last one stopped, until the milestone is accepted or may not go on. Out of actions: gives up.
class ScriptedCoder final : public CodingAgent {
 public:
  explicit ScriptedCoder(std::deque<ScriptedAction> actions) : m_actions(std::move(actions)) {}
  std::string identity() const override { return "scripted coder"; }
  Status work(Workbench&) override;

  std::vector<std::string> milestones;  // that it was given
  std::vector<Verdict> verdicts;

 private:
  std::deque<ScriptedAction> m_actions;
};

}  // namespace forge
