// SPDX-License-Identifier: Apache-2.0
// The gate on this machine. It keeps the judge's bases, the reference's runner and the recent rivals' runners warm, so that a
// hand-in costs its build, its correctness run and one paired job. Everything outside is in GateParts; tests pass fakes.
#pragma once
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "build/build.h"
#include "gate/conditions.h"
#include "gate/correctness.h"
#include "gate/gate.h"
#include "gate/timing.h"
#include "store/store.h"

namespace forge {

struct LeaseHold {
  std::shared_ptr<void> hold;
  double waited = 0;
};

struct GateParts {
  OperatorFolder op;
  std::shared_ptr<Judge> judge;
  std::function<tl::expected<Image, BuildFailure>(const KernelPackage&)> build;  // from several threads at once
  std::function<RunnerResult<std::unique_ptr<Runner>>(const Image&)> start_image;
  std::function<RunnerResult<std::unique_ptr<Runner>>(const std::string& plugin)> start_expert;
  std::function<Result<Generation>(const std::string& id_prefix)> find_sealed;
  std::function<Result<LeaseHold>(Lease::Kind)> lease;
  std::function<Result<Ceilings>()> ceilings;
  std::string compiler;  // identity, for the record
  // What differs between families of targets. Defaults: a CPU's.
  std::string protocol = kCpuProtocol;
  Audit audit = Audit::every_call;
  std::function<Result<InstructionMix>(const Image&)> disassemble = [](const Image& image) { return disassemble_object(image.bytes); };
  std::function<CardLook()> card;  // on a GPU
  double process_seconds = 0;      // by which two processes of one kernel may differ in a call, whatever was measured of two of them
  double wanted_floor = 0;         // jobs have the pairs that bring the noise floor down to this, where time allows; 0: none
  int build_threads = 0;           // compilers side by side; 0: one a core of the machine
};
// The parts of this machine: compiler, sandboxed runners, vault, lease.
Result<GateParts> real_parts(const Paths&, const std::string& operator_name, const Machine&, const GateOptions&);

// A kernel with its process.
struct Contestant {
  std::string id, description;
  std::optional<Image> image;       // none: an expert
  std::string plugin;               // of an expert
  std::unique_ptr<Runner> runner;   // null: it died, and is started again before its next job
  const Stage* prepared = nullptr;  // the stage that the runner's call is prepared on
  const Image* image_or_null() const { return image ? &*image : nullptr; }
};

class RealGate : public Gate {
 public:
  RealGate(GateParts, Task, Machine, GateOptions);
  Result<ReferenceInfo> open() override;
  Result<Evidence> analyse() override;
  Result<NoiseFloor> measure_floor() override;
  Result<Verdict> submit(const Submission&) override;
  Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>&) override;
  Result<Evidence> examine(const KernelPackage&) override;
  Result<Verdict> confirm(const KernelPackage&, const std::vector<Signature>& mechanisms) override;
  Result<Verdict> against_expert(const KernelPackage&) override;
  Result<Verdict> against(const KernelPackage&, const KernelPackage& rival) override;

 private:
  struct Side {
    std::string label;
    Contestant* who;
    Checking checking;
  };
  struct Job {
    JobPlan plan;
    JobResult result;
    std::vector<JobSide> sides;
    std::vector<const Contestant*> who;
    double waited = 0;
    std::string repeated;
  };
  struct Checked;  // what the steps before timing made of a hand-in

  using Built = tl::expected<Image, BuildFailure>;
  Result<Built> build(const KernelPackage&, double* waited = nullptr);          // from memory, or under the build lease
  Result<std::vector<Built>> build_all(const std::vector<KernelPackage>&);      // side by side, one compiler a core
  RunnerResult<std::unique_ptr<Runner>> start_runner(const Contestant&) const;  // of its image or plugin
  RunnerResult<std::unique_ptr<Contestant>> start(const Image&, const std::string& id) const;
  RunnerResult<std::unique_ptr<Contestant>> start_again(const Contestant&) const;
  Result<std::unique_ptr<Contestant>> open_expert(const std::string& only, std::vector<std::string>& considered, double& seconds);
  Result<std::unique_ptr<Contestant>> open_sealed(const std::string& id_prefix, std::vector<std::string>& considered, double& seconds);
  // A package as reference: built, checked, timed. sealed_image: hash of the image that was sealed, or empty.
  Result<std::unique_ptr<Contestant>> open_package(const KernelPackage&, const std::string& id, const std::string& description,
                                                   const std::string& sealed_image, std::vector<std::string>& considered, double& seconds);
  Status ensure_open();
  Result<Contestant*> rival(const KernelPackage&);
  Result<Verdict> duel(const KernelPackage&, const std::string& label, Contestant& other);
  void keep_as_rival(std::unique_ptr<Contestant>);
  Result<Checked> check_kernel(const KernelPackage&, const Signature&, bool fresh);
  Result<Stage*> timed_stage();
  // Correctness in the process that the contestant has, or gets; one that was killed is replaced, once, and that noted.
  Result<CorrectnessRun> check_alone(Contestant&, const std::vector<Workload>&, bool fresh, int calls, std::vector<std::string>& notes);
  JobPlan plan_job(std::size_t sides) const;
  int tuning_pairs(std::size_t sides, double side_seconds) const;
  RunnerResult<void> make_ready(Contestant&, Stage&, const CallSpec&) const;  // its process alive, the call prepared
  Result<Job> run_sides(Stage&, const JobPlan&, const std::vector<Side>&, const std::string& what);
  // The outside clock of a GPU, for the sides that the inside clock calls beaten (batch_audit.cc).
  Status audit(Job&, Stage&, const std::vector<Side>&, const std::string& what);
  Status add_image_metrics(Evidence&, const Image&) const;
  Status add_card_counters(Evidence&);  // of the reference
  // The verdict of a checked candidate, from a job whose side 0 it is.
  Result<Verdict> conclude(Checked&, const Job&, const std::optional<PerformanceCondition>&, const NoiseFloor&);
  std::map<std::string, std::string> conditions(const Job&) const;
  NoiseFloor floor_of(const std::vector<double>& a_s, const std::vector<double>& b_s, int pairs_planned) const;

  GateParts m_parts;
  Task m_task;
  Machine m_machine;
  GateOptions m_options;
  Random m_random;                                    // order of calls; seeded by the OS
  std::unique_ptr<Stage> m_stage;                     // the timed workload
  std::unique_ptr<Batch> m_batch;                     // likewise, for the outside clock of a GPU
  std::unique_ptr<Contestant> m_reference, m_expert;  // m_expert only when the reference is none
  bool m_opened = false;
  ReferenceInfo m_info;
  std::optional<NoiseFloor> m_floor;
  double m_side_seconds = 0;                                                // one call with its refresh and check, from the floor's job
  std::map<std::string, Image> m_images;                                    // by package hash
  std::list<std::pair<std::string, std::unique_ptr<Contestant>>> m_rivals;  // most recent first, by package hash
  std::map<std::string, Comparison> m_before;                               // package hash -> its accepted comparison with the reference
};

// The pairs of a job: those that tell options.wanted_effect, and those that a wanted floor takes (0: none), as far as the time allows.
// round_seconds: of one pair with its refresh and checks; 0: not known yet.
int plan_pairs(const NoiseFloor&, const GateOptions&, double wanted_floor, double round_seconds);
inline constexpr int kMostFloorPairs = 240;  // a sigma that wants more has another cause than chance

// floor_from of two processes, and no less than what processes of one kernel may differ by (GateParts::process_seconds).
NoiseFloor floor_between(const std::vector<double>& a_s, const std::vector<double>& b_s, int pairs_planned, double process_seconds);

// Evidence: named metrics from a mix, a time and the machine (analysis.cc).
void add_mix_metrics(Evidence&, const InstructionMix&);
void add_cost_metrics(Evidence&, const OperatorFolder&, const Machine&, double seconds);
bool process_died(Reason);  // the runner's process is gone
AxisValues timed_axes(const OperatorFolder&);
inline constexpr int kBases = 2;                        // base pairs of the timed stage
Result<std::string> find_runner_program(const Paths&);  // forge-runner, beside the program or where an installation has it (parts.cc)

}  // namespace forge
