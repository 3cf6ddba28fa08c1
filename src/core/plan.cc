// SPDX-License-Identifier: Apache-2.0
// Plans: JSON and the rules that a plan keeps. Layout: docs/formats/plan.md.
#include "core/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/json_reader.h"
#include "util/text.h"

namespace forge {

const char* name(Against against) {
  switch (against) {
    case Against::reference:
      return "reference";
    case Against::branch_best:
      return "branch_best";
    case Against::global_best:
      break;
  }
  return "global_best";
}

namespace {

Json to_json_value(const Decision& d) {
  Json rejected = Json::array(), evidence = Json::array();
  for (const Rejected& r : d.rejected) rejected.push_back({{"value", r.value}, {"why", r.why}});
  for (const EvidenceItem& e : d.evidence) evidence.push_back({{"observed", e.observed}, {"text", e.text}});
  return Json{{"id", d.id},
              {"name", d.name},
              {"choice", d.choice},
              {"structural", d.structural},
              {"range", d.range},
              {"rejected", std::move(rejected)},
              {"evidence", std::move(evidence)},
              {"expected_effect", d.expected_effect},
              {"depends_on", d.depends_on},
              {"cites", d.cites}};
}

Decision get_decision(JsonReader r) {
  Decision d;
  r.need("id", d.id);
  r.need("name", d.name);
  r.need("choice", d.choice);
  r.need("structural", d.structural);
  r.maybe("range", d.range);
  for (JsonReader& row : r.objects("rejected")) {
    Rejected& x = d.rejected.emplace_back();
    row.need("value", x.value);
    row.need("why", x.why);
  }
  for (JsonReader& row : r.need_objects("evidence")) {
    EvidenceItem& x = d.evidence.emplace_back();
    row.need("observed", x.observed);
    row.need("text", x.text);
  }
  r.maybe("expected_effect", d.expected_effect);
  r.maybe("depends_on", d.depends_on);
  r.maybe("cites", d.cites);
  return d;
}

Json to_json_value(const Milestone& m) {
  Json decisions = Json::array();
  for (const Decision& d : m.decisions) decisions.push_back(to_json_value(d));
  Json acceptance = Json::object();
  if (const auto& p = m.acceptance.performance)
    acceptance["performance"] = Json{{"against", name(p->against)}, {"min_gain", number(p->min_gain)}};
  acceptance["mechanism"] = to_json_value(m.acceptance.mechanism);
  return Json{{"id", m.id},
              {"title", m.title},
              {"decisions", std::move(decisions)},
              {"prerequisites", m.prerequisites},
              {"cost", m.cost},
              {"acceptance", std::move(acceptance)}};
}

Milestone get_milestone(JsonReader r) {
  Milestone m;
  r.need("id", m.id);
  r.need("title", m.title);
  for (JsonReader& d : r.need_objects("decisions")) m.decisions.push_back(get_decision(d));
  r.maybe("prerequisites", m.prerequisites);
  r.maybe("cost", m.cost);
  JsonReader acceptance = r.need_object("acceptance");
  if (acceptance.has("performance")) {
    JsonReader p = acceptance.object("performance");
    PerformanceCondition condition;
    p.need_choice("against", condition.against, {Against::reference, Against::branch_best, Against::global_best});
    p.need("min_gain", condition.min_gain);
    m.acceptance.performance = condition;
  }
  m.acceptance.mechanism = get_signature(acceptance, "mechanism");
  return m;
}

// "M12" -> 12, "D1.3" with prefix "D1." -> 3; -1 when it does not have that form.
int number_after(const std::string& id, const std::string& prefix) {
  if (id.size() <= prefix.size() || id.size() > prefix.size() + 4 || id.rfind(prefix, 0) != 0) return -1;
  const std::string digits = id.substr(prefix.size());
  if (!std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); })) return -1;
  return digits.size() > 1 && digits[0] == '0' ? -1 : std::stoi(digits);
}

tl::unexpected<Error> bad(const std::string& field, const std::string& message, const std::string& fix = {}) {
  return fail(Error{.code = Code::bad_input, .message = message, .file = {}, .line = 0, .field = field, .fix = fix});
}

Status check_decision(const Decision& d, const std::string& at, const std::string& prefix, const std::set<std::string>& earlier) {
  if (number_after(d.id, prefix) < 1) return bad(at + ".id", fmt::format("'{}' is not {}<n> with n from 1", d.id, prefix));
  if (earlier.count(d.id)) return bad(at + ".id", fmt::format("'{}' stands twice", d.id));
  if (trim(d.name).empty()) return bad(at + ".name", "must not be empty");
  if (trim(d.choice).empty()) return bad(at + ".choice", "must not be empty", "every decision has a choice");
  if (d.structural && !d.range.empty()) return bad(at + ".range", "a structural decision has no range", "make it local, or drop the range");
  if (!d.range.empty() && std::find(d.range.begin(), d.range.end(), d.choice) == d.range.end())
    return bad(at + ".range", fmt::format("does not hold the choice '{}'", d.choice));
  for (std::size_t i = 0; i < d.rejected.size(); i++) {
    const std::string field = fmt::format("{}.rejected[{}]", at, i);
    if (d.rejected[i].value == d.choice) return bad(field + ".value", fmt::format("'{}' is the choice itself", d.choice));
    if (trim(d.rejected[i].why).empty()) return bad(field + ".why", "must not be empty");
  }
  if (d.evidence.empty()) return bad(at + ".evidence", "there is none", "give at least one piece of evidence, observed or hypothesis");
  for (std::size_t i = 0; i < d.evidence.size(); i++)
    if (trim(d.evidence[i].text).empty()) return bad(fmt::format("{}.evidence[{}].text", at, i), "must not be empty");
  for (std::size_t i = 0; i < d.depends_on.size(); i++)
    if (!earlier.count(d.depends_on[i]))
      return bad(fmt::format("{}.depends_on[{}]", at, i), fmt::format("'{}' is no earlier decision", d.depends_on[i]),
                 "put the decision that it depends on before it");
  return {};
}

Status check_acceptance(const Acceptance& a, const std::string& at, bool first) {
  if (a.performance) {
    if (first) return bad(at + ".performance", "M0 has no speed threshold", "move the condition to a later milestone");
    const double gain = a.performance->min_gain;
    if (!(std::isfinite(gain) && gain > -1)) return bad(at + ".performance.min_gain", "must be finite and above -1");
  }
  for (std::size_t i = 0; i < a.mechanism.all.size(); i++)
    for (const SignatureProblem& p : problems_of(a.mechanism.all[i]))
      return bad(fmt::format("{}.mechanism[{}].{}", at, i, p.key), p.message, p.fix);
  return {};
}

}  // namespace

Json to_json_value(const Plan& p) {
  Json milestones = Json::array(), avoided = Json::array();
  for (const Milestone& m : p.milestones) milestones.push_back(to_json_value(m));
  for (const FailureCondition& f : p.avoided) avoided.push_back({{"decision", f.decision}, {"value", f.value}, {"because", f.because}});
  return Json{{"format", p.format},
              {"operator", p.operator_name},
              {"target", p.target},
              {"revision", p.revision},
              {"restart_at", p.restart_at},
              {"reason", p.reason},
              {"milestones", std::move(milestones)},
              {"avoided", std::move(avoided)}};
}

Plan get_plan(JsonReader r) {
  Plan p;
  r.format(1);
  r.need("operator", p.operator_name);
  r.need("target", p.target);
  r.maybe("revision", p.revision);
  r.maybe("restart_at", p.restart_at);
  r.maybe("reason", p.reason);
  for (JsonReader& m : r.need_objects("milestones")) p.milestones.push_back(get_milestone(m));
  for (JsonReader& row : r.objects("avoided")) {
    FailureCondition& f = p.avoided.emplace_back();
    row.need("decision", f.decision);
    row.need("value", f.value);
    row.need("because", f.because);
  }
  return p;
}

Status check_plan(const Plan& p) {
  if (p.format != 1) return bad("format", fmt::format("format {} is not known", p.format));
  if (p.operator_name.empty()) return bad("operator", "must not be empty");
  if (p.target.empty()) return bad("target", "must not be empty");
  if (p.revision < 0) return bad("revision", "must not be negative");
  if (p.milestones.empty()) return bad("milestones", "there is none", "begin with M0");
  if (p.restart_at < 0 || p.restart_at >= static_cast<int>(p.milestones.size()))
    return bad("restart_at", fmt::format("{} is no index of a milestone", p.restart_at));

  std::set<std::string> decisions, milestones;
  for (std::size_t i = 0; i < p.milestones.size(); i++) {
    const Milestone& m = p.milestones[i];
    const std::string at = fmt::format("milestones[{}]", i);
    if (number_after(m.id, "M") != static_cast<int>(i))
      return bad(at + ".id", fmt::format("is '{}', must be 'M{}'", m.id, i), "milestones are numbered in order, from M0");
    if (m.decisions.empty()) return bad(at + ".decisions", "there is none");
    std::set<std::string> names;
    for (std::size_t k = 0; k < m.decisions.size(); k++) {
      const std::string field = fmt::format("{}.decisions[{}]", at, k);
      FORGE_TRY(check_decision(m.decisions[k], field, fmt::format("D{}.", i), decisions));
      if (!names.insert(m.decisions[k].name).second)
        return bad(field + ".name", fmt::format("'{}' is decided twice in this milestone", m.decisions[k].name));
      decisions.insert(m.decisions[k].id);
    }
    if (i == 0 && std::none_of(m.decisions.begin(), m.decisions.end(), [](const Decision& d) { return d.structural; }))
      return bad(at + ".decisions", "M0 has no structural decision", "M0 fixes the architecture");
    for (std::size_t k = 0; k < m.prerequisites.size(); k++)
      if (!milestones.count(m.prerequisites[k]))
        return bad(fmt::format("{}.prerequisites[{}]", at, k), fmt::format("'{}' is no earlier milestone", m.prerequisites[k]));
    if (m.cost < 1) return bad(at + ".cost", "must be at least 1");
    FORGE_TRY(check_acceptance(m.acceptance, at + ".acceptance", i == 0));
    milestones.insert(m.id);
  }
  for (std::size_t i = 0; i < p.avoided.size(); i++) {
    const std::string at = fmt::format("avoided[{}]", i);
    if (p.avoided[i].decision.empty()) return bad(at + ".decision", "must not be empty");
    if (p.avoided[i].value.empty()) return bad(at + ".value", "must not be empty");
  }
  return {};
}

std::string plan_to_json(const Plan& p) { return dump(to_json_value(p), 2); }
Result<Plan> parse_plan(const std::string& json, const std::string& file) { return parse_with(get_plan, json, file); }
Result<Plan> read_plan(const Json& json, const std::string& where) { return read_with(get_plan, json, where); }

}  // namespace forge
