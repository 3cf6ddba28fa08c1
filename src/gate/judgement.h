// SPDX-License-Identifier: Apache-2.0
// From findings to a check's result, in words; the same for every judge, wherever the elements were compared.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "gate/compare.h"
#include "gate/judge.h"

namespace forge {

// Where an `indexes` rule looks: positions among the inputs and among the outputs.
struct IndexTensors {
  std::size_t of = 0, values = 0;
};
IndexTensors index_tensors(const Definition&, const JudgeRule&);

// "C[3, 17]: 1.25, expected 1.31 +- 2e-6"
std::string describe_element(const TensorSpec&, const AxisValues&, const JudgeRule&, std::int64_t index, double got, double expected,
                             float bound);
// "indices[3, 17]: 5 does not name an element of x that equals 1.31, or names it a second time"
std::string describe_index(const TensorSpec&, const AxisValues&, const JudgeRule&, std::int64_t index, double got, double value);

// `describe` says what is at an element of an output.
using Describe = std::function<std::string(std::size_t output, std::int64_t index)>;
CheckResult sum_up(const Definition&, const AxisValues&, const std::string& label, const std::vector<Findings>&, const Describe&);
// Workspaces within the task's limit, none `prepared`.
Status check_workspaces(const TaskFile&, const ConcretePlan&);
std::string stale_text(std::size_t calls_ago, const std::string& label);

}  // namespace forge
