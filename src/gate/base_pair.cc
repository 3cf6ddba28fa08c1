// SPDX-License-Identifier: Apache-2.0
#include "gate/base_pair.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <new>

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

DType stored_type(const JudgeRule& rule, const TensorSpec& output) { return rule.kind == JudgeKind::exact ? output.dtype : DType::f32; }

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
  if (rule.kind == JudgeKind::exact) {
    for (std::int64_t i = 0; i < count; ++i)
      encode(spec.dtype, expected[i], to.expected.data() + static_cast<std::size_t>(first + i) * bytes_of(spec.dtype));
    return unusable;
  }
  auto* value = reinterpret_cast<float*>(to.expected.data()) + first;
  for (std::int64_t i = 0; i < count; ++i) {
    value[i] = static_cast<float>(expected[i]);
    if (spec.dtype != DType::f32) {  // a value beyond the output's range is infinite there
      std::int64_t room = 0;
      encode(spec.dtype, expected[i], &room);
      if (std::isinf(decode(spec.dtype, &room))) value[i] = static_cast<float>(decode(spec.dtype, &room));
    }
    double bound;
    if (rule.kind == JudgeKind::scaled) {
      bound = rule.absolute + rule.relative * std::fabs(static_cast<double>(value[i])) + rule.tolerance * scale[i];
      reinterpret_cast<float*>(to.bound.data())[first + i] = static_cast<float>(bound);
    } else {
      bound = rule.absolute + rule.tolerance * std::fabs(static_cast<double>(value[i]));
    }
    // An infinite or NaN bound on a finite value would accept anything, or nothing.
    if (std::isfinite(value[i]) && !(static_cast<float>(bound) >= 0 && std::isfinite(static_cast<float>(bound)))) unusable = first + i;
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

Result<std::shared_ptr<BasePair>> make_base(JudgeContext& context, const AxisValues& axes, const GeneratorRule& rule, std::uint64_t seed,
                                            int variant) {
  const Definition& definition = context.op.definition;
  auto base = std::make_shared<BasePair>();
  Random random(seed);
  std::vector<void*> data;
  for (const TensorSpec& spec : definition.inputs) {
    if (spec.scalar) {
      std::int64_t room = 0;
      encode(spec.dtype, draw_scalar(rule, spec.name, context.scalar_seed ^ std::hash<std::string>{}(rule.name + "/" + spec.name)), &room);
      base->scalars.push_back(decode(spec.dtype, &room));
      base->inputs.emplace_back();
    } else {
      base->inputs.emplace_back(static_cast<std::size_t>(byte_count(spec, axes)));
      const std::uint64_t tensor_seed = random.next();
      if (rule.kind != GeneratorKind::adversarial)
        fill_tensor(rule, spec.name, spec.dtype, tensor_seed, base->inputs.back().data(), element_count(spec, axes), context.team);
    }
    data.push_back(base->inputs.back().data());
  }
  const InputViews inputs = input_views(definition, axes, data, base->scalars);
  if (rule.kind == GeneratorKind::adversarial) FORGE_TRY(context.oracle.adversarial(inputs.views, random.next(), variant));
  FORGE_TRY(ask_oracle(context, axes, inputs.views, *base));
  return base;
}

}  // namespace forge
