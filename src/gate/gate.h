// SPDX-License-Identifier: Apache-2.0
// The gate: the only place where a kernel is judged. It owns inputs, expected outputs, tolerances, seeds and the outside clock,
// opens the vault, and says accepted or a named reason. One gate serves one task on one machine; not thread-safe.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/evidence.h"
#include "core/plan.h"
#include "core/record.h"
#include "gate/catalog.h"

namespace forge {

struct ReferenceInfo {
  bool present = false;                 // a run may have none
  std::string id;                       // "expert:onednn", "gen0:1f2e..."
  std::string description;              // library, version, core type, how composed
  std::vector<std::string> considered;  // every expert tried, with its time or why it was refused
  double seconds = 0;                   // median
};

struct Submission {
  KernelPackage package;
  std::string milestone;  // id, for the record
  Acceptance acceptance;
  std::optional<KernelPackage> branch_best, global_best;  // rivals, interleaved in the same job when the condition names them
  bool timed = true;       // false: the verdict is about correctness and mechanism alone; there must be no performance condition
  bool all_pairs = false;  // the pairs of a job that a threshold hangs on, though there is none: the figure is what is wanted
};

class Gate {  // edge of the world: RealGate, FakeGate in tests
 public:
  virtual ~Gate() = default;
  virtual Result<ReferenceInfo> open() = 0;        // chooses and checks the reference; the better of the experts
  virtual Result<Evidence> analyse() = 0;          // of the reference
  virtual Result<NoiseFloor> measure_floor() = 0;  // reference against itself; kept for the run
  virtual Result<Verdict> submit(const Submission&) = 0;
  // Paired timing of unchecked packages against the first of them: for tuning, never a verdict.
  virtual Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>&) = 0;
  // What the coder may see of its own work: mix of the built image. Build failure is a Verdict's business, here an Error.
  virtual Result<Evidence> examine(const KernelPackage&) = 0;
  // Fresh process, fresh seeds, fresh floor, full oracle: against the reference, and against the first expert directly.
  virtual Result<Verdict> confirm(const KernelPackage&, const std::vector<Signature>& mechanisms) = 0;
  virtual Result<Verdict> against_expert(const KernelPackage&) = 0;
  // Likewise directly against another package, as "rival": which of two sealed kernels is the faster one.
  virtual Result<Verdict> against(const KernelPackage&, const KernelPackage& rival) = 0;
};

struct GateOptions {
  std::size_t memory_bytes = std::size_t(3) << 30;  // for pools and bases
  double timing_seconds = 3;                        // aim for one paired job; the number of pairs follows from the floor
  int max_pairs = 60;
  double wanted_effect = 0.02;  // what a job is planned to tell
  double tuning_seconds = 1.5;  // aim for one job of unchecked timing
  bool quiet = false;
};
// `task.reference` is resolved here: experts, or a sealed generation from the vault.
Result<std::unique_ptr<Gate>> make_gate(const Paths&, const Task&, const Machine&, const GateOptions&);

// The task admission battery: wrong kernels that every task must reject before it is used (zeros, constant, input copy,
// half written, last tile missing, lower precision, NaN). One line each; `must_reject` is false for the control lines, the
// oracle's own answer rounded once. The task is fit for use when every line holds.
struct AdmissionLine {
  std::string attack;
  bool rejected = false;
  std::string reason;
  bool must_reject = true;
  bool holds() const { return rejected == must_reject; }
};
// `family`: of targets, whose timed workload and shapes are taken; empty: the operator's first. The judge is the CPU's: a card's
// follows the same rules, from the same source.
Result<std::vector<AdmissionLine>> admit_task(const Paths&, const std::string& operator_name, const std::string& family = "");

// Self-tests of the judge's statistics, on this machine, against a package used as its own reference.
struct AaResult {
  int trials = 0, faster = 0, slower = 0, same = 0, ambiguous = 0;
  double floor = 0, seconds = 0;
  std::vector<double> speedups;
};
Result<AaResult> selftest_aa(const Paths&, const Machine&, const std::string& operator_name, const KernelPackage&, int trials);
struct PowerResult {
  int trials = 0, called_right = 0;
  double effect = 0, floor = 0, seconds = 0;
  std::vector<double> speedups;
  std::vector<std::string> calls;
  KernelPackage slow;  // the package with the spin
};
// `effect` 0.03: one side is slowed by a calibrated spin, alternately the candidate's and the reference's.
Result<PowerResult> selftest_power(const Paths&, const Machine&, const std::string& operator_name, const KernelPackage&, int trials,
                                   double effect);

}  // namespace forge
