// SPDX-License-Identifier: Apache-2.0
// The judge's stage: operand buffers of one workload, what is in them now, and what should come out. judge.h has the contract.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gate/base_pair.h"
#include "gate/compare.h"
#include "gate/judge.h"
#include "gate/transform.h"

namespace forge {

class OperandStage : public Stage {
 public:
  using BaseMaker = std::function<Result<std::shared_ptr<BasePair>>()>;
  // `make_another` is called for every refresh when the symmetries are too few to give fresh content from `bases`.
  static Result<std::unique_ptr<OperandStage>> make(std::shared_ptr<JudgeContext>, const AxisValues&, std::string label,
                                                    std::vector<std::shared_ptr<BasePair>> bases, BaseMaker make_another);

  const std::string& label() const override { return m_label; }
  const AxisValues& axes() const override { return m_axes; }
  Status refresh() override;
  CheckResult check() override;
  Result<CallSpec> call_for(const Image&, int workers) override;
  CallSpec call_for_expert() override;

  // For the admission battery, which plays a kernel inside the judge.
  std::span<std::byte> input(std::size_t i) const;  // empty for a scalar
  std::span<std::byte> output(std::size_t o) const;
  std::vector<double> expected_now(std::size_t o) const;  // of the current content
  std::vector<double> allowed_now(std::size_t o) const;   // the error that the judge allows there
  JudgeContext& context() const { return *m_context; }
  const std::vector<double>& scalars() const { return m_bases[0]->scalars; }

 private:
  struct Content {
    std::shared_ptr<BasePair> base;
    Action action;
  };
  struct Space {
    SharedBuffer buffer;
    std::size_t bytes;
    std::string name;
    WorkspaceInit init;
    Pattern poison;
  };
  struct Operand {
    std::optional<SharedBuffer> buffer;
    Pattern poison{};
  };

  OperandStage() = default;
  std::vector<ElementMap> maps(const std::vector<TensorSpec>&, const Action&) const;
  Result<std::shared_ptr<BasePair>> next_base();
  void fill_operands();
  void set_canaries();
  std::string broken_canary() const;  // these three: what is wrong, or empty
  std::string changed_input() const;
  std::string dirty_workspace() const;
  std::vector<Findings> compare_with(const Content&, bool stop_at_first_bad) const;
  Findings compare_indexes(const Content&, std::size_t o) const;
  std::string describe(std::size_t o, std::int64_t index) const;
  Result<std::vector<Space>> make_spaces(const ConcretePlan&);
  CallSpec call_on_operands() const;
  std::vector<std::shared_ptr<std::vector<Space>>> live_spaces() const;
  template <class Visit>
  void each_buffer(Visit) const;

  std::shared_ptr<JudgeContext> m_context;
  AxisValues m_axes;
  std::string m_label;
  std::vector<std::shared_ptr<BasePair>> m_bases;
  BaseMaker m_make_another;
  bool m_repeats = false;  // the symmetries cannot be trusted to give fresh content
  Random m_random{0};
  std::vector<Operand> m_inputs, m_outputs;
  // By image and worker count. Held by the calls made for them (CallSpec::keep_alive): a stage outlives many candidates, and
  // poisoning the workspaces of those that are gone would slow every call.
  std::map<std::string, std::weak_ptr<std::vector<Space>>> m_spaces;
  std::optional<Content> m_now;
  std::deque<Content> m_past;  // newest first
  std::uint64_t m_canary_seed = 0;
};

}  // namespace forge
