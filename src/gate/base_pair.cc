// SPDX-License-Identifier: Apache-2.0
#include "gate/base_pair.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <new>

#include "gate/compare.h"
#include "gate/generators.h"
#include "gate/numeric.h"
#include "util/random.h"

namespace forge {

Block::Block(std::size_t bytes) : m_bytes(bytes) {
  if (bytes == 0) return;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, bytes, MADV_HUGEPAGE);  // a hint
  m_data = static_cast<std::byte*>(memory);
}
Block::Block(Block&& o) noexcept { *this = std::move(o); }
Block& Block::operator=(Block&& o) noexcept {
  std::swap(m_data, o.m_data);
  std::swap(m_bytes, o.m_bytes);
  return *this;
}
Block::~Block() {
  if (m_data) munmap(m_data, m_bytes);
}

std::vector<std::int64_t> shape_of(const TensorSpec& spec, const AxisValues& axes) {
  std::vector<std::int64_t> shape;
  for (const std::string& axis : spec.shape) shape.push_back(axes.at(axis));
  return shape;
}

const JudgeRule& rule_of(const TaskFile& task, const std::string& output) {
  for (const JudgeRule& rule : task.judges)
    if (rule.output == output) return rule;
  std::abort();  // Judge::make refuses such a task
}

DType stored_type(const JudgeRule& rule, const TensorSpec& output) {
  return rule.kind == JudgeKind::exact || rule.kind == JudgeKind::indexes ? output.dtype : DType::f32;
}

InputViews input_views(const Definition& definition, const AxisValues& axes, const std::vector<void*>& data,
                       const std::vector<double>& scalars) {
  InputViews result;
  std::size_t scalar = 0;
  for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
    const TensorSpec& spec = definition.inputs[i];
    TensorView view{.spec = spec, .shape = shape_of(spec, axes), .data = data[i]};
    if (spec.scalar) {
      result.scalar_room.push_back(std::make_unique<std::int64_t>(0));
      view.data = result.scalar_room.back().get();
      encode(spec.dtype, scalars[scalar++], view.data);
    }
    result.views.push_back(std::move(view));
  }
  return result;
}

std::vector<TensorView> output_views(const Definition& definition, const AxisValues& axes) {
  std::vector<TensorView> views;
  for (const TensorSpec& spec : definition.outputs) views.push_back({.spec = spec, .shape = shape_of(spec, axes), .data = nullptr});
  return views;
}

std::size_t base_bytes(const OperatorFolder& op, const AxisValues& axes) {
  std::size_t total = 0;
  for (const TensorSpec& spec : op.definition.inputs) total += spec.scalar ? 0 : static_cast<std::size_t>(byte_count(spec, axes));
  for (const TensorSpec& spec : op.definition.outputs) {
    const JudgeRule& rule = rule_of(op.task, spec.name);
    const auto count = static_cast<std::size_t>(element_count(spec, axes));
    total += count * bytes_of(stored_type(rule, spec)) + (rule.kind == JudgeKind::scaled ? count * 4 : 0);
  }
  return total;
}

namespace {

// Stores what the oracle says of one range of one output. Returns the first element whose bound is unusable, or -1.
std::int64_t store_range(const JudgeRule& rule, const TensorSpec& spec, const double* expected, const double* scale, std::int64_t first,
                         std::int64_t count, BaseOutput& to) {
  std::int64_t unusable = -1;
  if (rule.kind == JudgeKind::exact || rule.kind == JudgeKind::indexes) {
    for (std::int64_t i = 0; i < count; ++i)
      encode(spec.dtype, expected[i], to.expected.data() + static_cast<std::size_t>(first + i) * bytes_of(spec.dtype));
    return unusable;
  }
  const rules::Element element = element_rule(rule, spec.dtype);
  auto* value = reinterpret_cast<float*>(to.expected.data()) + first;
  for (std::int64_t i = 0; i < count; ++i) {
    value[i] = std::bit_cast<float>(static_cast<std::uint32_t>(rules::stored_bits(element, expected[i])));
    const double bound = rules::bound_of(element, value[i], rule.kind == JudgeKind::scaled ? scale[i] : 0);
    if (rule.kind == JudgeKind::scaled) reinterpret_cast<float*>(to.bound.data())[first + i] = static_cast<float>(bound);
    if (rules::unusable(value[i], bound)) unusable = first + i;
  }
  return unusable;
}

Status ask_oracle(JudgeContext& context, const AxisValues& axes, const std::vector<TensorView>& inputs, BasePair& base) {
  const Definition& definition = context.op.definition;
  std::vector<bool> wants_scale;
  for (const TensorSpec& spec : definition.outputs) {
    const JudgeRule& rule = rule_of(context.op.task, spec.name);
    const auto count = static_cast<std::size_t>(element_count(spec, axes));
    wants_scale.push_back(rule.kind == JudgeKind::scaled);
    BaseOutput output;
    output.expected = Block(count * bytes_of(stored_type(rule, spec)));
    if (wants_scale.back()) output.bound = Block(count * 4);
    base.outputs.push_back(std::move(output));
  }
  std::atomic<std::int64_t> unusable{-1};
  std::atomic<std::size_t> where{0};
  FORGE_TRY(context.oracle.expected(inputs, output_views(definition, axes), wants_scale, context.team, [&](const OracleRange& range) {
    for (std::size_t o = 0; o < definition.outputs.size(); ++o) {
      const TensorSpec& spec = definition.outputs[o];
      const std::int64_t bad = store_range(rule_of(context.op.task, spec.name), spec, range.expected[o], range.scale[o],
                                           range.first_element[o], range.count[o], base.outputs[o]);
      if (bad >= 0) {
        where = o;
        unusable = bad;
      }
    }
  }));
  if (unusable >= 0)
    return fail(Code::bad_input,
                fmt::format("the judge of output '{}' allows an error that is not a finite number at element {}",
                            definition.outputs[where].name, unusable.load()),
                "the oracle must write scale for every element; keep tolerance, generator scale and offset smaller");
  return {};
}

}  // namespace

Result<DrawnInputs> draw_inputs(JudgeContext& context, const AxisValues& axes, const GeneratorRule& rule, std::uint64_t seed, int variant) {
  DrawnInputs drawn;
  Random random(seed);
  std::vector<void*> data;
  for (const TensorSpec& spec : context.op.definition.inputs) {
    if (spec.scalar) {
      std::int64_t room = 0;
      encode(spec.dtype, draw_scalar(rule, spec.name, context.scalar_seed ^ std::hash<std::string>{}(rule.name + "/" + spec.name)), &room);
      drawn.scalars.push_back(decode(spec.dtype, &room));
      drawn.inputs.emplace_back();
    } else {
      drawn.inputs.emplace_back(static_cast<std::size_t>(byte_count(spec, axes)));
      const std::uint64_t tensor_seed = random.next();
      if (rule.kind != GeneratorKind::adversarial)
        fill_tensor(rule, spec.name, spec.dtype, tensor_seed, drawn.inputs.back().data(), element_count(spec, axes), context.team);
    }
    data.push_back(drawn.inputs.back().data());
  }
  if (rule.kind == GeneratorKind::adversarial) {
    const InputViews inputs = input_views(context.op.definition, axes, data, drawn.scalars);
    FORGE_TRY(context.oracle.adversarial(inputs.views, random.next(), variant));
    drawn.scalars.clear();  // it may have written them too
    for (const TensorView& view : inputs.views)
      if (view.spec.scalar) drawn.scalars.push_back(decode(view.spec.dtype, view.data));
  }
  return drawn;
}

Result<std::shared_ptr<BasePair>> make_base(JudgeContext& context, const AxisValues& axes, DrawnInputs drawn) {
  auto base = std::make_shared<BasePair>();
  std::vector<void*> data;
  for (const Block& input : drawn.inputs) data.push_back(input.data());
  base->inputs = std::move(drawn.inputs);
  base->scalars = std::move(drawn.scalars);
  const InputViews inputs = input_views(context.op.definition, axes, data, base->scalars);
  FORGE_TRY(ask_oracle(context, axes, inputs.views, *base));
  return base;
}

Result<std::shared_ptr<BasePair>> make_base(JudgeContext& context, const AxisValues& axes, const GeneratorRule& rule, std::uint64_t seed,
                                            int variant) {
  FORGE_TRY_ASSIGN(DrawnInputs drawn, draw_inputs(context, axes, rule, seed, variant));
  return make_base(context, axes, std::move(drawn));
}

}  // namespace forge
