// SPDX-License-Identifier: Apache-2.0
// What both built-in agents need of a blueprint: choices from and to records, rendering.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "agents/builtin.h"
#include "core/blueprint.h"

namespace forge {

using Decisions = std::vector<std::pair<std::string, std::string>>;

// Overwrites the choices that the record names; names and values that the blueprint does not know are left out.
void overlay(const Blueprint&, const Decisions&, Choices&);
Decisions to_decisions(const Blueprint&, const Choices&);  // blueprint order
const BlueprintDecision* find_decision(const Blueprint&, const std::string& name);
// The i-th package of a timing job ran, and is another kernel than the first one: where a choice changes nothing in the image, what
// is measured is noise.
bool told_apart(const std::vector<Diagnostic>&, std::size_t i);
// One line that is equal exactly for equal structural choices.
std::string structure_of(const Blueprint&, const Choices&);

}  // namespace forge
