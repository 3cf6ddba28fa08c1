// SPDX-License-Identifier: Apache-2.0
// What the gate says. A performance figure exists only for a candidate that passed correctness: the types say so.
// A Diagnostic is a measurement of something that was not checked; nothing turns one into a Verdict.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/evidence.h"
#include "util/result.h"

namespace forge {

// Every rejection has one of these, and each is counted. Numbers reach disk: never reuse one, never renumber.
enum class Reason {
  accepted = 0,
  plan_invalid = 1,       // launch.toml malformed, or a name, key or shape in it is wrong
  build_failed = 2,       // the compiler refused the source
  build_timeout = 3,      // compiler ran past its limit of time or memory
  not_admitted = 4,       // the image breaks an admission rule (state, imports, constructors, forbidden instruction, ...)
  unsupported_shape = 5,  // `requires` is false on a shape that the task lists
  load_failed = 6,        // the loader or the runner could not place the image
  crashed = 7,            // the kernel died on a signal
  out_of_bounds = 8,      // touched a guard page or overwrote a canary
  timed_out = 9,          // hung
  out_of_memory = 10,
  forbidden_call = 11,  // the sandbox killed a system call
  wrong_result = 12,    // finite but outside the judge's rule
  non_finite = 13,      // NaN or Inf where the oracle has none, or the reverse
  not_written = 14,     // poison left in an output
  inputs_changed = 15,
  not_repeatable = 16,     // same content, different bits (only where the task demands it)
  stale_result = 17,       // fresh content gave an old answer
  dirty_workspace = 18,    // a `clean` workspace was not left zero
  mechanism_missing = 19,  // the planned mechanism is not in the image
  too_slow = 20,           // correct, but misses the milestone's performance condition
  clocks_disagree = 21,    // inside and outside clock differ beyond the audit's resolution
  ambiguous = 22,          // measured, but neither a pass nor a miss beyond the floor
  not_confirmed = 23,      // fresh process and seeds did not repeat the result
  runner_broke = 24,       // the runner died or broke its protocol in a way that no other reason names
  workspace_too_large = 25,
};
const char* name(Reason);
std::optional<Reason> parse_reason(const std::string&);
const std::vector<Reason>& all_reasons();

struct CorrectnessReport {
  int checks = 0;  // calls whose every output element was compared
  std::int64_t elements = 0;
  double worst = 0;         // largest error as a fraction of its bound (1 = at the limit)
  std::string worst_where;  // workload, generator, output
  std::vector<std::string> workloads;
};

enum class Comparison { faster, same, slower, ambiguous };
const char* name(Comparison);

struct Interval {
  double low = 0, mid = 0, high = 0;
};

// Smallest paired difference told from none, from the reference against itself.
struct NoiseFloor {
  double ratio = 0;  // 0.004 = 0.4 %
  double sigma = 0;  // standard deviation of one pair's log ratio
  int pairs = 0;
  std::string device_class, boot_id, protocol;
};

// One side against another, paired and interleaved in one job.
struct PairedTiming {
  std::string against;  // "reference", "branch_best", "global_best", "expert", "rival"
  Comparison comparison = Comparison::ambiguous;
  Interval speedup;        // T_against / T_candidate; two-sided 95 % interval
  double lower_bound = 0;  // one-sided, alpha 0.0005
  double upper_bound = 0;  // likewise: below 1 - floor = slower
  int pairs = 0;
  bool extended = false;                       // the one declared extension was used
  std::vector<double> candidate_s, against_s;  // inside clock, all samples, call order
  Interval outside_speedup;                    // by the judge's own clock
  double outside_resolution = 0;               // what the outside clock can tell, as a ratio
};

struct Measurement {
  std::vector<PairedTiming> pairs;
  double seconds = 0;  // median of the candidate, inside clock
  NoiseFloor floor;
  std::map<std::string, std::string> conditions;  // clock, cache policy, workers, foreign load, device, boot, compiler, flags
};

struct GateTimes {
  double build = 0, admit = 0, correctness = 0, timing = 0, total = 0, waited = 0;
  double oracle = 0;  // of correctness: drawing inputs and asking the oracle
};                    // seconds; waited: for the lease

// Made by the gate only: passed() demands the report of a correctness run.
class Verdict {
 public:
  static Verdict rejected(Reason, std::string detail);
  static Verdict passed(CorrectnessReport, Measurement);                                             // accepted
  static Verdict missed(Reason, std::string detail, CorrectnessReport, std::optional<Measurement>);  // correct, yet not accepted

  bool accepted() const { return m_reason == Reason::accepted; }
  bool correct() const { return m_correctness.has_value(); }
  Reason reason() const { return m_reason; }
  const std::string& detail() const { return m_detail; }
  const std::optional<CorrectnessReport>& correctness() const { return m_correctness; }
  const std::optional<Measurement>& measurement() const { return m_measurement; }  // only when correct()

  std::string package_sha, image_sha;
  SignatureResult mechanism;
  InstructionMix mix;     // of the image, when it was built
  std::string build_log;  // feedback for the coder, capped
  GateTimes times;
  std::vector<std::string> notes;  // every fall-back and every missing feature, said

 private:
  Reason m_reason = Reason::runner_broke;
  std::string m_detail;
  std::optional<CorrectnessReport> m_correctness;
  std::optional<Measurement> m_measurement;
};
// The pairing against `against` ("reference"); null when the job had none, or there was no job.
const PairedTiming* find_pairing(const Measurement&, const std::string& against);
const PairedTiming* find_pairing(const Verdict&, const std::string& against);
std::string verdict_to_json(const Verdict&);
Result<Verdict> parse_verdict(const std::string& json, const std::string& where);

struct Diagnostic {
  std::string label;
  bool ran = false;
  std::string problem;       // when it did not run
  double seconds = 0;        // median
  double against_first = 1;  // T_first / T: paired with the first package of the same job
  std::string image_sha;
};

}  // namespace forge
