// SPDX-License-Identifier: Apache-2.0
// Base pairs: inputs as a generator drew them, with the oracle's answer and the error that the task's judge allows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/operator.h"
#include "gate/catalog.h"
#include "gate/oracle_plugin.h"
#include "gate/thread_team.h"

namespace forge {

// Anonymous memory, page-aligned, in huge pages where the system has them.
class Block {
 public:
  Block() = default;
  explicit Block(std::size_t bytes);
  Block(Block&& o) noexcept;
  Block& operator=(Block&& o) noexcept;
  ~Block();
  std::byte* data() const { return m_data; }
  std::size_t bytes() const { return m_bytes; }

 private:
  std::byte* m_data = nullptr;
  std::size_t m_bytes = 0;
};

// What all stages of one judge share.
struct JudgeContext {
  OperatorFolder op;
  OraclePlugin oracle;
  ThreadTeam team;
  std::uint64_t scalar_seed;  // scalar inputs keep one value per generator: they are part of the call, not of the buffers
};

// Expected values are kept as float, infinite where the output's type overflows; for an `exact` or `indexes` judge as the output's own
// bits. Rounding the fp64 answer to float is off by at most 2^-24 (6e-8) of it, so a tolerance t on the value acts as t +- 6e-8: 0.3 % of
// the tightest one in use (2.1e-5). A rule as tight as float itself should be `exact`.
struct BaseOutput {
  Block expected;
  Block bound;  // `scaled` only: what the rule allows per element
};

struct BasePair {
  std::vector<Block> inputs;  // definition order; empty for scalars
  std::vector<BaseOutput> outputs;
  std::vector<double> scalars;  // scalar inputs, definition order, as the type holds them
};

struct DrawnInputs {
  std::vector<Block> inputs;
  std::vector<double> scalars;
};
// `variant` counts for an adversarial generator only.
Result<DrawnInputs> draw_inputs(JudgeContext&, const AxisValues&, const GeneratorRule&, std::uint64_t seed, int variant);
Result<std::shared_ptr<BasePair>> make_base(JudgeContext&, const AxisValues&, DrawnInputs);
Result<std::shared_ptr<BasePair>> make_base(JudgeContext&, const AxisValues&, const GeneratorRule&, std::uint64_t seed, int variant);
std::size_t base_bytes(const OperatorFolder&, const AxisValues&);
std::vector<std::int64_t> shape_of(const TensorSpec&, const AxisValues&);
const JudgeRule& rule_of(const TaskFile&, const std::string& output);  // exactly one exists: the judge checked
// The value that the judge expects of an output element, as stored in a base.
DType stored_type(const JudgeRule&, const TensorSpec&);

// Inputs (scalars included) as the plugin sees them. `scalar_room` keeps the encoded scalars alive.
struct InputViews {
  std::vector<TensorView> views;
  std::vector<std::unique_ptr<std::int64_t>> scalar_room;
};
InputViews input_views(const Definition&, const AxisValues&, const std::vector<void*>& data, const std::vector<double>& scalars);
std::vector<TensorView> output_views(const Definition&, const AxisValues&);

}  // namespace forge
