// SPDX-License-Identifier: Apache-2.0
// How a run's result is shown: a paragraph, a table row, JSON. JSON is fwd-declared through core/json_io.h: include from .cc only.
#pragma once
#include <string>
#include <vector>

#include "core/json_io.h"
#include "evolve/evolve.h"

namespace forge {

std::string compared(Comparison, const std::string& against);  // "faster than X", "ambiguous against X"
std::string describe_run(const RunResult&);
std::vector<std::string> outcome_head();  // operator, reference, speedup, verdict, generation, run
std::vector<std::string> outcome_row(const RunResult&);
Json run_to_json(const RunResult&);
Comparison comparison_of(const RunResult&);
double floor_of(const RunResult&);  // a ratio; of the confirmation, which measures its own

}  // namespace forge
