// SPDX-License-Identifier: Apache-2.0
#include "agents/builtin_draft.h"

#include <fmt/format.h>

#include <algorithm>

namespace forge {

namespace {

double metric(const Evidence& e, const std::string& name) {
  const auto at = e.metrics.find(name);
  return at == e.metrics.end() ? 0 : at->second;
}

std::vector<std::string> possible_values(const BlueprintDecision& d, const Names& names) {
  std::vector<std::string> out;
  for (const BlueprintOption* o : possible(d, names)) out.push_back(o->value);
  return out;
}

}  // namespace

// The nearer ceiling limits, if it is near at all; far from both, time goes into waiting.
Diagnosis diagnose(const Evidence& e) {
  const double memory = metric(e, "memory_percent"), compute = metric(e, "compute_percent");
  constexpr double kNear = 35;
  Diagnosis d;
  d.text = fmt::format("{:.0f} % of the memory ceiling, {:.0f} % of the compute ceiling", memory, compute);
  if (memory >= compute && memory >= kNear)
    d.limiter = "memory";
  else if (compute > memory && compute >= kNear)
    d.limiter = "compute";
  if (const double spills = metric(e, "spills"); spills > 0) d.text += fmt::format(", {:.0f} vector spills in hot loops", spills);
  if (d.limiter == "memory") {
    const auto streaming = std::any_of(e.mix.mnemonics.begin(), e.mix.mnemonics.end(),
                                       [](const auto& m) { return m.first.rfind("vmovnt", 0) == 0 || m.first.rfind("movnt", 0) == 0; });
    if (!e.mix.mnemonics.empty() && !streaming) d.text += ", no non-temporal stores";
  }
  return d;
}

Draft::Draft(const Blueprint& blueprint, const PlanRequest& request, const Evidence& seen, const Reasons& reasons, Choices choices)
    : m_blueprint(blueprint),
      m_request(request),
      m_reasons(reasons),
      m_choices(std::move(choices)),
      m_names(blueprint_names(request.definition, request.task_file, request.machine)),
      m_seen(diagnose(seen)),
      m_subject(seen.subject) {
  m_plan.operator_name = request.task.operator_name;
  m_plan.target = request.task.target;
}

void Draft::keep(const Milestone& m) {
  for (const auto& d : m.decisions) m_ids[d.name] = d.id;
  m_plan.milestones.push_back(m);
}

Decision Draft::decide(const BlueprintDecision& d, const std::string& id, bool open) const {
  Decision out;
  out.id = id;
  out.name = d.name;
  out.choice = m_choices.at(d.name);
  out.structural = d.structural;
  const BlueprintOption* chosen = find_option(d, out.choice);
  const std::string says = chosen ? chosen->text : out.choice;
  const auto values = possible_values(d, m_names);
  if (open) out.range = values;
  if (const auto cites = m_reasons.cites.find(d.name); cites != m_reasons.cites.end()) out.cites = cites->second;

  out.evidence.push_back({true, fmt::format("{}: {}", m_subject, m_seen.text)});
  if (const auto more = m_reasons.evidence.find(d.name); more != m_reasons.evidence.end())
    out.evidence.insert(out.evidence.end(), more->second.begin(), more->second.end());
  if (out.evidence.size() == 1)
    out.evidence.push_back(
        {false, (out.choice == d.default_value ? "the plain choice, nothing speaks for another yet: " : "carried over: ") + says});

  for (const auto& o : d.options) {
    if (o.value == out.choice || (open && std::find(values.begin(), values.end(), o.value) != values.end())) continue;
    std::string why;
    if (const auto at = m_reasons.against.find({d.name, o.value}); at != m_reasons.against.end())
      why = at->second;
    else if (std::find(values.begin(), values.end(), o.value) == values.end())
      why = "not possible here: needs " + o.when.text;
    else if (!out.cites.empty())
      why = "no entry speaks for it";
    else
      why = "not measured here yet";
    out.rejected.push_back({o.value, why});
  }
  const auto effect = m_reasons.effect.find(d.name);
  out.expected_effect = effect != m_reasons.effect.end() ? fmt::format("{:.2f}x where it applies: {}", effect->second, says)
                        : d.limiter == m_seen.limiter
                            ? fmt::format("relieves {}, the limiter seen: {}", d.limiter, says)
                            : fmt::format("relieves {}, which is not the limiter seen ({}): {}", d.limiter, m_seen.limiter, says);
  for (const auto& on : d.depends_on)
    if (const auto at = m_ids.find(on); at != m_ids.end()) out.depends_on.push_back(at->second);
  return out;
}

void Draft::add(const std::string& title, const std::vector<const BlueprintDecision*>& decisions, const std::set<std::string>& open,
                std::optional<PerformanceCondition> performance, int cost) {
  const std::size_t index = m_plan.milestones.size();
  Milestone m;
  m.id = fmt::format("M{}", index);
  m.title = title;
  m.cost = cost;
  if (index > 0) m.prerequisites.push_back(m_plan.milestones.back().id);
  if (index > 0) m.acceptance.performance = performance;  // M0 has no speed threshold
  for (const auto* d : decisions) {
    const bool is_open = !d->structural && open.count(d->name) > 0 && possible(*d, m_names).size() > 1;
    const std::string id = fmt::format("D{}.{}", index, m.decisions.size() + 1);
    m.decisions.push_back(decide(*d, id, is_open));
    m_ids[d->name] = id;
    const BlueprintOption* chosen = find_option(*d, m_choices.at(d->name));
    if (chosen && !is_open)
      m.acceptance.mechanism.all.insert(m.acceptance.mechanism.all.end(), chosen->signature.all.begin(), chosen->signature.all.end());
  }
  m_plan.milestones.push_back(std::move(m));
}

}  // namespace forge
