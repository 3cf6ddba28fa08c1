// SPDX-License-Identifier: Apache-2.0
// The built-in coding agent: renders the blueprint with the milestone's choices and tunes the decisions that the plan leaves
// open, by paired diagnostics of a few variants at once. It is frugal: tuning first, then one hand-in, because a hand-in costs
// twice a tuning job.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agents/builtin_common.h"
#include "util/random.h"

namespace forge {

namespace {

constexpr int kTuneJobs = 3;          // per milestone
constexpr std::size_t kVariants = 3;  // beside the current one, per job
constexpr int kRetries = 1;           // of a hand-in that was ambiguous

struct Variant {
  std::string decision, value;
};

class BuiltinCoder final : public CodingAgent {
 public:
  explicit BuiltinCoder(Blueprint blueprint) : m_blueprint(std::move(blueprint)) {}
  std::string identity() const override { return "built-in coder, blueprint " + m_blueprint.operator_name; }
  Status work(Workbench&) override;
  Result<std::vector<Ablation>> ablations(const PlanRequest&, const Decisions&) override;

 private:
  struct Session {  // one milestone
    Workbench& bench;
    Names names;
    Choices choices;
    std::vector<Variant> open;    // in the order in which they are tried
    std::set<std::string> tried;  // packages
    int jobs = 0;
  };
  Session begin(Workbench&) const;
  Result<KernelPackage> rendered(const Session& s, const Choices& c) const {
    return render(m_blueprint, c, s.bench.machine().target, s.names);
  }
  Result<bool> tune(Session&) const;  // one job; true: the choices moved

  Blueprint m_blueprint;
};

BuiltinCoder::Session BuiltinCoder::begin(Workbench& bench) const {
  Session s{.bench = bench,
            .names = blueprint_names(bench.definition(), bench.task_file(), bench.machine()),
            .choices = default_choices(m_blueprint),
            .open = {},
            .tried = {}};
  overlay(m_blueprint, bench.branch_decisions(), s.choices);
  Decisions planned;
  for (const auto& d : bench.milestone().decisions) {
    // What tuning found in an earlier milestone stays, as long as this one only leaves it open again.
    const bool tuned = !d.structural && d.range.size() > 1 && !bench.branch_decisions().empty() &&
                       std::find(d.range.begin(), d.range.end(), s.choices[d.name]) != d.range.end();
    if (!tuned) planned.emplace_back(d.name, d.choice);
    if (d.structural) continue;
    for (const auto& value : d.range) s.open.push_back({d.name, value});
  }
  overlay(m_blueprint, planned, s.choices);
  Random random(bench.seed());
  for (std::size_t i = s.open.size(); i > 1; --i) std::swap(s.open[i - 1], s.open[random.below(i)]);
  return s;
}

// The current choices against a few one-value changes, paired in one job. The best one is taken when it gains more than noise.
Result<bool> BuiltinCoder::tune(Session& s) const {
  FORGE_TRY_ASSIGN(const KernelPackage current, rendered(s, s.choices));
  s.tried.insert(package_hash(current));
  std::vector<KernelPackage> packages{current};
  std::vector<Variant> variants;
  for (auto at = s.open.begin(); at != s.open.end() && variants.size() < kVariants;) {
    Choices changed = s.choices;
    changed[at->decision] = at->value;
    if (changed != s.choices && check_choices(m_blueprint, changed, s.names)) {
      FORGE_TRY_ASSIGN(const KernelPackage package, rendered(s, changed));
      if (s.tried.insert(package_hash(package)).second) {
        packages.push_back(package);
        variants.push_back(*at);
      }
    }
    at = s.open.erase(at);
  }
  if (variants.empty()) return false;
  ++s.jobs;
  FORGE_TRY_ASSIGN(const auto timed, s.bench.time(packages));
  double best = 1 + std::max(s.bench.noise_floor(), 0.005);
  const Variant* winner = nullptr;
  for (std::size_t i = 0; i < variants.size(); ++i)
    if (told_apart(timed, i + 1) && timed[i + 1].against_first > best) best = timed[i + 1].against_first, winner = &variants[i];
  if (winner) s.choices[winner->decision] = winner->value;
  return winner != nullptr;
}

Status BuiltinCoder::work(Workbench& bench) {
  Session s = begin(bench);
  if (const Status possible = check_choices(m_blueprint, s.choices, s.names); !possible) {
    bench.give_up("the plan cannot be built: " + possible.error().text());
    return {};
  }
  const auto tune_while_it_pays = [&](int jobs) -> Result<bool> {
    bool moved = false;
    while (!s.open.empty() && s.jobs < jobs && bench.may_go_on()) {
      FORGE_TRY_ASSIGN(const bool better, tune(s));
      moved = moved || better;
    }
    return moved;
  };
  FORGE_TRY(tune_while_it_pays(kTuneJobs));
  const auto& condition = bench.milestone().acceptance.performance;
  int retries = 0;
  while (bench.may_go_on()) {
    FORGE_TRY_ASSIGN(const KernelPackage package, rendered(s, s.choices));
    const auto best = bench.branch_best();
    if (condition && condition->min_gain >= 0 && best && package_hash(*best) == package_hash(package)) {
      bench.give_up("no variant within the plan's ranges beats what the branch has");
      return {};
    }
    FORGE_TRY_ASSIGN(const Verdict verdict, bench.submit(package, to_decisions(m_blueprint, s.choices)));
    if (verdict.accepted()) return {};
    const bool slow = verdict.reason() == Reason::too_slow || verdict.reason() == Reason::ambiguous;
    if (slow && !s.open.empty() && bench.may_go_on()) {  // the ranges are not used up: one more job each time
      FORGE_TRY_ASSIGN(const bool moved, tune_while_it_pays(s.jobs + 1));
      if (moved) continue;
    }
    const bool gain_demanded = condition && condition->min_gain >= 0;  // then a gain that can hardly be seen is none
    if (verdict.reason() == Reason::ambiguous && !gain_demanded && retries++ < kRetries) continue;
    bench.give_up(fmt::format("{}: {}", name(verdict.reason()), verdict.detail()));
  }
  return {};
}

Result<std::vector<Ablation>> BuiltinCoder::ablations(const PlanRequest& request, const Decisions& decisions) {
  const Names names = blueprint_names(request.definition, request.task_file, request.machine);
  Choices choices = default_choices(m_blueprint);
  overlay(m_blueprint, decisions, choices);
  FORGE_TRY_ASSIGN(const KernelPackage with, render(m_blueprint, choices, request.machine.target, names));
  std::vector<Ablation> out;
  for (const auto& d : m_blueprint.decisions) {
    if (!d.structural || choices[d.name] == d.default_value) continue;
    Choices without = choices;
    without[d.name] = d.default_value;
    if (!check_choices(m_blueprint, without, names)) continue;
    FORGE_TRY_ASSIGN(const KernelPackage package, render(m_blueprint, without, request.machine.target, names));
    if (package_hash(package) == package_hash(with)) continue;
    out.push_back(
        {.decision = d.name, .value = choices[d.name], .alternative = d.default_value, .with = with, .without = package, .effect = 1});
  }
  return out;
}

}  // namespace

std::unique_ptr<CodingAgent> make_builtin_coder(Blueprint blueprint) { return std::make_unique<BuiltinCoder>(std::move(blueprint)); }

}  // namespace forge
