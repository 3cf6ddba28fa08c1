// SPDX-License-Identifier: Apache-2.0
#include "evolve/run_json.h"

#include <fmt/format.h>

#include <limits>

#include "core/loose_json.h"

namespace forge {

namespace {

// The journal's hash chain has vouched for the text, so a wrong type here is an older format or a bug: one error for all of them.
tl::unexpected<Error> malformed(const char* what) {
  return fail(Error{.code = Code::bad_input,
                    .message = "the journal's record is not readable",
                    .file = {},
                    .line = 0,
                    .field = what,
                    .fix = "it was written by another version of forge; start a new run"});
}

double number_of(const Json& j, const char* key, double otherwise) {
  const Json* m = find_field(j, key);
  return m && m->is_number() ? m->get<double>() : otherwise;
}
std::vector<std::string> texts_of(const Json& j, const char* key) {
  std::vector<std::string> out;
  if (const Json* m = find_field(j, key); m && m->is_array())
    for (const Json& s : *m)
      if (s.is_string()) out.push_back(s.get<std::string>());
  return out;
}

}  // namespace

Json decisions_to_json(const Decisions& decisions) {
  Json out = Json::array();
  for (const auto& [name, value] : decisions) out.push_back(Json::array({name, value}));
  return out;
}

Json failures_to_json(const std::vector<FailureCondition>& failures) {
  Json out = Json::array();
  for (const auto& f : failures) out.push_back(Json{{"decision", f.decision}, {"value", f.value}, {"because", f.because}});
  return out;
}

Json acceptance_to_json(const Acceptance& a) {
  Json out;
  out["performance"] = nullptr;
  if (a.performance) out["performance"] = Json{{"against", name(a.performance->against)}, {"min_gain", a.performance->min_gain}};
  out["mechanism"] = to_json_value(a.mechanism);
  return out;
}

Json reference_to_json(const ReferenceInfo& r) {
  return Json{{"present", r.present}, {"id", r.id}, {"description", r.description}, {"considered", r.considered}, {"seconds", r.seconds}};
}

Json retrieved_to_json(const std::vector<Retrieved>& retrieved) {
  Json out = Json::array();
  for (const auto& r : retrieved) {
    Json row{{"id", r.entry.id},       {"title", r.entry.title}, {"mechanism", r.entry.mechanism}, {"limitations", r.entry.limitations},
             {"state", name(r.state)}, {"effect", r.effect}};
    row["advice"] = Json::array();
    for (const auto& a : r.advice)
      row["advice"].push_back(Json{{"decision", a.decision}, {"value", a.value}, {"when", a.when.text}, {"because", a.because}});
    out.push_back(std::move(row));
  }
  return out;
}

Json diagnostics_to_json(const std::vector<Diagnostic>& diagnostics) {
  Json out = Json::array();
  for (const auto& d : diagnostics) out.push_back(to_json_value(d));
  return out;
}

Json heritage_to_json(const Heritage& h) {
  return Json{
      {"number", h.number}, {"parent", h.parent}, {"decisions", decisions_to_json(h.decisions)}, {"avoided", failures_to_json(h.avoided)}};
}

Json spent_to_json(const Spent& s) {
  return Json{{"candidates", s.candidates},
              {"gate_seconds", s.gate_seconds},
              {"wall_seconds", s.wall_seconds},
              {"tokens", s.tokens},
              {"dollars", s.dollars}};
}

Result<Decisions> read_decisions(const Json& j) {
  if (!j.is_array()) return malformed("decisions");
  Decisions out;
  for (const Json& row : j) {
    if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_string()) return malformed("decisions");
    out.emplace_back(row[0].get<std::string>(), row[1].get<std::string>());
  }
  return out;
}

Result<ReferenceInfo> read_reference(const Json& j) {
  const Json* present = find_field(j, "present");
  if (!present || !present->is_boolean()) return malformed("present");
  ReferenceInfo out;
  out.present = present->get<bool>();
  out.id = string_of(j, "id");
  out.description = string_of(j, "description");
  out.considered = texts_of(j, "considered");
  out.seconds = number_of(j, "seconds", 0);
  return out;
}

Result<std::vector<Retrieved>> read_retrieved(const Json& j) {
  if (!j.is_array()) return malformed("knowledge");
  std::vector<Retrieved> out;
  for (const Json& row : j) {
    Retrieved r;
    r.entry.id = string_of(row, "id");
    if (r.entry.id.empty()) return malformed("knowledge.id");
    r.entry.title = string_of(row, "title");
    r.entry.mechanism = string_of(row, "mechanism");
    r.entry.limitations = texts_of(row, "limitations");
    bool known = false;
    for (EntryState s : {EntryState::proposed, EntryState::certified, EntryState::refuted, EntryState::retired})
      if (string_of(row, "state") == name(s)) r.state = s, known = true;
    if (!known) return malformed("knowledge.state");
    r.effect = number_of(row, "effect", 1);
    if (const Json* advice = find_field(row, "advice"); advice && advice->is_array())
      for (const Json& a : *advice) {
        Advice one{.decision = string_of(a, "decision"), .value = string_of(a, "value"), .when = {}, .because = string_of(a, "because")};
        if (const std::string when = string_of(a, "when"); !when.empty()) {
          FORGE_TRY_ASSIGN(one.when, parse_expr(when));
        }
        r.advice.push_back(std::move(one));
      }
    out.push_back(std::move(r));
  }
  return out;
}

Result<Heritage> read_heritage(const Json& j) {
  Heritage out;
  if (const Json* number = find_field(j, "number")) {
    if (!number->is_number_integer() || *number < 0 || *number > std::numeric_limits<int>::max()) return malformed("heritage.number");
    out.number = number->get<int>();
  }
  out.parent = string_of(j, "parent");
  const Json* decisions = find_field(j, "decisions");
  const Json* avoided = find_field(j, "avoided");
  if (!decisions || !avoided || !avoided->is_array()) return malformed("heritage");
  FORGE_TRY_ASSIGN(out.decisions, read_decisions(*decisions));
  for (const Json& f : *avoided) out.avoided.push_back({string_of(f, "decision"), string_of(f, "value"), string_of(f, "because")});
  return out;
}

}  // namespace forge
