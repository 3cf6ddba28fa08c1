// SPDX-License-Identifier: Apache-2.0
// The workbench of one milestone over the gate and the journal. It keeps the trajectory and decides when it ends:
// accepted, given up, budget, too many hand-ins, or a plateau.
#pragma once
#include "evolve/flow.h"

namespace forge {

inline constexpr int kMaxHandIns = 10;     // per milestone
inline constexpr int kPlateauHandIns = 5;  // correct ones without a gain above the floor

class Bench final : public Workbench {
 public:
  Bench(Flow&, const Milestone&);  // of the flow's last branch

  const Plan& plan() const override { return m_branch.plan; }
  const Milestone& milestone() const override { return m_milestone; }
  const Definition& definition() const override { return m_flow.request.definition; }
  const Machine& machine() const override { return m_flow.request.machine; }
  const TaskFile& task_file() const override { return m_flow.public_task_file; }
  double noise_floor() const override { return m_flow.request.floor.ratio; }
  std::optional<KernelPackage> branch_best() const override;
  Decisions branch_decisions() const override;
  std::optional<KernelPackage> shown_reference() const override { return m_flow.parts.shown_reference; }
  std::uint64_t seed() const override;
  Result<Verdict> submit(const KernelPackage&, const Decisions&) override;
  Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>&) override;
  Result<Verdict> check(const KernelPackage&) override;
  Result<Evidence> examine(const KernelPackage&) override;
  EntryList search(const std::string& words) const override;
  bool may_go_on() const override;
  BudgetLeft left() const override;
  void give_up(const std::string& why) override;

  // After the coder returned: how the trajectory ended. `returned` is what it said.
  Result<MilestoneOutcome> outcome(const Status& returned) const;

 private:
  std::optional<Verdict> known(const KernelPackage&) const;
  Verdict told(Verdict) const;
  void take(const KernelPackage&, const Decisions&, const Verdict&);
  template <class T>
  Result<T> kept(Result<T>);  // remembers an error of the outside world

  Flow& m_flow;
  Branch& m_branch;
  const Milestone& m_milestone;
  int m_hand_ins = 0, m_without_gain = 0;
  double m_best_score = 0;  // of the correct hand-ins here, and of the branch before
  bool m_accepted = false, m_gave_up = false;
  std::string m_why;              // of giving up, or the last refusal
  std::optional<Error> m_broken;  // the run cannot go on (interrupted, disk full, ...)
};

}  // namespace forge
