// SPDX-License-Identifier: Apache-2.0
// What a user says of a task, the same for run, evolve and open.
#pragma once
#include <string>

#include "cli/command.h"

namespace forge {

struct TaskFlags {
  std::string op, target, reference = "expert";
  double goal = -1;  // negative: the configuration's
  int candidates = 0;
  double gate_seconds = 0, wall_seconds = 0;
  std::int64_t seed = -1;
  bool no_revise = false, no_knowledge = false, no_plan = false, no_disassembly = false, no_template = false, show_reference = false;
  std::string architect = "builtin", coder = "builtin";
  std::int64_t tokens = 0;
  double dollars = 0;
};
// Checks for CLI11: empty when the text is a finite number above 0, as "nan" is not.
std::string positive(const std::string& text);
inline constexpr std::int64_t kMostTokens = 1'000'000'000'000;
// Those that make sense whoever builds; a command adds its own.
void add_task_flags(CLI::App&, TaskFlags&);
Result<Task> make_task(const Context&, const TaskFlags&);  // over the configuration's defaults

}  // namespace forge
