// SPDX-License-Identifier: Apache-2.0
#include "gate/cuda_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "forge/oracle_cuda.h"
#include "gate/compare.h"
#include "gate/numeric.h"

namespace forge {
namespace {

constexpr double k_cpu_seconds = 0.02;           // beyond this the card's oracle is used,
constexpr double k_held_seconds = 2;             // and up to this it is held against the CPU's first
constexpr double k_cpu_flops = 1e9;              // of one core in a plain fp64 oracle, value and scale together
constexpr std::size_t k_range_bytes = 1u << 28;  // of doubles at once

void* on_card(DevicePointer pointer) { return reinterpret_cast<void*>(pointer); }

double flops_of(const JudgeContext& context, const AxisValues& axes) {
  const auto flops = evaluate(context.op.task.flops, axes);
  return flops ? double(*flops) : 0;
}

Result<DeviceBase> upload(const JudgeDevice& device, const BasePair& from) {
  DeviceBase base;
  for (const Block& input : from.inputs) {
    FORGE_TRY_ASSIGN(DeviceMemory memory,
                     input.bytes() ? device.upload(input.data(), input.bytes()) : Result<DeviceMemory>(DeviceMemory{}));
    base.inputs.push_back(std::move(memory));
  }
  for (const BaseOutput& output : from.outputs) {
    DeviceBase::Output made;
    FORGE_TRY_ASSIGN(made.expected, device.upload(output.expected.data(), output.expected.bytes()));
    if (output.bound.bytes() > 0) {
      FORGE_TRY_ASSIGN(made.bound, device.upload(output.bound.data(), output.bound.bytes()));
    }
    base.outputs.push_back(std::move(made));
  }
  base.scalars = from.scalars;
  return base;
}

}  // namespace

Result<CudaOracle> CudaOracle::load(const OperatorFolder& op, const TargetSpec& target) {
  const fs::path file = op.oracle.parent_path() / fmt::format("oracle.{}.cubin", target.name.substr(target.name.find(':') + 1));
  std::error_code ec;
  if (!fs::exists(file, ec)) return fail(Code::not_found, fmt::format("operator '{}' has no oracle for the card", op.definition.name));
  FORGE_TRY_ASSIGN(const std::string code, read_file(file));
  FORGE_TRY_ASSIGN(CudaModule module, CudaModule::load(code));
  for (const TensorSpec& output : op.definition.outputs)
    if (!module.function("forge_oracle_v1_" + output.name)) {
      Error error{.code = Code::bad_input, .message = fmt::format("the card's oracle has no entry forge_oracle_v1_{}", output.name)};
      error.file = file.string();
      error.fix = "see include/forge/oracle_cuda.h, and build the project again";
      return fail(error);
    }
  if (op.definition.inputs.size() > FORGE_ORACLE_CUDA_INPUTS || op.definition.axes.size() > FORGE_ORACLE_CUDA_AXES)
    return fail(Code::unsupported, fmt::format("operator '{}' has too many inputs or axes for an oracle on the card", op.definition.name));
  return CudaOracle(std::move(module));
}

Status CudaOracle::expected(JudgeContext& context, const JudgeDevice& device, const AxisValues& axes, DeviceBase& base) const {
  const Definition& definition = context.op.definition;
  forge_oracle_cuda_call call{};
  for (std::size_t a = 0; a < definition.axes.size(); ++a) call.axes[a] = axes.at(definition.axes[a].name);
  std::vector<DeviceMemory> scalars;
  for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
    if (definition.inputs[i].scalar) {
      std::int64_t room = 0;
      encode(definition.inputs[i].dtype, base.scalars[scalars.size()], &room);
      FORGE_TRY_ASSIGN(DeviceMemory value, device.upload(&room, sizeof room));
      scalars.push_back(std::move(value));
      call.inputs[i] = on_card(scalars.back().data());
    } else {
      call.inputs[i] = on_card(base.inputs[i].data());
    }
  }
  const std::uint64_t none = 0;
  FORGE_TRY_ASSIGN(const DeviceMemory unusable, device.upload(&none, sizeof none));
  base.outputs.clear();
  for (const TensorSpec& spec : definition.outputs) {
    const JudgeRule& rule = rule_of(context.op.task, spec.name);
    const bool scaled = rule.kind == JudgeKind::scaled;
    const std::int64_t count = element_count(spec, axes), rows = spec.shape.empty() ? 1 : axes.at(spec.shape[0]), row = count / rows;
    const std::int64_t step = std::clamp<std::int64_t>(static_cast<std::int64_t>(k_range_bytes / 16) / row, 1, rows);
    DeviceBase::Output output;
    FORGE_TRY_ASSIGN(output.expected, DeviceMemory::make(static_cast<std::size_t>(count) * bytes_of(stored_type(rule, spec))));
    if (scaled) {
      FORGE_TRY_ASSIGN(output.bound, DeviceMemory::make(static_cast<std::size_t>(count) * 4));
    }
    const std::size_t room = static_cast<std::size_t>(step * row) * sizeof(double);
    FORGE_TRY_ASSIGN(const DeviceMemory expected, DeviceMemory::make(room));
    FORGE_TRY_ASSIGN(const DeviceMemory scale, DeviceMemory::make(scaled ? room : 0));
    for (std::int64_t begin = 0; begin < rows; begin += step) {
      call.begin = begin;
      call.end = std::min(rows, begin + step);
      call.expected = static_cast<double*>(on_card(expected.data()));
      call.scale = scaled ? static_cast<double*>(on_card(scale.data())) : nullptr;
      // All ones is a NaN: an element that the oracle forgets can never be matched by a finite answer.
      FORGE_TRY(device.context().fill(expected.data(), 0xff, room));
      if (scaled) FORGE_TRY(device.context().fill(scale.data(), 0xff, room));
      FORGE_TRY(m_module.launch("forge_oracle_v1_" + spec.name, device.most_blocks(), FORGE_ORACLE_CUDA_THREADS, 0, &call));
      const judge::Store store{.rule = element_rule(rule, spec.dtype),
                               .expected = call.expected,
                               .scale = call.scale,
                               .first = begin * row,
                               .count = (call.end - begin) * row,
                               .stored = on_card(output.expected.data()),
                               .bound = scaled ? static_cast<float*>(on_card(output.bound.data())) : nullptr,
                               .unusable = static_cast<std::uint64_t*>(on_card(unusable.data()))};
      FORGE_TRY(device.launch("judge_store", store, store.count));
    }
    FORGE_TRY(device.context().synchronize());
    std::uint64_t bad = 0;
    FORGE_TRY(device.context().copy_to_host(&bad, unusable.data(), sizeof bad));
    if (bad)
      return fail(Code::bad_input,
                  fmt::format("the judge of output '{}' allows an error that is not a finite number at element {}", spec.name, bad - 1),
                  "the oracle must write scale for every element; keep tolerance, generator scale and offset smaller");
    base.outputs.push_back(std::move(output));
  }
  return {};
}

DeviceBaseMaker::DeviceBaseMaker(std::shared_ptr<JudgeContext> context, std::shared_ptr<JudgeDevice> device, TargetSpec target)
    : m_context(std::move(context)), m_device(std::move(device)), m_target(std::move(target)) {}

double DeviceBaseMaker::cpu_seconds(const AxisValues& axes) const {
  return flops_of(*m_context, axes) / (k_cpu_flops * std::max(1, m_context->team.size()));
}

bool DeviceBaseMaker::uses_card(const AxisValues& axes) const { return cpu_seconds(axes) > k_cpu_seconds; }

Status DeviceBaseMaker::ready_oracle() {
  if (m_looked) return {};
  auto oracle = CudaOracle::load(m_context->op, m_target);
  if (!oracle && oracle.error().code != Code::not_found) return tl::unexpected(oracle.error());
  m_looked = true;
  if (oracle) m_oracle.emplace(std::move(*oracle));
  return {};
}

Status DeviceBaseMaker::hold_against_cpu(const AxisValues& axes, const GeneratorRule& rule) {
  FORGE_TRY(ready_oracle());
  if (!m_oracle) return fail(Code::not_found, "there is no oracle for the card");
  const Definition& definition = m_context->op.definition;
  FORGE_TRY_ASSIGN(DrawnInputs drawn, draw_inputs(*m_context, axes, rule, os_entropy(), 0));
  FORGE_TRY_ASSIGN(const auto cpu, make_base(*m_context, axes, std::move(drawn)));
  FORGE_TRY_ASSIGN(DeviceBase card, upload(*m_device, *cpu));
  FORGE_TRY(m_oracle->expected(*m_context, *m_device, axes, card));
  for (std::size_t o = 0; o < definition.outputs.size(); ++o) {
    const TensorSpec& spec = definition.outputs[o];
    const JudgeRule& judge = rule_of(m_context->op.task, spec.name);
    const BaseOutput& here = cpu->outputs[o];
    std::vector<std::byte> there(here.expected.bytes());
    FORGE_TRY(m_device->context().copy_to_host(there.data(), card.outputs[o].expected.data(), there.size()));
    const auto differ = [&](std::int64_t index, double a, double b) {
      return fail(Code::internal,
                  fmt::format("the oracles of '{}' differ at element {} of {}: {:.9g} on the CPU, {:.9g} on the card", definition.name,
                              index, spec.name, a, b),
                  "correct oracle.cc or oracle.cu");
    };
    const std::int64_t count = element_count(spec, axes);
    if (stored_type(judge, spec) != DType::f32 || judge.kind == JudgeKind::exact) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::size_t at = static_cast<std::size_t>(i) * bytes_of(spec.dtype);
        if (std::memcmp(here.expected.data() + at, there.data() + at, bytes_of(spec.dtype)) != 0)
          return differ(i, decode(spec.dtype, here.expected.data() + at), decode(spec.dtype, there.data() + at));
      }
      continue;
    }
    std::vector<float> bounds(judge.kind == JudgeKind::scaled ? static_cast<std::size_t>(count) : 0);
    if (!bounds.empty()) FORGE_TRY(m_device->context().copy_to_host(bounds.data(), card.outputs[o].bound.data(), bounds.size() * 4));
    const auto *a = reinterpret_cast<const float*>(here.expected.data()), *b = reinterpret_cast<const float*>(there.data());
    const auto* bound = reinterpret_cast<const float*>(here.bound.data());
    for (std::int64_t i = 0; i < count; ++i) {
      // Sums in another order, rounded to float: an ulp or two, and far below what a kernel is allowed.
      const double most = 0x1p-22 * std::fabs(double(a[i])) + 1e-3 * allowed_error(judge, a[i], bound ? bound[i] : 0);
      const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
      if (!same && !(std::fabs(double(a[i]) - double(b[i])) <= most)) return differ(i, a[i], b[i]);
      if (!bounds.empty() && !(std::fabs(double(bound[i]) - double(bounds[std::size_t(i)])) <= 1e-5 * double(bound[i])))
        return differ(i, bound[i], bounds[std::size_t(i)]);
    }
  }
  return {};
}

Result<std::shared_ptr<DeviceBase>> DeviceBaseMaker::make(const AxisValues& axes, const GeneratorRule& rule, std::uint64_t seed,
                                                          int variant) {
  if (uses_card(axes)) {
    FORGE_TRY(ready_oracle());
    if (m_oracle && !m_held) {  // on the two cheapest shapes that the task names
      std::vector<AxisValues> shapes;
      for (const Workload& w : m_context->op.task.workloads) {
        FORGE_TRY_ASSIGN(AxisValues shape, complete_axes(m_context->op.definition, w.axes));
        if (cpu_seconds(shape) < k_held_seconds) shapes.push_back(std::move(shape));
      }
      std::sort(shapes.begin(), shapes.end(),
                [&](const auto& a, const auto& b) { return flops_of(*m_context, a) < flops_of(*m_context, b); });
      if (shapes.empty())
        return fail(Code::unsupported, "the task has no workload small enough to hold the card's oracle against the CPU's",
                    "add a small [[workload]] to task.toml");
      for (std::size_t i = 0; i < std::min<std::size_t>(2, shapes.size()); ++i) FORGE_TRY(hold_against_cpu(shapes[i], rule));
      m_held = true;
    }
  }
  FORGE_TRY_ASSIGN(DrawnInputs drawn, draw_inputs(*m_context, axes, rule, seed, variant));
  if (!m_oracle || !m_held || !uses_card(axes)) {
    FORGE_TRY_ASSIGN(const auto base, make_base(*m_context, axes, std::move(drawn)));
    FORGE_TRY_ASSIGN(DeviceBase made, upload(*m_device, *base));
    return std::make_shared<DeviceBase>(std::move(made));
  }
  BasePair inputs_only;
  inputs_only.inputs = std::move(drawn.inputs);
  inputs_only.scalars = std::move(drawn.scalars);
  FORGE_TRY_ASSIGN(DeviceBase made, upload(*m_device, inputs_only));
  FORGE_TRY(m_oracle->expected(*m_context, *m_device, axes, made));
  return std::make_shared<DeviceBase>(std::move(made));
}

}  // namespace forge
