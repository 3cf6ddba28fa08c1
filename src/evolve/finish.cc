// SPDX-License-Identifier: Apache-2.0
// The end of a run: the best kernel is confirmed afresh, sealed and promoted if it has earned it, taken apart by ablations, and
// the ledger learns which entries had a part in it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "evolve/flow.h"

namespace forge {

namespace {

constexpr int kConfirmations = 2;      // the best, and the next best if the best does not repeat
constexpr std::size_t kAblations = 3;  // one job

// Every accepted kernel once, the best of all branches first.
std::vector<Candidate> ranked(const Flow& flow) {
  std::vector<Candidate> pool;
  if (flow.best) pool.push_back(*flow.best);
  std::vector<Candidate> rest;
  for (const auto& branch : flow.branches) rest.insert(rest.end(), branch.accepted.begin(), branch.accepted.end());
  std::stable_sort(rest.begin(), rest.end(), [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  for (auto& c : rest)
    if (std::none_of(pool.begin(), pool.end(), [&](const Candidate& p) { return p.sha == c.sha; })) pool.push_back(std::move(c));
  return pool;
}

bool is_expert(const ReferenceInfo& r) { return r.present && r.id.rfind("expert:", 0) == 0; }

// Correct and confirmed, its mechanism as planned. Not faster than an expert is no obstacle for gen0; a later generation has to
// beat the one that it was built against.
bool worth_sealing(const Flow& flow, const Verdict& v) {
  if (!v.correct()) return false;
  if (flow.parts.heritage.number > 0) {
    const PairedTiming* p = find_pairing(v, "reference");
    return v.accepted() && p && p->comparison == Comparison::faster;
  }
  return v.accepted() || v.reason() == Reason::too_slow || v.reason() == Reason::ambiguous;
}

// By the record, not by the gate's memory: a resumed run has a new gate, which knows nothing of what it said before.
bool repeats(const Candidate& c, const Verdict& v) {
  if (v.reason() == Reason::not_confirmed) return false;
  const PairedTiming *before = find_pairing(c.verdict, "reference"), *now = find_pairing(v, "reference");
  return !before || !now || before->comparison != Comparison::faster || now->comparison == Comparison::faster ||
         now->comparison == Comparison::ambiguous;
}

std::string conclusion(const Verdict& v) {
  if (const PairedTiming* p = find_pairing(v, "reference")) return name(p->comparison);
  return name(v.reason());
}

Result<std::optional<Candidate>> confirm(Flow& flow) {
  const auto pool = ranked(flow);
  for (std::size_t i = 0; i < pool.size() && i < kConfirmations; ++i) {
    FORGE_TRY_ASSIGN(const Verdict v, flow.desk.confirm(pool[i].package, pool[i].mechanisms));
    const PairedTiming* p = find_pairing(v, "reference");
    flow.desk.say(p ? fmt::format("confirmed afresh: {:.3f}x [{:.3f}, {:.3f}] of the reference, {}", p->speedup.mid, p->speedup.low,
                                  p->speedup.high, name(p->comparison))
                    : fmt::format("confirmation: {}{}{}", name(v.reason()), v.detail().empty() ? "" : ", ", v.detail()));
    flow.result.confirmation = v;
    const bool repeated = repeats(pool[i], v);
    if (repeated && worth_sealing(flow, v)) return std::optional<Candidate>(pool[i]);
    if (v.correct() && repeated) break;  // it repeats, it is only not fast enough: the next one is slower still
  }
  return std::optional<Candidate>();
}

// What each decision of the kernel is worth: one decision at a time put back, paired with the kernel in one job.
Status harvest(Flow& flow, const Candidate& best) {
  FORGE_TRY_ASSIGN(std::vector<Ablation> ablations, flow.parts.coder->ablations(flow.request, best.decisions));
  if (ablations.size() > kAblations) ablations.resize(kAblations);
  if (ablations.empty()) return {};
  std::vector<KernelPackage> packages{best.package};
  for (const auto& a : ablations) packages.push_back(a.without);
  FORGE_TRY_ASSIGN(const auto timed, flow.desk.time("harvest", "", packages));
  std::vector<Ablation> measured;
  for (std::size_t i = 0; i < ablations.size() && i + 1 < timed.size(); ++i) {
    if (!timed[i + 1].ran || !(timed[i + 1].against_first > 0) || timed[i + 1].image_sha == timed[0].image_sha) continue;
    ablations[i].effect = 1 / timed[i + 1].against_first;
    flow.desk.say(fmt::format("harvest: {}={} is worth {:.3f}x against {}", ablations[i].decision, ablations[i].value, ablations[i].effect,
                              ablations[i].alternative));
    if (ablations[i].effect > 1 + flow.request.floor.ratio) measured.push_back(std::move(ablations[i]));
  }
  if (measured.empty()) return {};
  return flow.desk.propose(flow.task, measured);
}

Status seal(Flow& flow, const Candidate& best, const Verdict& confirmation) {
  const RunParts& parts = flow.parts;
  Generation g;
  g.id = best.sha;
  g.number = parts.heritage.number;
  g.operator_name = flow.task.operator_name;
  g.target = flow.task.target;
  g.run_id = parts.run_id;
  g.parent = parts.heritage.parent.empty() ? (flow.request.reference.present ? flow.request.reference.id : "none") : parts.heritage.parent;
  g.package = best.package;
  g.image_sha = confirmation.image_sha;
  g.verdict = confirmation;
  g.cites = best.cites;
  g.decisions = best.decisions;
  g.machine = parts.machine->device_class;
  g.expert = flow.request.reference.description;
  // Each generation also stands against the expert directly: that pair is in the confirmation, or is measured now.
  const PairedTiming* expert = find_pairing(confirmation, "expert");
  if (!expert && is_expert(flow.request.reference)) expert = find_pairing(confirmation, "reference");
  if (expert) {
    g.against_expert = *expert;
  } else {
    FORGE_TRY_ASSIGN(const std::optional<Verdict> v, flow.desk.against_expert(best.package));
    const PairedTiming* p = v ? find_pairing(*v, "expert") : nullptr;
    if (p) {
      g.against_expert = *p;
      flow.desk.say(fmt::format("against the expert directly: {:.3f}x [{:.3f}, {:.3f}]", p->speedup.mid, p->speedup.low, p->speedup.high));
    }
  }
  if (!g.cites.empty()) {
    FORGE_TRY_ASSIGN(g.adopted, flow.desk.adopted(g.cites, confirmation));
  }
  FORGE_TRY_ASSIGN(Desk::Sealed sealed, flow.desk.seal(g));
  flow.result.generation = std::move(sealed.generation);
  flow.result.sealed = true;
  flow.result.promoted = sealed.promoted;
  flow.desk.say(fmt::format("{}: gen{} {}", sealed.promoted ? "sealed and promoted" : "sealed; what is promoted stays, it is not beaten",
                            g.number, g.id.substr(0, 12)));
  return {};
}

// retrieved; cited by a plan; implemented in an accepted milestone; adopted by the sealed kernel.
Status record_uses(Flow& flow) {
  std::set<std::string> cited, implemented;
  for (const auto& plan : flow.result.plans)
    for (const auto& m : plan.milestones)
      for (const auto& d : m.decisions) cited.insert(d.cites.begin(), d.cites.end());
  for (const auto& branch : flow.branches)
    if (!branch.accepted.empty()) implemented.insert(branch.accepted.back().cites.begin(), branch.accepted.back().cites.end());
  const std::string generation = flow.result.generation ? flow.result.generation->id : "";
  std::vector<UseRow> rows;
  const auto add = [&](const std::string& entry, Use use) {
    rows.push_back({entry, flow.task.operator_name, flow.parts.run_id, generation, use});
  };
  for (const auto& r : flow.request.knowledge) add(r.entry.id, Use::retrieved);
  for (const auto& id : cited) add(id, Use::cited);
  for (const auto& id : implemented) add(id, Use::implemented);
  if (flow.result.generation)
    for (const auto& id : flow.result.generation->adopted) add(id, Use::adopted);
  if (rows.empty()) return {};
  return flow.desk.record_uses(rows);
}

Status end(Flow& flow) {
  RunResult& r = flow.result;
  const std::optional<Verdict>& v = r.confirmation;
  const PairedTiming* p = v ? find_pairing(*v, "reference") : nullptr;
  r.spent = spent(flow);
  for (const auto& branch : flow.branches) r.branches.push_back(branch.outcome);
  Json request;
  request["stop"] = name(r.stop);
  request["verdict"] = v ? conclusion(*v) : "nothing accepted";
  request["package"] = v ? Json(v->package_sha) : Json(nullptr);
  request["speedup"] = p ? p->speedup.mid : 0.0;
  request["sealed"] = r.sealed;
  request["promoted"] = r.promoted;
  request["generation"] = r.generation ? Json(r.generation->number) : Json(nullptr);
  request["spent"] = spent_to_json(r.spent);
  return flow.desk.decide("run.end", request);
}

std::string stop_text(const Flow& flow) {
  switch (flow.result.stop) {
    case Stop::goal:
      return fmt::format("the goal of {:.3f}x is met", flow.task.goal);
    case Stop::budget:
      return "the budget is spent";
    case Stop::exhausted:
      return flow.task.revise ? "nothing is left to decide" : "the plan is built to its end";
    case Stop::plateau:
      return "a plateau, and no revision";
    case Stop::blocked:
      return "a milestone is blocked, and no revision";
    case Stop::user:
      return "the user";
    case Stop::enough:
      return "the coding agent wants no more";
  }
  return "";
}

}  // namespace

Status finish(Flow& flow) {
  FORGE_TRY(flow.desk.decide("run.stop", Json{{"stop", name(flow.result.stop)}, {"why", stop_text(flow)}}));
  flow.desk.say("stops: " + stop_text(flow));
  FORGE_TRY_ASSIGN(const std::optional<Candidate> sound, confirm(flow));  // fresh process, fresh seeds, fresh floor
  if (sound) {
    const Verdict confirmation = *flow.result.confirmation;
    FORGE_TRY(seal(flow, *sound, confirmation));  // promoted when it beats what is
    FORGE_TRY(harvest(flow, *sound));             // proposed entries from one-decision ablations
  }
  FORGE_TRY(record_uses(flow));  // who contributed to whom
  return end(flow);
}

}  // namespace forge
