// SPDX-License-Identifier: Apache-2.0
#include "agents/goal_architect.h"

#include <fmt/format.h>

#include <algorithm>

#include "agents/builtin_common.h"

namespace forge {

namespace {

constexpr int k_failures = 3;  // milestones in a row without a faster kernel, then there is nothing left to ask for
constexpr double k_least_gain = 0.01;

class GoalArchitect final : public ArchitectureAgent {
 public:
  explicit GoalArchitect(std::optional<Blueprint> vocabulary) : m_vocabulary(std::move(vocabulary)) {}
  std::string identity() const override { return "goal mode: no plan, no memory"; }
  Result<Plan> plan(const PlanRequest& request) override {
    Plan plan{.operator_name = request.definition.name,
              .target = request.machine.target.name,
              .reason = "goal mode",
              .milestones = {},
              .avoided = {}};
    plan.milestones.push_back(step(request, 0));
    return plan;
  }
  Result<std::optional<Plan>> revise(const ReviseRequest&) override;

 private:
  Milestone step(const PlanRequest&, int index) const;
  std::optional<Blueprint> m_vocabulary;
};

Decision open_decision(int milestone, int n, const std::string& name, const std::string& choice, std::vector<std::string> range) {
  Decision d;
  d.id = fmt::format("D{}.{}", milestone, n);
  d.name = name, d.choice = choice;
  d.structural = range.empty();
  d.range = std::move(range);
  d.evidence.push_back({false, "goal mode: nothing is decided here"});
  return d;
}

Milestone GoalArchitect::step(const PlanRequest& request, int index) const {
  Milestone m;
  m.id = fmt::format("M{}", index);
  m.title = index == 0 ? "a correct kernel, as fast as you can make it" : "a kernel that is faster than the best so far";
  m.decisions.push_back(open_decision(index, 1, "approach", "yours", {}));
  if (index == 0) return m;
  m.prerequisites.push_back(fmt::format("M{}", index - 1));
  // Without a reference there is no noise floor yet, and without a gain the same kernel would be accepted again and again.
  const double gain = request.floor.ratio > 0 ? request.floor.ratio : k_least_gain;
  m.acceptance.performance = PerformanceCondition{Against::branch_best, gain};
  if (!m_vocabulary) return m;
  const Names names = blueprint_names(request.definition, request.task_file, request.machine);
  for (const BlueprintDecision& d : m_vocabulary->decisions) {
    std::vector<std::string> values;
    for (const BlueprintOption* option : possible(d, names)) values.push_back(option->value);
    if (std::find(values.begin(), values.end(), d.default_value) != values.end())
      m.decisions.push_back(open_decision(index, static_cast<int>(m.decisions.size()) + 1, d.name, d.default_value, std::move(values)));
  }
  return m;
}

// What was accepted stays as it is, and one more milestone asks for more.
Result<std::optional<Plan>> GoalArchitect::revise(const ReviseRequest& request) {
  int failures = 0;
  for (auto b = request.branches.rbegin(); b != request.branches.rend(); ++b, ++failures)
    if (!b->milestones.empty() && b->milestones.back().end == MilestoneEnd::accepted) break;
  if (failures >= k_failures || request.plans.empty() || request.branches.empty()) return std::optional<Plan>();
  Plan plan = request.plans.back();
  const BranchOutcome& last = request.branches.back();
  std::size_t accepted = 0;
  while (accepted < last.milestones.size() && last.milestones[accepted].end == MilestoneEnd::accepted) ++accepted;
  plan.milestones.resize(std::min(accepted, plan.milestones.size()));
  plan.revision += 1;
  plan.restart_at = static_cast<int>(plan.milestones.size());
  plan.milestones.push_back(step(request.first, static_cast<int>(plan.milestones.size())));
  return std::optional<Plan>(std::move(plan));
}

}  // namespace

std::unique_ptr<ArchitectureAgent> make_goal_architect(std::optional<Blueprint> vocabulary) {
  return std::make_unique<GoalArchitect>(std::move(vocabulary));
}

}  // namespace forge
