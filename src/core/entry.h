// SPDX-License-Identifier: Apache-2.0
// One piece of knowledge: a mechanism, when it applies, how to recognise it, a probe, and what was measured.
// Format: docs/formats/entry.md.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/evidence.h"
#include "core/expr.h"
#include "core/verdict.h"

namespace forge {

enum class EntryState { proposed, certified, refuted, retired };
const char* name(EntryState);

// What an entry says of a choice. The names are the blueprints' decision names.
struct Advice {
  std::string decision, value;
  Expr when;  // over axes, machine properties and evidence metrics (percent, rounded); empty: always
  std::string because;
};

struct Certification {  // evidence/<device_class>.json
  std::string device_class, device, compiler, date, commit;
  bool applicable = true;                         // false: the target cannot run the probe (said in `outcome`)
  Comparison comparison = Comparison::ambiguous;  // mechanism against baseline
  Interval effect;                                // T_baseline / T_mechanism
  double floor = 0;
  EntryState outcome = EntryState::proposed;
  std::string note;
};

struct Entry {
  std::string id, title;
  std::vector<std::string> targets;   // globs: "cpu:*"
  std::string mechanism;              // how it works, a paragraph
  Expr applies;                       // empty: always
  std::vector<std::string> symptoms;  // what one sees when it is missing
  std::vector<std::string> limitations;
  std::string origin;  // where the fact comes from
  std::vector<Advice> advice;
  Signature signature;         // recognises the mechanism in an image
  std::string probe_operator;  // [probe] operator: of the probe's two packages, knowledge/operators/<name> or operators/<name>
  // [probe] blueprint: a side that has no folder baseline/ or mechanism/ is rendered from it, by the choices of both and its own; the
  // other decisions take their default.
  std::string probe_blueprint;
  std::map<std::string, std::string> probe_choices, probe_baseline, probe_mechanism;
  Expr probe_requires;    // [probe] requires: over machine properties; empty: runs everywhere
  double min_effect = 0;  // [probe] min_effect: the probe must gain more than this (ratio - 1) to be certified
  bool retired = false;
  std::string folder;                   // where it was read from
  std::vector<Certification> evidence;  // one per device class
};
Result<Entry> parse_entry(const std::string& toml, const std::string& file);
Result<Certification> parse_certification(const std::string& json, const std::string& file);
std::string certification_to_json(const Certification&);
// The state on one device class: retired, else that class's outcome, else proposed.
EntryState state_on(const Entry&, const std::string& device_class);

}  // namespace forge
