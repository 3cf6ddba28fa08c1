// SPDX-License-Identifier: Apache-2.0
// Retrieval as its definition reads: every entry copied, every condition evaluated by name. What the base's index must agree with,
// and what the benchmark times it against.
#pragma once
#include <algorithm>

#include "knowledge/knowledge.h"
#include "util/text.h"

namespace forge {

inline bool plainly_holds(const Expr& condition, const Names& names) {
  if (condition.empty()) return true;
  const auto value = evaluate(condition, names);
  return value && *value != 0;
}

inline std::vector<Retrieved> plain_retrieve(const std::vector<Entry>& entries, const Machine& machine, const Names& names) {
  std::vector<Retrieved> out;
  for (const Entry& e : entries) {
    Retrieved r{.entry = e, .state = state_on(e, machine.device_class), .effect = 1, .advice = {}};
    if (r.state == EntryState::retired || r.state == EntryState::refuted) continue;
    const bool target_fits =
        std::any_of(e.targets.begin(), e.targets.end(), [&](const std::string& glob) { return glob_match(glob, machine.target.name); });
    if (!target_fits || !plainly_holds(e.applies, names)) continue;
    for (const Certification& c : e.evidence) {
      if (c.device_class != machine.device_class) continue;
      if (!c.applicable)
        r.state = EntryState::proposed;
      else if (r.state == EntryState::certified)
        r.effect = c.effect.mid;
    }
    for (const Advice& a : e.advice)
      if (plainly_holds(a.when, names)) r.advice.push_back(a);
    out.push_back(std::move(r));
  }
  std::stable_sort(out.begin(), out.end(), [](const Retrieved& a, const Retrieved& b) {
    return a.effect != b.effect ? a.effect > b.effect : a.entry.id < b.entry.id;
  });
  return out;
}

}  // namespace forge
