// SPDX-License-Identifier: Apache-2.0
// The parts of forge compare: what an arm is, and the table of what arms came to.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/record.h"
#include "evolve/evolve.h"

namespace forge {

// "full", an ablation ("no-revise", "no-knowledge", "no-plan", "no-disassembly", "no-template"), or agents by seat
// ("coder=openai:m,architect=builtin"), or both with '+' between ("no-plan+coder=command:codex").
struct Arm {
  std::string name;
  Task apply(Task) const;
  std::vector<std::string> parts;
};
Result<Arm> parse_arm(const std::string&);

// One run of one arm.
struct ArmRun {
  std::string op, arm;
  int seed = 0;
  RunResult run;
  std::optional<PairedTiming> full_against;  // the full run's kernel of this seed against this one's, in one job
  std::string duel;                          // how that ended, in a word or two
};
// One row an operator and arm: gain against the expert (geometric mean over the seeds, with a 95 % interval by bootstrap over them; a
// run without a kernel counts as no gain: 1, the expert itself), hand-ins, tokens, cost, time to first correct, time to best, and on how
// many seeds the full run ended better.
std::string compare_table(const std::vector<ArmRun>&);

}  // namespace forge
