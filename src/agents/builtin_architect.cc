// SPDX-License-Identifier: Apache-2.0
// The built-in architecture agent: no LLM, no rules about kernels in code.
//
// The first plan takes the blueprint's defaults, and another value where a certified entry's advice applies. A revision is one
// step of a greedy search around the best kernel: one structural decision (or a pair, where a constraint or a dependency ties two)
// gets another value. Which one is tried first follows from what the best kernel waits for, from entries, and from the blueprint's order;
// where the run grants a lab, a few alternatives at once are timed against the best kernel, and the one that gains is planned.
// Local decisions are tuned once, on the structure that the search ends with: when no alternative is left, or when the lab's time is
// up. A run without revision tunes them in its first plan.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agents/builtin_draft.h"

namespace forge {

namespace {

constexpr std::size_t kLabBatch = 4;     // alternatives per job
constexpr std::size_t kPerDecision = 2;  // of one decision in a batch, so that a long list of values starves no other
constexpr double kTie = 0.01;            // gains closer than this are alike: the simpler change is taken
constexpr double kSmallest = 0.005;      // a lab's job has few samples: less is noise whatever the floor

// One step away from a base: the values to set, the first decision being the one that is meant.
struct Step {
  Decisions changes;
  double weight = 0;
};
struct Memory {
  std::string base;
  double gain = 1;
};  // of a lab timing, and around which structure

class BuiltinArchitect final : public ArchitectureAgent {
 public:
  explicit BuiltinArchitect(Blueprint blueprint) : m_blueprint(std::move(blueprint)) {}
  std::string identity() const override { return "built-in architect, blueprint " + m_blueprint.operator_name; }
  Result<Plan> plan(const PlanRequest&) override;
  Result<std::optional<Plan>> revise(const ReviseRequest&) override;

 private:
  Choices advised(const PlanRequest&, Reasons&) const;
  Plan first_plan(const PlanRequest&, const Choices&, const Reasons&) const;
  Result<Plan> later_plan(const PlanRequest&);
  bool repair(const Names&, const Choices& base, Choices& changed, Decisions& changes) const;
  std::vector<Step> steps(const PlanRequest&, const Evidence& seen, const Choices& base, const std::vector<FailureCondition>& banned) const;
  Result<std::optional<Step>> next_step(const PlanRequest&, const Evidence& seen, const Choices& base,
                                        const std::vector<FailureCondition>& banned, Reasons&);
  void remember(const PlanRequest&, const Choices& base, Reasons&) const;
  std::set<std::string> moved_by(const Decisions& changes) const;

  Blueprint m_blueprint;
  std::set<std::string> m_tried;                                // structures
  std::map<std::pair<std::string, std::string>, Memory> m_lab;  // by decision and value
  std::set<std::string> m_retuned;                              // structures
};

double not_worse(const PlanRequest& r) { return -std::clamp(2 * r.floor.ratio, 0.004, 0.5); }

std::vector<const BlueprintDecision*> all_of(const Blueprint& b) {
  std::vector<const BlueprintDecision*> out;
  for (const auto& d : b.decisions) out.push_back(&d);
  return out;
}

std::set<std::string> locals_of(const Blueprint& b) {
  std::set<std::string> out;
  for (const auto& d : b.decisions)
    if (!d.structural) out.insert(d.name);
  return out;
}

std::vector<const BlueprintDecision*> local_decisions(const Blueprint& b) {
  std::vector<const BlueprintDecision*> out;
  for (const auto& d : b.decisions)
    if (!d.structural) out.push_back(&d);
  return out;
}

// Tuning waits for the structure, where there will be a search for one.
bool tunes_last(const PlanRequest& r) { return r.lab && r.task.revise; }

std::string listed(const Decisions& changes) {
  std::string out;
  for (const auto& [name, value] : changes) out += (out.empty() ? "" : ", ") + name + "=" + value;
  return out;
}

// Certified entries' advice, strongest first, as long as the blueprint's constraints hold. Later ones do not overrule earlier ones.
Choices BuiltinArchitect::advised(const PlanRequest& request, Reasons& reasons) const {
  const Names names = blueprint_names(request.definition, request.task_file, request.machine);
  Choices choices = default_choices(m_blueprint);
  struct Item {
    const Retrieved* entry;
    const Advice* advice;
  };
  std::vector<Item> items;
  for (const auto& r : request.knowledge)
    if (r.state == EntryState::certified)
      for (const auto& a : r.advice) items.push_back({&r, &a});
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.entry->effect > b.entry->effect; });
  std::set<std::string> settled;
  for (int pass = 0; pass < 2; ++pass)  // a second time, for advice that a constraint allowed only after another one was taken
    for (const auto& [entry, advice] : items) {
      const BlueprintDecision* d = find_decision(m_blueprint, advice->decision);
      if (!d || !find_option(*d, advice->value)) continue;
      if (settled.count(d->name) && choices[d->name] != advice->value) {
        reasons.against.try_emplace({d->name, advice->value},
                                    fmt::format("entry {} speaks for it, a stronger one for {}", entry->entry.id, choices[d->name]));
        continue;
      }
      if (settled.count(d->name) && pass > 0) continue;
      Choices changed = choices;
      changed[d->name] = advice->value;
      if (const Status fits = check_choices(m_blueprint, changed, names); !fits) {
        reasons.against[{d->name, advice->value}] = fmt::format("entry {} speaks for it, but {}", entry->entry.id, fits.error().message);
        continue;
      }
      reasons.against.erase({d->name, advice->value});
      choices = changed;
      settled.insert(d->name);
      reasons.evidence[d->name].push_back({true, fmt::format("entry {}, certified on {}: {:.2f}x; {}", entry->entry.id,
                                                             request.machine.device_class, entry->effect, advice->because)});
      reasons.cites[d->name].push_back(entry->entry.id);
      double& effect = reasons.effect[d->name];
      effect = std::max(effect, entry->effect);
    }
  return choices;
}

Result<Plan> BuiltinArchitect::plan(const PlanRequest& request) {
  if (!request.earlier_decisions.empty()) return later_plan(request);
  Reasons reasons;
  const Choices choices = advised(request, reasons);
  m_tried.insert(structure_of(m_blueprint, choices));
  if (!tunes_last(request)) m_retuned.insert(structure_of(m_blueprint, choices));  // its last milestone opens what is local
  return first_plan(request, choices, reasons);
}

// Milestones as the blueprint groups them. A group that has nothing but plain choices and nothing to tune goes into M0.
Plan BuiltinArchitect::first_plan(const PlanRequest& request, const Choices& choices, const Reasons& reasons) const {
  const Names names = blueprint_names(request.definition, request.task_file, request.machine);
  std::map<int, std::vector<const BlueprintDecision*>> groups;
  for (const auto& d : m_blueprint.decisions) groups[d.milestone].push_back(&d);
  const int first = groups.begin()->first;
  for (auto group = std::next(groups.begin()); group != groups.end();) {
    const bool plain = std::all_of(group->second.begin(), group->second.end(), [&](const BlueprintDecision* d) {
      return d->structural ? choices.at(d->name) == d->default_value : tunes_last(request) || possible(*d, names).size() < 2;
    });
    if (plain) groups[first].insert(groups[first].end(), group->second.begin(), group->second.end());
    group = plain ? groups.erase(group) : std::next(group);
  }
  const std::set<std::string> open = tunes_last(request) ? std::set<std::string>{} : locals_of(m_blueprint);
  Draft draft(m_blueprint, request, request.evidence, reasons, choices);
  for (const auto& [index, decisions] : groups) {
    std::string title;
    bool tuning = false;
    for (const auto* d : decisions) {
      if (d->structural)
        title += (title.empty() ? "" : ", ") + d->name + "=" + choices.at(d->name);
      else
        tuning = !open.empty();
    }
    if (title.empty()) title = "tune what is local";
    draft.add(index == first ? "structure" : title, decisions, open, PerformanceCondition{Against::branch_best, not_worse(request)},
              tuning ? 2 : 1);
  }
  Plan plan = draft.take();
  plan.reason = reasons.cites.empty()
                    ? "the plain choices; no certified entry speaks for others"
                    : fmt::format("the plain choices, and others for {} decisions that certified entries speak for", reasons.cites.size());
  plan.avoided = request.avoided;
  return plan;
}

std::set<std::string> BuiltinArchitect::moved_by(const Decisions& changes) const {
  std::set<std::string> out;
  for (const auto& d : m_blueprint.decisions)
    for (const auto& [name, value] : changes)
      if (!d.structural && std::find(d.depends_on.begin(), d.depends_on.end(), name) != d.depends_on.end()) out.insert(d.name);
  return out;
}

// A value that breaks a constraint is repaired by one more change, if one suffices; false when none does.
bool BuiltinArchitect::repair(const Names& names, const Choices& base, Choices& changed, Decisions& changes) const {
  if (check_choices(m_blueprint, changed, names)) return true;
  for (const auto& other : m_blueprint.decisions) {
    if (other.name == changes.front().first) continue;
    for (const auto* value : possible(other, names)) {
      Choices pair = changed;
      pair[other.name] = value->value;
      if (value->value == base.at(other.name) || !check_choices(m_blueprint, pair, names)) continue;
      changes.emplace_back(other.name, value->value);
      changed = pair;
      return true;
    }
  }
  return false;
}

// Structural changes around the base whose structure was not tried, most promising first: single ones; when none is left, all those
// together that gained a little, each too little to be told from noise, and pairs of which one decision depends on the other, because
// such a pair can gain where each half alone loses.
std::vector<Step> BuiltinArchitect::steps(const PlanRequest& request, const Evidence& seen, const Choices& base,
                                          const std::vector<FailureCondition>& banned) const {
  const Names names = blueprint_names(request.definition, request.task_file, request.machine);
  const std::string around = structure_of(m_blueprint, base), limiter = diagnose(seen).limiter;
  std::vector<Step> out;
  const auto consider = [&](Decisions changes, bool may_repair) {
    Choices changed = base;
    overlay(m_blueprint, changes, changed);
    if (may_repair ? !repair(names, base, changed, changes) : !check_choices(m_blueprint, changed, names)) return;
    if (m_tried.count(structure_of(m_blueprint, changed))) return;
    const auto is_banned = [&](const FailureCondition& f) {
      return std::any_of(changes.begin(), changes.end(), [&](const auto& c) { return c.first == f.decision && c.second == f.value; });
    };
    if (may_repair && std::any_of(banned.begin(), banned.end(), is_banned)) return;  // alone it failed; in company it may not
    Step step{.changes = changes, .weight = 0};
    if (find_decision(m_blueprint, changes.front().first)->limiter == limiter) step.weight += 2;
    for (const auto& r : request.knowledge)
      for (const auto& a : r.advice)
        if (a.decision == changes.front().first && a.value == changes.front().second)
          step.weight += r.state == EntryState::certified ? 1 + 10 * (r.effect - 1) : 0.5;
    if (std::any_of(request.avoided.begin(), request.avoided.end(), is_banned)) step.weight -= 5;
    for (const auto& change : changes)
      if (const auto lab = m_lab.find(change); lab != m_lab.end() && (lab->second.base != around || !may_repair))
        step.weight +=
            lab->second.gain > 1 + kSmallest ? 50 * lab->second.gain : -5;  // measured around another base: a promise, or last in the queue
    out.push_back(std::move(step));
  };
  const auto each_change = [&](const auto& visit) {
    for (const auto& d : m_blueprint.decisions)
      if (d.structural)
        for (const auto* option : possible(d, names))
          if (option->value != base.at(d.name)) visit(d, option->value);
  };
  each_change([&](const BlueprintDecision& d, const std::string& value) { consider({{d.name, value}}, true); });
  const bool singles = !out.empty();
  if (!singles) {
    Decisions joint;
    for (const auto& d : m_blueprint.decisions) {
      double best = 1;
      std::string value;
      for (const auto& o : d.options)
        if (const auto lab = m_lab.find({d.name, o.value}); lab != m_lab.end() && lab->second.base == around && lab->second.gain > best)
          best = lab->second.gain, value = o.value;
      if (!value.empty() && value != base.at(d.name)) joint.emplace_back(d.name, value);
    }
    if (joint.size() > 1) consider(joint, false);
    if (!out.empty()) out.back().weight = 1000;  // before all pairs
  }
  if (!singles)
    each_change([&](const BlueprintDecision& d, const std::string& value) {
      each_change([&](const BlueprintDecision& e, const std::string& other) {
        if (std::find(e.depends_on.begin(), e.depends_on.end(), d.name) != e.depends_on.end())
          consider({{d.name, value}, {e.name, other}}, false);
      });
    });
  std::stable_sort(out.begin(), out.end(), [](const Step& a, const Step& b) { return a.weight > b.weight; });
  return out;
}

// The next step worth planning; none when nothing is left, or when the lab's budget is spent.
Result<std::optional<Step>> BuiltinArchitect::next_step(const PlanRequest& request, const Evidence& seen, const Choices& base,
                                                        const std::vector<FailureCondition>& banned, Reasons& reasons) {
  const Names names = blueprint_names(request.definition, request.task_file, request.machine);
  const auto applied = [&](const Step& s) {
    Choices c = base;
    overlay(m_blueprint, s.changes, c);
    return c;
  };
  for (;;) {
    const std::vector<Step> left = steps(request, seen, base, banned);
    if (left.empty()) return std::optional<Step>();
    if (!request.lab) {
      m_tried.insert(structure_of(m_blueprint, applied(left.front())));
      return std::optional<Step>(left.front());
    }
    if (!request.lab->may_go_on()) return std::optional<Step>();
    std::vector<Step> batch;
    std::map<std::string, std::size_t> per_decision;
    for (const auto& s : left)
      if (batch.size() < kLabBatch && per_decision[s.changes.front().first]++ < kPerDecision) batch.push_back(s);
    FORGE_TRY_ASSIGN(const KernelPackage best, render(m_blueprint, base, request.machine.target, names));
    std::vector<KernelPackage> packages{best};
    for (const auto& s : batch) {
      FORGE_TRY_ASSIGN(const KernelPackage p, render(m_blueprint, applied(s), request.machine.target, names));
      packages.push_back(p);
    }
    FORGE_TRY_ASSIGN(const auto timed, request.lab->time(packages));
    const double least = 1 + std::max(request.floor.ratio, kSmallest);
    double gain = least;
    std::optional<Step> winner;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      m_tried.insert(structure_of(m_blueprint, applied(batch[i])));
      const bool ran = told_apart(timed, i + 1);
      const double seen_gain = ran ? timed[i + 1].against_first : 0;
      if (batch[i].changes.size() == 1) m_lab[batch[i].changes.front()] = {structure_of(m_blueprint, base), seen_gain};
      const double simpler = winner ? kTie * (double(batch[i].changes.size()) - double(winner->changes.size())) : 0;
      if (seen_gain > least && seen_gain > gain + simpler) gain = seen_gain, winner = batch[i];
    }
    if (!winner) continue;
    // Those that gained too, but less, stay open: around the new base they come first.
    for (const auto& [name, value] : winner->changes)
      reasons.evidence[name].push_back({true, fmt::format("lab: {} is {:.3f}x of the best kernel, unchecked, {} kernels in one paired job",
                                                          listed(winner->changes), gain, packages.size())});
    return winner;
  }
}

// What the lab and the failed branches say against the values that a plan does not choose.
void BuiltinArchitect::remember(const PlanRequest& request, const Choices& base, Reasons& reasons) const {
  for (const auto& f : request.avoided) reasons.against[{f.decision, f.value}] = "failed in the run before: " + f.because;
  for (const auto& [change, memory] : m_lab)
    reasons.against[change] = memory.gain > 0 ? fmt::format("lab: {:.3f}x of the best kernel of its time{}", memory.gain,
                                                            memory.base == structure_of(m_blueprint, base) ? "" : ", around other choices")
                                              : "lab: it did not run, or is the very same image";
}

// A later generation begins where the reference's makers ended: their decisions, one alternative that the lab finds better
// around them, and all local ranges open again.
Result<Plan> BuiltinArchitect::later_plan(const PlanRequest& request) {
  const Names names = blueprint_names(request.definition, request.task_file, request.machine);
  Choices base = default_choices(m_blueprint);
  overlay(m_blueprint, request.earlier_decisions, base);
  if (!check_choices(m_blueprint, base, names)) base = default_choices(m_blueprint);
  m_tried.insert(structure_of(m_blueprint, base));
  Reasons reasons;
  Reasons advice;
  advised(request, advice);
  FORGE_TRY_ASSIGN(const std::optional<Step> step, next_step(request, request.evidence, base, {}, reasons));
  remember(request, base, reasons);
  Choices choices = base;
  if (step) overlay(m_blueprint, step->changes, choices);
  if (!tunes_last(request)) m_retuned.insert(structure_of(m_blueprint, choices));
  for (const auto& [name, cites] : advice.cites)  // what the reference took from entries is still theirs
    for (const auto& r : request.knowledge)
      for (const auto& a : r.advice)
        if (a.decision == name && a.value == choices[name] && std::find(cites.begin(), cites.end(), r.entry.id) != cites.end()) {
          reasons.cites[name].push_back(r.entry.id);
          reasons.effect[name] = r.effect;
          reasons.evidence[name].push_back({true, fmt::format("entry {}, certified here: {:.2f}x", r.entry.id, r.effect)});
        }
  Draft draft(m_blueprint, request, request.evidence, reasons, choices);
  draft.add("structure of the reference" + (step ? ", with " + listed(step->changes) : std::string()), all_of(m_blueprint),
            step && !tunes_last(request) ? moved_by(step->changes) : std::set<std::string>{}, std::nullopt, 1);
  if (const auto locals = local_decisions(m_blueprint); !locals.empty() && !tunes_last(request))
    draft.add("tune what is local again", locals, locals_of(m_blueprint), PerformanceCondition{Against::branch_best, not_worse(request)},
              2);
  Plan plan = draft.take();
  plan.reason = step ? "the reference's decisions, and " + listed(step->changes)
                     : "the reference's decisions; no single structural change gains around them";
  plan.avoided = request.avoided;
  return plan;
}

Result<std::optional<Plan>> BuiltinArchitect::revise(const ReviseRequest& request) {
  const PlanRequest& first = request.first;
  const Plan& best_plan = request.best_branch >= 0 ? request.plans.at(static_cast<std::size_t>(request.best_branch)) : request.plans.back();
  Choices base = default_choices(m_blueprint);
  for (const auto& m : best_plan.milestones)
    for (const auto& d : m.decisions) overlay(m_blueprint, {{d.name, d.choice}}, base);
  overlay(m_blueprint, request.best_decisions, base);
  m_tried.insert(structure_of(m_blueprint, base));
  const Evidence& seen = request.best_evidence ? *request.best_evidence : first.evidence;

  Reasons reasons;
  FORGE_TRY_ASSIGN(const std::optional<Step> step, next_step(first, seen, base, request.failures, reasons));
  remember(first, base, reasons);
  for (const auto& f : request.failures) reasons.against[{f.decision, f.value}] = f.because;
  const auto locals = local_decisions(m_blueprint);
  if (!step && (locals.empty() || request.best_branch < 0 || !m_retuned.insert(structure_of(m_blueprint, base)).second))
    return std::optional<Plan>();
  Choices choices = base;
  if (step) overlay(m_blueprint, step->changes, choices);
  for (const auto& m : best_plan.milestones)  // entries stay cited as long as their value stays chosen
    for (const auto& d : m.decisions)
      if (!d.cites.empty() && choices.at(d.name) == d.choice) reasons.cites[d.name] = d.cites;
  if (step)
    for (const auto& [name, value] : step->changes)
      for (const auto& r : first.knowledge)
        for (const auto& a : r.advice)
          if (a.decision == name && a.value == value) {
            reasons.cites[name].push_back(r.entry.id);
            reasons.evidence[name].push_back(
                {r.state == EntryState::certified, fmt::format("entry {} ({}): {}", r.entry.id, forge::name(r.state), a.because)});
          }

  // Kept: the leading milestones that were accepted and that decide nothing else now.
  const auto& outcomes = request.best_branch >= 0 ? request.branches.at(static_cast<std::size_t>(request.best_branch)).milestones
                                                  : std::vector<MilestoneOutcome>{};
  std::size_t kept = 0;
  const auto unchanged = [&](const Decision& d) {  // a local one may have been tuned since
    return d.structural ? choices.at(d.name) == d.choice : choices.at(d.name) == base.at(d.name);
  };
  while (kept < best_plan.milestones.size() && kept < outcomes.size() && outcomes[kept].end == MilestoneEnd::accepted &&
         std::all_of(best_plan.milestones[kept].decisions.begin(), best_plan.milestones[kept].decisions.end(), unchanged))
    ++kept;
  std::set<std::string> before;
  Draft draft(m_blueprint, first, seen, reasons, choices);
  for (std::size_t i = 0; i < kept; ++i) {
    draft.keep(best_plan.milestones[i]);
    for (const auto& d : best_plan.milestones[i].decisions) before.insert(d.name);
  }
  std::vector<const BlueprintDecision*> rest;
  for (const auto& d : m_blueprint.decisions)
    if (!before.count(d.name)) rest.push_back(&d);
  const std::set<std::string> open = step && !tunes_last(first) ? moved_by(step->changes) : std::set<std::string>{};
  if (!rest.empty())
    draft.add(step ? listed(step->changes) + ", and what is built on it" : "what the best kernel has", rest, open,
              PerformanceCondition{Against::global_best, not_worse(first)}, open.empty() ? 1 : 2);
  if (!step) draft.add("tune what is local", locals, locals_of(m_blueprint), PerformanceCondition{Against::global_best, 0}, 2);

  Plan plan = draft.take();
  plan.revision = static_cast<int>(request.plans.size());
  plan.restart_at = static_cast<int>(kept);
  const Diagnosis diagnosis = diagnose(seen);
  const std::string best = request.global_best_speedup > 0 ? fmt::format("the best kernel ({:.2f}x)", request.global_best_speedup)
                                                           : "nothing is accepted yet; the reference";
  plan.reason = step ? fmt::format("{} waits for {}: {}; changed: {}", best, diagnosis.limiter, diagnosis.text, listed(step->changes))
                     : "no structural change gains around the best kernel, or none can be tried in time; its local decisions are tuned";
  plan.avoided = first.avoided;
  plan.avoided.insert(plan.avoided.end(), request.failures.begin(), request.failures.end());
  return std::optional<Plan>(std::move(plan));
}

}  // namespace

std::unique_ptr<ArchitectureAgent> make_builtin_architect(Blueprint blueprint) {
  return std::make_unique<BuiltinArchitect>(std::move(blueprint));
}

}  // namespace forge
