// SPDX-License-Identifier: Apache-2.0
// Tasks, budgets, and the record of a sealed kernel (a generation). Format: docs/formats/record.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/package.h"
#include "core/verdict.h"

namespace forge {

struct Budget {
  int candidates = 24;  // hand-ins
  double gate_seconds = 600;
  double wall_seconds = 3600;
  std::int64_t tokens = 0;  // of agents that are models; 0: none granted
  double dollars = 0;
};

struct Spent {
  int candidates = 0;
  double gate_seconds = 0, wall_seconds = 0;
  std::int64_t tokens = 0;
  double dollars = 0;
};

// What a run works on.
struct Task {
  std::string operator_name;
  std::string target;     // "cpu:x86-64-avx512"
  std::string reference;  // "expert" (the best one), "expert:<name>", "gen:<sha prefix>", "none"
  double goal = 0;        // stop early at this speedup; 0: none
  Budget budget;
  std::uint64_t seed = 1;                                // the agents'; never the judge's
  bool revise = true;                                    // false: first plan only
  bool knowledge = true;                                 // false: no retrieval
  bool plan = true;                                      // false: goal mode, nobody decides anything
  bool disassembly = true;                               // false: agents see no instruction mix and no listing
  bool plan_template = true;                             // false: an architect that is a model is not told how plans are built up
  bool show_reference = false;                           // the coder reads the reference, which must be a generation or a package
  std::string architect = "builtin", coder = "builtin";  // the seats: agents/seats.h says what can sit there
};
std::string task_to_json(const Task&);
Result<Task> parse_task(const std::string& json, const std::string& file);

enum class Stop { goal, exhausted, plateau, blocked, budget, user, enough };  // enough: the coding agent wanted no more
const char* name(Stop);

struct Generation {
  std::string id;  // package hash
  int number = 0;  // gen<k>
  std::string operator_name, target, run_id, date;
  std::string parent;  // id of the generation it was built against, or "expert:<name>"
  KernelPackage package;
  std::string image_sha;
  Verdict verdict = Verdict::rejected(Reason::runner_broke, "");  // the confirmation
  std::optional<PairedTiming> against_expert;                     // direct, in one job
  std::string expert;                                             // which one, with version and core type
  std::vector<std::string> cites, adopted;
  std::vector<std::pair<std::string, std::string>> decisions;  // name, value
  std::string machine;                                         // device class
};
std::string generation_to_json(const Generation&);
Result<Generation> parse_generation(const std::string& json, const std::string& file);

}  // namespace forge
