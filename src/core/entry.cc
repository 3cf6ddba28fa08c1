// SPDX-License-Identifier: Apache-2.0
// Knowledge entries. Layout: docs/formats/entry.md.
#include "core/entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/json_reader.h"
#include "core/toml_io.h"

namespace forge {

const char* name(EntryState state) {
  switch (state) {
    case EntryState::proposed:
      return "proposed";
    case EntryState::certified:
      return "certified";
    case EntryState::refuted:
      return "refuted";
    case EntryState::retired:
      break;
  }
  return "retired";
}

Result<Entry> parse_entry(const std::string& text, const std::string& file) {
  FORGE_TRY_ASSIGN(TomlReader toml, TomlReader::parse(text, file));
  Entry e;
  toml.format(1);
  toml.need_text("id", e.id);
  toml.check(std::all_of(e.id.begin(), e.id.end(), [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; }), "id",
             "only letters, digits, '-' and '_' are allowed", "it is the folder's name");
  toml.need_text("title", e.title);
  toml.need("targets", e.targets);
  toml.check(!toml.has("targets") || !e.targets.empty(), "targets", "must not be empty", "\"cpu:*\" is every CPU");
  toml.need_text("mechanism", e.mechanism);
  toml.maybe("applies", e.applies);
  toml.maybe("symptoms", e.symptoms);
  toml.maybe("limitations", e.limitations);
  toml.need_text("origin", e.origin);
  toml.maybe("retired", e.retired);
  for (TomlReader& row : toml.tables("advice")) {
    Advice& a = e.advice.emplace_back();
    row.need_text("decision", a.decision);
    row.need_text("value", a.value);
    row.maybe("when", a.when);
    row.need_text("because", a.because);
  }
  e.signature = read_signature(toml, "signature");
  TomlReader probe = toml.need_table("probe");
  probe.need_text("operator", e.probe_operator);
  probe.maybe("blueprint", e.probe_blueprint);
  probe.maybe("choices", e.probe_choices);
  probe.maybe("baseline", e.probe_baseline);
  probe.maybe("mechanism", e.probe_mechanism);
  const bool chooses = !e.probe_choices.empty() || !e.probe_baseline.empty() || !e.probe_mechanism.empty();
  probe.check(!e.probe_blueprint.empty() || !chooses, "blueprint", "choices are of a blueprint, and none is named",
              "blueprint = \"OPERATOR\", or write the two packages into baseline/ and mechanism/");
  probe.maybe("requires", e.probe_requires);
  probe.maybe("min_effect", e.min_effect);
  probe.check(e.min_effect >= 0, "min_effect", "must not be negative");
  FORGE_TRY(toml.finish());
  return e;
}

Json to_json_value(const Certification& c) {
  return Json{{"format", 1},
              {"device_class", c.device_class},
              {"device", c.device},
              {"compiler", c.compiler},
              {"date", c.date},
              {"commit", c.commit},
              {"applicable", c.applicable},
              {"comparison", name(c.comparison)},
              {"effect", to_json_value(c.effect)},
              {"floor", number(c.floor)},
              {"outcome", name(c.outcome)},
              {"note", c.note}};
}

Certification get_certification(JsonReader r) {
  Certification c;
  r.format(1);
  r.need_text("device_class", c.device_class);
  r.need("device", c.device);
  r.need("compiler", c.compiler);
  r.need("date", c.date);
  r.need("commit", c.commit);
  r.need("applicable", c.applicable);
  r.need_choice("comparison", c.comparison, {Comparison::faster, Comparison::same, Comparison::slower, Comparison::ambiguous});
  c.effect = get_interval(r.need_object("effect"));
  r.maybe("floor", c.floor);  // left out where a record was transcribed from what the program printed
  r.need_choice("outcome", c.outcome, {EntryState::proposed, EntryState::certified, EntryState::refuted});
  r.check(c.applicable || c.outcome != EntryState::certified, "outcome", "what the target cannot run is not certified");
  r.maybe("note", c.note);
  return c;
}

Result<Certification> parse_certification(const std::string& json, const std::string& file) {
  return parse_with(get_certification, json, file);
}
std::string certification_to_json(const Certification& c) { return dump(to_json_value(c), 2); }

EntryState state_on(const Entry& entry, const std::string& device_class) {
  if (entry.retired) return EntryState::retired;
  for (const Certification& c : entry.evidence)
    if (c.device_class == device_class) return c.outcome;
  return EntryState::proposed;
}

}  // namespace forge
