// SPDX-License-Identifier: Apache-2.0
// One paired job: every side on the same buffers, one call a turn in an order drawn anew each round, fresh content before every
// call, every call of a candidate checked. The number of rounds is declared before the first. docs/judging.md, "A timing job".
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/verdict.h"
#include "device/nvml.h"
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
  bool one_slot = false;  // its batches repeat the one call that is prepared: an expert, whose plans are costly
};

// A side whose ratio to side 0 the verdict hangs on, and the ratio that it hangs on.
struct JobWatch {
  int side = 1;
  double need = 1;
  bool gain_wanted = true;
};

// The card, and how many processes other than ours compute on it; negative: unknown.
struct CardLook {
  CardState state;
  int foreign = -1;
};

struct JobPlan {
  int pairs = kMinPairs;  // declared; pilot and extension follow from it
  double floor = 0;
  std::vector<JobWatch> watch;     // first one: the performance condition
  bool may_extend = true;          // once, to twice the pairs, when a watched comparison is ambiguous
  bool may_stop_early = true;      // after kPilotPairs, only when the first watched ratio is hopeless
  int warm_up = 1;                 // rounds that are checked and thrown away
  bool audited = false;            // a verdict hangs on it: the outside clock is asked too
  std::function<CardLook()> card;  // on a GPU: asked before, after, and every kCardBlock rounds
};
inline constexpr int kCardBlock = 8;
inline constexpr int kPilotPairs = 5;
inline constexpr double kHopeless = 0.9;  // the upper bound is under 90 % of what is needed

struct JobFailure {
  int side = 0;
  Reason reason = Reason::runner_broke;
  std::string detail;
  bool killed = false;  // RunnerFailure::killed
};

// What the outside clock says of the sides (docs/judging.md, "Two clocks").
enum class Audit {
  every_call,  // it spans each timed call: CallTiming::outside_s
  batches,     // batches of pipelined calls
};
struct BatchSide {
  int side = 0;
  double seconds = 0;  // a call by the inside clock
  double wanted = 0;   // half width of log(this side over the candidate) that is enough
};
struct BatchPlan {
  int calls = 0;  // N: a batch has 1 to 2 N calls
  // Declared; each is two batches of every side, of n and of 2 N + 1 - n calls, n drawn anew and the same for all sides, and as many
  // flushes alone, in an order drawn anew. What a process needs to begin and to end a batch is its own, and so is where its flush's
  // memory lies: the difference is the calls'.
  int repetitions = 7;
  // And on, up to `most` or for `patience_s`, while an interval is wider than wanted. How wide it is decides, never where it lies.
  int most = 42;
  double patience_s = 3;
  double end_s = 30;             // by which not even those declared go on
  std::vector<BatchSide> sides;  // the candidate first
};
struct BatchTimes {
  int calls = 0;
  std::map<int, std::vector<double>> per_call_s;  // by side, one a repetition: a call, by what a flush takes longer with it
  CorrectnessReport checks;                       // of side 0
  std::optional<JobFailure> failure;
  double seconds = 0;
};
// `batch` is prepared in the runners of all sides but those with one slot, which work on `stage`.
Result<BatchTimes> run_batches(const BatchPlan&, const std::vector<JobSide>&, Batch&, Stage&, Random&, const std::string& what);
// N that tells `seconds` a call to a quarter of a percent from the jitter of a batch's begin and end.
int batch_calls(double seconds);
// What a batch's call differs by from the inside clock's: measured, see docs/judging.md.
inline constexpr double kBatchSeconds = 1.5e-6, kBatchRatio = 0.005;
// By how much a flush of the candidate's process may be slower than a trusted one's: they differ by less (results/h200/vehicles.txt).
inline constexpr double kFlushSeconds = 0.5e-6;

struct JobResult {
  std::vector<std::vector<CallTiming>> calls;  // [side][round]
  int planned = 0;
  bool extended = false, stopped_early = false;
  CorrectnessReport checks;           // of side 0
  std::optional<JobFailure> failure;  // of the first side that failed; the job ended there
  ForeignLoad load;
  std::vector<CardLook> card;
  Audit audit = Audit::every_call;
  BatchTimes batches;           // Audit::batches, where it was run
  std::string batches_missing;  // Audit::batches: why it was not
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
// An inside time longer than the turn that it lay in. Empty when consistent.
std::string inside_problem(const std::vector<CallTiming>&);

}  // namespace forge
