// SPDX-License-Identifier: Apache-2.0
#include "evolve/bench.h"

#include <fmt/format.h>

#include "agents/disclosure.h"
#include "build/build.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {

namespace {

double score_of(const Flow& flow, const Verdict& v) {
  if (const PairedTiming* p = find_pairing(v, "reference")) return p->speedup.mid;
  if (!v.measurement() || !(v.measurement()->seconds > 0)) return 0;
  return flow.first_seconds > 0 ? flow.first_seconds / v.measurement()->seconds : 1;
}

// FNV-1a: a seed per milestone that no change elsewhere moves.
std::uint64_t mix_seed(std::uint64_t seed, const std::string& text) {
  std::uint64_t h = 1469598103934665603ull ^ seed;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211ull;
  return h;
}

void note_correct(Flow& flow) {
  if (!(flow.result.first_correct_seconds > 0)) flow.result.first_correct_seconds = flow.desk.wall_seconds();
}

Decisions milestone_decisions(const Milestone& m, const Decisions& all) {
  Decisions out;
  for (const auto& d : m.decisions)
    for (const auto& [name, value] : all)
      if (name == d.name) out.emplace_back(name, value);
  return out;
}

}  // namespace

std::string describe(const Milestone& m, const Verdict& v, const Decisions& changed) {
  std::string text = m.id;
  for (std::size_t i = 0; i < changed.size() && i < 6; ++i) text += fmt::format(" {}={}", changed[i].first, changed[i].second);
  if (changed.size() > 6) text += " ...";
  text += ":";
  if (const PairedTiming* p = find_pairing(v, "reference"))
    text += fmt::format(" {:.3f}x +- {:.1f} %", p->speedup.mid, (p->speedup.high - p->speedup.low) / 2 / p->speedup.mid * 100);
  else if (v.measurement())
    text += " " + format_seconds(v.measurement()->seconds);
  text += v.accepted() ? " accepted" : fmt::format(" rejected: {} ({})", name(v.reason()), v.detail());
  return text;
}

Bench::Bench(Flow& flow, const Milestone& milestone) : m_flow(flow), m_branch(flow.branches.back()), m_milestone(milestone) {
  if (m_branch.best) m_best_score = m_branch.best->score;
}

std::optional<KernelPackage> Bench::branch_best() const {
  if (!m_branch.best) return std::nullopt;
  return m_branch.best->package;
}

Decisions Bench::branch_decisions() const { return m_branch.accepted.empty() ? Decisions{} : m_branch.accepted.back().decisions; }

std::uint64_t Bench::seed() const { return mix_seed(m_flow.task.seed, fmt::format("{}/{}", m_branch.plan.revision, m_milestone.id)); }

template <class T>
Result<T> Bench::kept(Result<T> r) {
  // What the agent can do something about is its own business; the rest ends the run, whatever the agent makes of it.
  if (!r && r.error().code != Code::build_failed && r.error().code != Code::bad_input && r.error().code != Code::unsupported)
    m_broken = r.error();
  return r;
}

// The verdict that this very package already has in this branch, when it answers this milestone too.
std::optional<Verdict> Bench::known(const KernelPackage& package) const {
  const auto& condition = m_milestone.acceptance.performance;
  if (m_branch.accepted.empty() || (condition && (condition->min_gain > 0 || condition->against != Against::branch_best)))
    return std::nullopt;
  const Candidate& base = m_branch.accepted.back();
  if (base.sha != package_hash(package) || !m_branch.base_is_best()) return std::nullopt;
  if (!m_milestone.acceptance.mechanism.empty() && !check_signature(m_milestone.acceptance.mechanism, base.verdict.mix).ok)
    return std::nullopt;
  return base.verdict;
}

// As the coder gets it: a run may withhold the disassembly.
Verdict Bench::told(Verdict v) const {
  if (!m_flow.task.disassembly) v.mix = {};
  return v;
}

Result<Verdict> Bench::submit(const KernelPackage& package, const Decisions& decisions) {
  if (!may_go_on()) return fail(Code::bad_input, "milestone " + m_milestone.id + " takes no more hand-ins");
  if (const auto verdict = known(package)) {
    const Json request{{"revision", m_branch.plan.revision}, {"milestone", m_milestone.id}, {"sha", package_hash(package)}};
    const Status decided = m_flow.desk.decide("gate.reuse", request);
    if (!decided) {
      m_broken = decided.error();
      return fail(decided.error());
    }
    m_flow.desk.say(m_milestone.id + ": the package that the branch already has; its verdict stands");
    take(package, decisions, *verdict);
    return told(*verdict);
  }
  Submission s{.package = package,
               .milestone = m_milestone.id,
               .acceptance = m_milestone.acceptance,
               .branch_best = branch_best(),
               .global_best = {}};
  if (m_flow.best) s.global_best = m_flow.best->package;
  // A condition without a rival yet (the first branch has no global best) is met by being correct.
  const auto& condition = s.acceptance.performance;
  if (condition &&
      ((condition->against == Against::branch_best && !s.branch_best) || (condition->against == Against::global_best && !s.global_best) ||
       (condition->against == Against::reference && !m_flow.request.reference.present)))
    s.acceptance.performance.reset();
  const int n = spent(m_flow).candidates;
  const Result<Verdict> verdict = kept(m_flow.desk.submit(s, {.n = n, .revision = m_branch.plan.revision, .decisions = decisions}));
  if (!verdict) return verdict;
  const Verdict& v = *verdict;
  const std::string detail = disclose(v.detail(), definition(), task_file());  // agents of both seats will read it

  HandIn hand_in{
      .milestone = m_milestone.id, .package_sha = package_hash(package), .reason = v.reason(), .detail = detail, .decisions = decisions};
  if (v.measurement()) {
    hand_in.seconds = v.measurement()->seconds;
    if (const PairedTiming* p = find_pairing(v, "reference")) hand_in.speedup = p->speedup.mid;
  }
  m_branch.outcome.hand_ins.push_back(std::move(hand_in));
  ++m_hand_ins;
  m_flow.desk.say(disclose(describe(m_milestone, v, milestone_decisions(m_milestone, decisions)), definition(), task_file()));
  if (v.accepted()) {
    if (!(m_flow.first_seconds > 0)) m_flow.first_seconds = v.measurement()->seconds;
    note_correct(m_flow);
    take(package, decisions, v);
    return told(v);
  }
  m_why = fmt::format("{}: {}", name(v.reason()), detail);
  if (v.correct()) {
    note_correct(m_flow);
    const double score = score_of(m_flow, v);
    const bool gain = score > m_best_score * (1 + noise_floor());
    m_without_gain = gain ? 0 : m_without_gain + 1;
    m_best_score = std::max(m_best_score, score);
  }
  return told(v);
}

void Bench::take(const KernelPackage& package, const Decisions& decisions, const Verdict& v) {
  Candidate c;
  if (!m_branch.accepted.empty()) {
    c.mechanisms = m_branch.accepted.back().mechanisms;
    c.cites = m_branch.accepted.back().cites;
  }
  c.package = package;
  c.sha = package_hash(package);
  c.decisions = decisions;
  c.verdict = v;
  c.score = score_of(m_flow, v);
  c.at_seconds = m_flow.desk.wall_seconds();
  if (!m_milestone.acceptance.mechanism.empty()) c.mechanisms.push_back(m_milestone.acceptance.mechanism);
  for (const auto& d : m_milestone.decisions)
    for (const auto& id : d.cites)
      if (std::find(c.cites.begin(), c.cites.end(), id) == c.cites.end()) c.cites.push_back(id);
  const PairedTiming* rival = find_pairing(v, "branch_best");
  const bool same = m_branch.best && m_branch.best->sha == c.sha;
  if (!m_branch.best || same || (rival ? rival->speedup.mid > 1 : c.score > m_branch.best->score)) m_branch.best = c;
  m_branch.accepted.push_back(std::move(c));
  m_accepted = true;
}

Result<std::vector<Diagnostic>> Bench::time(const std::vector<KernelPackage>& packages) {
  if (packages.empty()) return fail(Code::bad_input, "nothing to time");
  return kept(m_flow.desk.time("tune", m_milestone.id, packages));
}

Result<Verdict> Bench::check(const KernelPackage& package) {
  Submission s{.package = package,
               .milestone = m_milestone.id,
               .acceptance = {.performance = {}, .mechanism = m_milestone.acceptance.mechanism},
               .branch_best = {},
               .global_best = {},
               .timed = false};
  FORGE_TRY_ASSIGN(Verdict v, kept(m_flow.desk.check(s)));
  return told(std::move(v));
}

Result<Evidence> Bench::examine(const KernelPackage& package) {
  FORGE_TRY_ASSIGN(const Evidence seen, kept(m_flow.desk.examine(package)));
  return shown(m_flow.task, seen);
}

EntryList Bench::search(const std::string& words) const {
  return remembers(m_flow.task) ? m_flow.parts.knowledge->search(words) : EntryList{};
}

bool Bench::may_go_on() const {
  return !m_accepted && !m_gave_up && !m_broken && m_hand_ins < kMaxHandIns && m_without_gain < kPlateauHandIns && !budget_spent(m_flow) &&
         !stop_requested();
}

BudgetLeft Bench::left() const {
  const Budget& budget = m_flow.task.budget;
  const Spent s = spent(m_flow);
  return {.hand_ins = std::max(0, std::min(kMaxHandIns - m_hand_ins, budget.candidates - s.candidates)),
          .gate_seconds = std::max(0.0, budget.gate_seconds - s.gate_seconds),
          .wall_seconds = std::max(0.0, budget.wall_seconds - s.wall_seconds)};
}

void Bench::give_up(const std::string& why) {
  m_gave_up = true;
  m_why = why;
}

Result<MilestoneOutcome> Bench::outcome(const Status& returned) const {
  if (m_broken) return fail(*m_broken);
  if (!returned && (returned.error().code == Code::interrupted || returned.error().code == Code::diverged)) return fail(returned.error());
  const auto ended = [&](MilestoneEnd end, const std::string& why) { return MilestoneOutcome{m_milestone.id, end, why}; };
  if (m_accepted) return ended(MilestoneEnd::accepted, "");
  if (m_gave_up) return ended(MilestoneEnd::gave_up, m_why);
  if (stop_requested()) return fail(Code::interrupted, "stopped");
  if (m_without_gain >= kPlateauHandIns)
    return ended(MilestoneEnd::plateau, fmt::format("{} correct hand-ins without a gain above the floor", m_without_gain));
  if (m_hand_ins >= kMaxHandIns)
    return ended(MilestoneEnd::attempts, fmt::format("{} hand-ins, none accepted; the last: {}", m_hand_ins, m_why));
  if (budget_spent(m_flow)) return ended(MilestoneEnd::budget, "the budget is spent");
  if (!returned) return ended(MilestoneEnd::gave_up, returned.error().text());
  return ended(MilestoneEnd::gave_up,
               "the coding agent returned without an accepted hand-in; the last: " + (m_why.empty() ? "none" : m_why));
}

}  // namespace forge
