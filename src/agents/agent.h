// SPDX-License-Identifier: Apache-2.0
// The two agents and what they may touch. An architecture agent decides and never writes kernel code; a coding agent builds one
// milestone through the workbench and never changes a decision. Both may be built-in, an LLM, a command or a person.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/evidence.h"
#include "core/plan.h"
#include "core/record.h"
#include "core/target.h"
#include "knowledge/knowledge.h"

namespace forge {

// One hand-in as the trajectory remembers it.
struct HandIn {
  std::string milestone, package_sha;
  Reason reason = Reason::accepted;
  std::string detail;
  double seconds = 0, speedup = 0;                             // 0 when not measured; speedup against the reference
  std::vector<std::pair<std::string, std::string>> decisions;  // name, value, local ones included, when the coder says
};

enum class MilestoneEnd { accepted, gave_up, budget, attempts, plateau, user };
const char* name(MilestoneEnd);
struct MilestoneOutcome {
  std::string id;
  MilestoneEnd end = MilestoneEnd::gave_up;
  std::string why;
};

struct BranchOutcome {
  int revision = 0;
  Stop stop = Stop::exhausted;
  std::vector<MilestoneOutcome> milestones;
  std::vector<HandIn> hand_ins;
  double best_speedup = 0;  // of the branch, against the reference; 0: nothing correct
  bool reverted = false;    // ended no better than the global best plus the floor
};

// The architecture agent's lab: diagnostics on the target, journalled like everything else. What it measures is unchecked and can
// steer a plan, never reach a verdict.
class Lab {
 public:
  virtual ~Lab() = default;
  virtual Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>&) = 0;  // paired with the first one
  virtual bool may_go_on() const = 0;                                                   // budget, user
};

struct PlanRequest {
  Task task;
  Definition definition;
  TaskFile task_file;  // without hidden shapes
  Machine machine;
  ReferenceInfo reference;
  Evidence evidence;
  NoiseFloor floor;
  std::vector<Retrieved> knowledge;
  // Of a later generation: the decisions that the reference records (its makers' own, from an earlier run), and what failed then.
  std::vector<std::pair<std::string, std::string>> earlier_decisions;
  std::vector<FailureCondition> avoided;
  Lab* lab = nullptr;  // null: none granted
};
struct ReviseRequest {
  PlanRequest first;
  std::vector<Plan> plans;                // all so far, oldest first
  std::vector<BranchOutcome> branches;    // one per plan
  std::optional<Evidence> best_evidence;  // of the global best
  double global_best_speedup = 0;
  int best_branch = -1;  // index into plans of the branch that holds the global best; -1: nothing accepted
  std::vector<std::pair<std::string, std::string>> best_decisions;  // of the global best, as its coder recorded them
  std::vector<FailureCondition> failures;                           // of all reverted and blocked branches
};

class ArchitectureAgent {
 public:
  virtual ~ArchitectureAgent() = default;
  virtual std::string identity() const = 0;
  virtual Result<Plan> plan(const PlanRequest&) = 0;
  virtual Result<std::optional<Plan>> revise(const ReviseRequest&) = 0;  // none: nothing left to decide
};

// What a milestone has left to spend.
struct BudgetLeft {
  int hand_ins = 0;  // of this milestone, or of the run if that is less
  double gate_seconds = 0, wall_seconds = 0;
};

// The one door of a coding agent. Every call is journalled; `submit` counts against the budget.
class Workbench {
 public:
  virtual ~Workbench() = default;
  virtual const Plan& plan() const = 0;
  virtual const Milestone& milestone() const = 0;
  virtual const Definition& definition() const = 0;
  virtual const Machine& machine() const = 0;
  virtual const TaskFile& task_file() const = 0;  // without hidden shapes
  virtual double noise_floor() const = 0;         // as a ratio
  virtual std::optional<KernelPackage> branch_best() const = 0;
  // What the package that this milestone builds on chose, local decisions included; empty at the start of a branch.
  virtual std::vector<std::pair<std::string, std::string>> branch_decisions() const = 0;
  virtual std::optional<KernelPackage> shown_reference() const { return std::nullopt; }  // an ablation's; else it is sealed
  virtual std::uint64_t seed() const = 0;                                                // differs per milestone, from the task's seed
  // decisions: what this package chose, local ones included; for the record
  virtual Result<Verdict> submit(const KernelPackage&, const std::vector<std::pair<std::string, std::string>>& decisions) = 0;
  virtual Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>&) = 0;
  // Correctness and mechanism alone: costs gate time, is no hand-in, and accepts nothing.
  virtual Result<Verdict> check(const KernelPackage&) { return fail(Code::unsupported, "this workbench has no separate check"); }
  virtual Result<Evidence> examine(const KernelPackage&) = 0;
  virtual EntryList search(const std::string& words) const = 0;
  virtual bool may_go_on() const = 0;  // budget, attempts, plateau, user
  virtual BudgetLeft left() const { return {}; }
  virtual void give_up(const std::string& why) = 0;
};

class CodingAgent {
 public:
  virtual ~CodingAgent() = default;
  virtual std::string identity() const = 0;
  virtual Status work(Workbench&) = 0;             // returns when accepted, given up, or may_go_on() is false
  virtual bool finished() const { return false; }  // it wants the run to end with the best that it has
  // One-decision ablations of a kernel with these decisions, strongest suspicion first; effects are left to the caller.
  // An agent that cannot take its kernel apart has none.
  virtual Result<std::vector<Ablation>> ablations(const PlanRequest&, const std::vector<std::pair<std::string, std::string>>&) {
    return std::vector<Ablation>();
  }
};

}  // namespace forge
