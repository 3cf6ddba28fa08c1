// SPDX-License-Identifier: Apache-2.0
// One plan, milestone by milestone, as the plan lists them: check_plan has made sure that prerequisites come first. A branch takes over
// what an earlier branch had accepted before the earliest change, ends at the first milestone that is not accepted, and is reverted unless
// it beats the best of all branches by more than the floor.
#include <fmt/format.h>

#include <algorithm>

#include "evolve/bench.h"

namespace forge {

namespace {

bool same_work(const Milestone& a, const Milestone& b) {
  if (a.id != b.id || a.decisions.size() != b.decisions.size()) return false;
  for (std::size_t i = 0; i < a.decisions.size(); ++i)
    if (a.decisions[i].name != b.decisions[i].name || a.decisions[i].choice != b.decisions[i].choice) return false;
  return dump(to_json_value(a.acceptance.mechanism)) == dump(to_json_value(b.acceptance.mechanism));
}

// How many leading milestones of `plan` this branch has accepted.
int shared_prefix(const Plan& plan, const Branch& branch) {
  int n = 0;
  const int limit = std::min({plan.restart_at, static_cast<int>(plan.milestones.size()), static_cast<int>(branch.accepted.size())});
  while (n < limit && same_work(plan.milestones[static_cast<std::size_t>(n)], branch.plan.milestones[static_cast<std::size_t>(n)])) ++n;
  return n;
}

Status start_branch(Flow& flow, const Plan& plan) {
  Branch branch;
  branch.plan = plan;
  branch.outcome.revision = plan.revision;
  for (int b = 0; b < static_cast<int>(flow.branches.size()); ++b) {
    const int n = shared_prefix(branch.plan, flow.branches[static_cast<std::size_t>(b)]);
    if (n > branch.kept || (n == branch.kept && n > 0 && b == flow.best_branch)) branch.kept = n, branch.parent = b;
  }
  if (branch.kept > 0) {
    const auto& from = flow.branches[static_cast<std::size_t>(branch.parent)].accepted;
    branch.accepted.assign(from.begin(), from.begin() + branch.kept);
    branch.best = *std::max_element(branch.accepted.begin(), branch.accepted.end(),
                                    [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
    for (int i = 0; i < branch.kept; ++i)
      branch.outcome.milestones.push_back(
          {branch.plan.milestones[static_cast<std::size_t>(i)].id, MilestoneEnd::accepted, "kept from an earlier revision"});
  }
  Json request;
  request["revision"] = plan.revision;
  request["kept"] = branch.kept;
  request["from_revision"] = branch.parent < 0 ? Json(nullptr) : Json(flow.branches[static_cast<std::size_t>(branch.parent)].plan.revision);
  request["package"] = branch.accepted.empty() ? Json(nullptr) : Json(branch.accepted.back().sha);
  FORGE_TRY(flow.desk.decide("branch.start", request));
  flow.branches.push_back(std::move(branch));
  return {};
}

Status build_milestone(Flow& flow, const Milestone& milestone) {
  const int revision = flow.branches.back().plan.revision;
  FORGE_TRY(flow.desk.decide("milestone.start", Json{{"revision", revision}, {"milestone", milestone.id}, {"title", milestone.title}}));
  Bench bench(flow, milestone);
  const Status returned = flow.parts.coder->work(bench);
  FORGE_TRY_ASSIGN(const MilestoneOutcome outcome, bench.outcome(returned));
  flow.branches.back().outcome.milestones.push_back(outcome);
  if (outcome.end != MilestoneEnd::accepted) flow.desk.say(fmt::format("{} ends: {} ({})", outcome.id, name(outcome.end), outcome.why));
  return flow.desk.decide("milestone.end",
                          Json{{"revision", revision}, {"milestone", outcome.id}, {"end", name(outcome.end)}, {"why", outcome.why}});
}

Stop why_it_ended(const Flow& flow, const Branch& branch) {
  if (goal_met(flow)) return Stop::goal;
  const auto& milestones = branch.outcome.milestones;
  if (!milestones.empty()) switch (milestones.back().end) {
      case MilestoneEnd::accepted:
        break;
      case MilestoneEnd::gave_up:
      case MilestoneEnd::attempts:
        return Stop::blocked;
      case MilestoneEnd::plateau:
        return Stop::plateau;
      case MilestoneEnd::budget:
        return Stop::budget;
      case MilestoneEnd::user:
        return Stop::user;
    }
  return milestones.size() == branch.plan.milestones.size() ? Stop::exhausted : Stop::budget;
}

// Is the branch's best faster than the best of all branches, beyond the floor? From one job with both sides in it: the hand-in's
// own, or else a paired timing of the two accepted kernels.
Result<bool> beats_global_best(Flow& flow, const Branch& branch) {
  if (!branch.best) return false;
  if (!flow.best) return true;
  if (branch.best->sha == flow.best->sha) return false;
  if (const PairedTiming* p = find_pairing(branch.best->verdict, "global_best")) return p->comparison == Comparison::faster;
  FORGE_TRY_ASSIGN(const auto timed, flow.desk.time("branch", "", {flow.best->package, branch.best->package}));
  return timed.size() == 2 && timed[1].ran && timed[1].against_first > 1 + flow.request.floor.ratio;
}

// What this branch decided otherwise than the best kernel, as far as it was attempted. Several decisions together are one
// condition: none of them alone is to blame.
std::optional<FailureCondition> failure_of(const Flow& flow, const Branch& branch) {
  if (!flow.best) return std::nullopt;
  FailureCondition f;
  const std::size_t attempted = std::min(branch.outcome.milestones.size(), branch.plan.milestones.size());
  for (std::size_t i = 0; i < attempted; ++i)
    for (const auto& d : branch.plan.milestones[i].decisions) {
      if (!d.structural) continue;
      const auto& best = flow.best->decisions;
      const auto at = std::find_if(best.begin(), best.end(), [&](const auto& b) { return b.first == d.name; });
      if (at == best.end() || at->second == d.choice) continue;
      f.decision += (f.decision.empty() ? "" : "+") + d.name;
      f.value += (f.value.empty() ? "" : "+") + d.choice;
    }
  if (f.decision.empty()) return std::nullopt;
  const MilestoneOutcome& last = branch.outcome.milestones.back();
  if (last.end != MilestoneEnd::accepted)
    f.because = fmt::format("r{} {} {}: {}", branch.plan.revision, last.id, name(last.end), last.why);
  else
    f.because =
        fmt::format("r{} ended at {:.3f}x, the best is {:.3f}x", branch.plan.revision, branch.outcome.best_speedup, flow.best->score);
  return f;
}

Status end_branch(Flow& flow) {
  Branch& branch = flow.branches.back();
  branch.outcome.stop = why_it_ended(flow, branch);
  if (branch.best) branch.outcome.best_speedup = branch.best->score;
  FORGE_TRY_ASSIGN(const bool better, beats_global_best(flow, branch));
  branch.outcome.reverted = !better;
  if (better) {
    flow.best = branch.best;
    flow.result.best_seconds = branch.best->at_seconds;
    flow.best_branch = static_cast<int>(flow.branches.size()) - 1;
  }
  Json failures = Json::array();
  const bool failed = branch.outcome.stop == Stop::blocked || branch.outcome.stop == Stop::plateau;
  if (branch.outcome.stop != Stop::budget && (!better || failed))
    if (const auto f = failure_of(flow, branch)) {
      flow.result.failures.push_back(*f);
      failures = failures_to_json({*f});
    }
  Json request;
  request["revision"] = branch.plan.revision;
  request["stop"] = name(branch.outcome.stop);
  request["best_speedup"] = branch.outcome.best_speedup;
  request["package"] = branch.best ? Json(branch.best->sha) : Json(nullptr);
  request["reverted"] = branch.outcome.reverted;
  request["failures"] = failures;
  FORGE_TRY(flow.desk.decide("branch.end", request));
  flow.desk.say(fmt::format("branch r{} ends: {}, best {:.3f}x{}", branch.plan.revision, name(branch.outcome.stop),
                            branch.outcome.best_speedup, branch.outcome.reverted ? ", reverted" : ""));
  return {};
}

}  // namespace

Status implement(Flow& flow, const Plan& plan) {
  FORGE_TRY(start_branch(flow, plan));  // with what earlier branches had before the earliest change
  for (std::size_t i = static_cast<std::size_t>(flow.branches.back().kept); i < plan.milestones.size(); ++i) {
    FORGE_TRY(build_milestone(flow, plan.milestones[i]));  // the coder at its bench
    if (flow.branches.back().outcome.milestones.back().end != MilestoneEnd::accepted) break;
    if (goal_met(flow) || budget_spent(flow)) break;
  }
  return end_branch(flow);  // becomes the best, or is reverted
}

}  // namespace forge
