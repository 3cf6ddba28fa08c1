// SPDX-License-Identifier: Apache-2.0
#include "agents/builtin_common.h"

#include <algorithm>

namespace forge {

const BlueprintDecision* find_decision(const Blueprint& blueprint, const std::string& name) {
  for (const auto& d : blueprint.decisions)
    if (d.name == name) return &d;
  return nullptr;
}

void overlay(const Blueprint& blueprint, const Decisions& decisions, Choices& choices) {
  for (const auto& [name, value] : decisions)
    if (const BlueprintDecision* d = find_decision(blueprint, name); d && find_option(*d, value)) choices[name] = value;
}

Decisions to_decisions(const Blueprint& blueprint, const Choices& choices) {
  Decisions out;
  for (const auto& d : blueprint.decisions)
    if (const auto at = choices.find(d.name); at != choices.end()) out.emplace_back(d.name, at->second);
  return out;
}

bool told_apart(const std::vector<Diagnostic>& timed, std::size_t i) {
  if (i >= timed.size() || !timed[i].ran || !timed[0].ran) return false;
  return timed[i].image_sha.empty() || timed[i].image_sha != timed[0].image_sha;
}

std::string structure_of(const Blueprint& blueprint, const Choices& choices) {
  std::string out;
  for (const auto& d : blueprint.decisions)
    if (d.structural) out += d.name + "=" + choices.at(d.name) + ";";
  return out;
}

}  // namespace forge
