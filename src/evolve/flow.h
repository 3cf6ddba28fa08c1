// SPDX-License-Identifier: Apache-2.0
// The state of one run between its journal steps, and the passes of run() as functions over it. Everything here is a
// deterministic function of the task and of what the desk hands back.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "evolve/desk.h"

namespace forge {

// A hand-in that the gate accepted.
struct Candidate {
  KernelPackage package;
  std::string sha;
  Decisions decisions;  // local ones included
  Verdict verdict = Verdict::rejected(Reason::runner_broke, "");
  double score = 0;                   // speedup against the reference; without one, against the run's first accepted candidate
  std::vector<Signature> mechanisms;  // of every milestone that it was accepted through
  std::vector<std::string> cites;     // likewise
  double at_seconds = 0;              // of wall time
};

// What is built under one plan revision.
struct Branch {
  Plan plan;
  BranchOutcome outcome;
  int kept = 0;                     // milestones taken over from an earlier branch
  int parent = -1;                  // that branch
  std::vector<Candidate> accepted;  // one per accepted milestone, kept ones included
  std::optional<Candidate> best;    // fastest of them
  bool base_is_best() const { return best && !accepted.empty() && best->sha == accepted.back().sha; }
};

struct Flow;
class FlowLab final : public Lab {  // the architect's, over the same desk and budget
 public:
  explicit FlowLab(Flow& flow) : m_flow(flow) {}
  Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>&) override;
  bool may_go_on() const override;

 private:
  Flow& m_flow;
};

struct Flow {
  Flow(const Task& t, const RunParts& p) : task(t), parts(p), desk(p) {
    public_task_file = p.op->task;
    public_task_file.hidden.clear();
  }
  Flow(const Flow&) = delete;

  const Task& task;
  const RunParts& parts;
  Desk desk;
  FlowLab lab{*this};
  TaskFile public_task_file;  // what agents may see
  PlanRequest request;        // of the first plan; revisions quote it
  RunResult result;
  std::vector<Branch> branches;
  std::optional<Candidate> best;  // of all branches that were not reverted
  int best_branch = -1;
  bool architect_failed = false;  // it answered, and not with a plan
  double first_seconds = 0;       // of the first accepted candidate, for runs without a reference
};

// flow passes, in the order of run()
Status survey(Flow&);                           // reference, floor, evidence, knowledge: fills request
Result<std::optional<Plan>> first_plan(Flow&);  // none: the architect failed
Status implement(Flow&, const Plan&);           // appends a branch (implement.cc)
std::optional<Stop> stop_reason(const Flow&);
Result<std::optional<Plan>> revise(Flow&);
Status finish(Flow&);  // confirm, harvest, seal, promote, ledger (finish.cc)

// budget.cc
bool goal_met(const Flow&);
bool budget_spent(const Flow&, double reserve = 0);  // also of so many hand-ins more
Spent spent(const Flow&);

// What a task grants its agents: goal mode has no memory, and an ablation hides the disassembly.
inline bool remembers(const Task& task) { return task.knowledge && task.plan; }
Evidence shown(const Task&, Evidence);

// For people: "M1 store=nontemporal: 1.21x [1.20, 1.22] accepted".
std::string describe(const Milestone&, const Verdict&, const Decisions& changed);

}  // namespace forge
