// SPDX-License-Identifier: Apache-2.0
// One paired job: every side on the same buffers, one call a turn in an order drawn anew each round, fresh content before every
// call, every call of a candidate checked. The number of rounds is declared before the first. docs/judging.md, "A timing job".
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/verdict.h"
#include "gate/judge.h"
#include "gate/load.h"
#include "gate/statistics.h"
#include "runner/runner.h"
#include "util/random.h"

namespace forge {

enum class Checking { every_call, random_third, none };

struct JobSide {
  std::string label;         // "candidate", "reference", "branch_best", ...
  Runner* runner = nullptr;  // prepared on the job's stage
  Checking checking = Checking::every_call;
  int workers = 1;
};

// A side whose ratio to side 0 the verdict hangs on, and the ratio that it hangs on.
struct JobWatch {
  int side = 1;
  double need = 1;
  bool gain_wanted = true;
};

struct JobPlan {
  int pairs = kMinPairs;  // declared; pilot and extension follow from it
  double floor = 0;
  std::vector<JobWatch> watch;  // first one: the performance condition
  bool may_extend = true;       // once, to twice the pairs, when a watched comparison is ambiguous
  bool may_stop_early = true;   // after kPilotPairs, only when the first watched ratio is hopeless
  int warm_up = 1;              // rounds that are checked and thrown away
};
inline constexpr int kPilotPairs = 5;
inline constexpr double kHopeless = 0.9;  // the upper bound is under 90 % of what is needed

struct JobFailure {
  int side = 0;
  Reason reason = Reason::runner_broke;
  std::string detail;
};

struct JobResult {
  std::vector<std::vector<CallTiming>> calls;  // [side][round]
  int planned = 0;
  bool extended = false, stopped_early = false;
  CorrectnessReport checks;           // of side 0
  std::optional<JobFailure> failure;  // of the first side that failed; the job ended there
  ForeignLoad load;
  double seconds = 0, round_seconds = 0;
};
// Code::interrupted on Ctrl-C; a stage that breaks is an error, a kernel that breaks is a JobFailure.
Result<JobResult> run_job(const JobPlan&, const std::vector<JobSide>&, Stage&, Random&, const std::string& what);

// Side `against` over side `candidate`, by both clocks.
PairedTiming make_pairing(const JobResult&, const std::vector<JobSide>&, int candidate, int against, double floor);
std::vector<double> inside_seconds(const std::vector<CallTiming>&);
std::vector<double> outside_seconds(const std::vector<CallTiming>&);
// More CPU time than the workers can have had in the call: work by others. Empty when consistent.
std::string cpu_time_problem(const std::vector<CallTiming>&, int workers);

}  // namespace forge
