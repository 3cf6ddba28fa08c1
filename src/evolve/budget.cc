// SPDX-License-Identifier: Apache-2.0
// Goals and budgets, and the lab that is bound by them. Both are read from recorded figures only, so that a replay agrees.
#include <algorithm>

#include "evolve/flow.h"
#include "util/progress.h"

namespace forge {

bool goal_met(const Flow& flow) {
  if (!(flow.task.goal > 0) || !flow.request.reference.present) return false;
  const auto meets = [&](const std::optional<Candidate>& c) { return c && c->score >= flow.task.goal; };
  return meets(flow.best) || (!flow.branches.empty() && meets(flow.branches.back().best));
}

Spent spent(const Flow& flow) {
  Spent s;
  for (const auto& branch : flow.branches) s.candidates += static_cast<int>(branch.outcome.hand_ins.size());
  s.gate_seconds = flow.desk.gate_seconds();
  s.wall_seconds = flow.desk.wall_seconds();
  if (flow.parts.meter) {
    s.tokens = flow.parts.meter->used.total();
    s.dollars = flow.parts.meter->used.dollars;
  }
  return s;
}

// Spent when the next hand-in would overrun. A hand-in costs what they cost so far; the confirmation at the end, which has to
// fit into the seconds too, about twice as much.
bool budget_spent(const Flow& flow, double reserved) {
  const Budget& budget = flow.task.budget;
  const Spent s = spent(flow);
  const double reserve = (3 + reserved) * flow.desk.mean_hand_in_seconds();
  return s.candidates >= budget.candidates || s.gate_seconds + reserve >= budget.gate_seconds ||
         s.wall_seconds + reserve >= budget.wall_seconds || ((s.tokens > 0 || s.dollars > 0) && flow.parts.meter->spent(budget));
}

Result<std::vector<Diagnostic>> FlowLab::time(const std::vector<KernelPackage>& packages) { return m_flow.desk.time("lab", "", packages); }

// The search ends while there is time to build what it finds and to tune that.
bool FlowLab::may_go_on() const { return !stop_requested() && !budget_spent(m_flow, 2); }

}  // namespace forge
