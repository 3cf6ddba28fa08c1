// SPDX-License-Identifier: Apache-2.0
// The calls that runners make on a GPU stage's slots, their workspaces, and the two faces of the slots: Stage and Batch.
#include <fmt/format.h>

#include <algorithm>

#include "gate/cuda_stage.h"
#include "gate/numeric.h"

namespace forge {

std::vector<std::shared_ptr<CudaSlots::Spaces>> CudaSlots::live_spaces() const {
  std::vector<std::shared_ptr<Spaces>> live;
  for (const auto& [image, held] : m_spaces)
    if (auto spaces = held.lock()) live.push_back(std::move(spaces));
  return live;
}

Result<CudaSlots::Spaces> CudaSlots::make_spaces(const ConcretePlan& plan) const {
  FORGE_TRY(check_workspaces(m_context->op.task, plan));
  Spaces spaces;
  for (const ConcreteWorkspace& workspace : plan.workspaces) {
    const auto bytes = static_cast<std::size_t>(workspace.bytes);
    FORGE_TRY_ASSIGN(DeviceBuffer buffer, DeviceBuffer::make((bytes + 1023) / 1024 * 1024, workspace.name));
    FORGE_TRY(m_device->context().fill(buffer.data(), 0, buffer.bytes()));
    spaces.push_back({std::move(buffer), bytes, workspace.name, workspace.init});
  }
  return spaces;
}

Result<CallSpec> CudaSlots::call_for(const Image* image, int slot) {
  const Definition& definition = m_context->op.definition;
  const auto s = static_cast<std::size_t>(slot);
  CallSpec call;
  for (std::size_t i = 0; i < m_inputs.size(); ++i) {
    call.inputs.push_back(
        {.buffer = nullptr, .access = Access::read, .device = m_inputs[i] ? &*m_inputs[i] : nullptr, .offset = m_input_stride[i] * s});
    call.input_shapes.push_back(shape_of(definition.inputs[i], m_axes));
  }
  for (std::size_t o = 0; o < m_outputs.size(); ++o) {
    call.outputs.push_back({.buffer = nullptr, .access = Access::write, .device = &*m_outputs[o], .offset = m_output_stride[o] * s});
    call.output_shapes.push_back(shape_of(definition.outputs[o], m_axes));
  }
  call.input_specs = definition.inputs;
  call.output_specs = definition.outputs;
  for (const Axis& axis : definition.axes)
    if (!axis.constant) call.axes.emplace_back(axis.name, m_axes.at(axis.name));
  call.scalars = m_bases[0]->scalars;
  if (!image) return call;

  const Residency residency = [this, image](const LaunchSpec& launch, std::int64_t smem) {
    return m_device->resident(*image, launch, smem);
  };
  FORGE_TRY_ASSIGN(call.plan, make_concrete(image->plan, definition, m_axes, m_device->sm_count(), residency));
  call.layout = make_arg_layout(image->plan, definition);
  std::erase_if(m_spaces, [](const auto& held) { return held.second.expired(); });
  auto& held = m_spaces[image->sha256];
  auto spaces = held.lock();
  if (!spaces) {
    FORGE_TRY_ASSIGN(Spaces made, make_spaces(call.plan));
    spaces = std::make_shared<Spaces>(std::move(made));
    held = spaces;
    FORGE_TRY(m_device->context().synchronize());
  }
  for (const Space& space : *spaces)
    call.workspaces.push_back({.buffer = nullptr, .access = Access::write, .device = &space.buffer, .offset = 0});
  call.keep_alive = spaces;
  return call;
}

Result<Findings> CudaSlots::findings(std::size_t o, int slot) {
  std::vector<const Content*> contents;
  std::vector<const Maps*> maps;
  for (int s = 0; s <= slot; ++s) {
    contents.push_back(&*m_slots[static_cast<std::size_t>(s)].now);
    maps.push_back(&m_slots[static_cast<std::size_t>(s)].maps);
  }
  FORGE_TRY_ASSIGN(const auto found, compare(contents, maps));
  return found[static_cast<std::size_t>(slot)][o];
}

Result<Findings> CudaSlots::findings_on_host(std::size_t o, int slot) const {
  const Definition& definition = m_context->op.definition;
  const TensorSpec& spec = definition.outputs[o];
  const JudgeRule& rule = rule_of(m_context->op.task, spec.name);
  const Content& content = *m_slots[static_cast<std::size_t>(slot)].now;
  const Pattern& poison = m_slots[static_cast<std::size_t>(slot)].poison[o];
  const auto fetch = [&](DevicePointer from, std::size_t bytes) -> Result<std::vector<std::byte>> {
    std::vector<std::byte> to(bytes);
    FORGE_TRY(m_device->context().copy_to_host(to.data(), from, bytes));
    return to;
  };
  // A tensor of the base, moved by the host.
  const auto moved = [&](const TensorSpec& tensor, DType stored, DevicePointer base,
                         ElementMap::Sign sign) -> Result<std::vector<std::byte>> {
    const ElementMap map(tensor, m_axes, content.action);
    const std::size_t bytes = static_cast<std::size_t>(map.elements()) * bytes_of(stored);
    FORGE_TRY_ASSIGN(const auto from, fetch(base, bytes));
    std::vector<std::byte> to(bytes);
    map.copy(from.data(), stored, sign, 0, map.elements(), to.data());
    return to;
  };
  const std::int64_t count = element_count(spec, m_axes);
  FORGE_TRY_ASSIGN(const auto got, fetch(output_at(o, slot), static_cast<std::size_t>(byte_count(spec, m_axes))));
  Findings found;
  if (rule.kind == JudgeKind::indexes) {
    const IndexTensors at = index_tensors(definition, rule);
    const TensorSpec &of = definition.inputs[at.of], &values = definition.outputs[at.values];
    FORGE_TRY_ASSIGN(const auto of_now, moved(of, of.dtype, content.base->inputs[at.of].data(), ElementMap::Sign::apply));
    FORGE_TRY_ASSIGN(const auto values_now,
                     moved(values, values.dtype, content.base->outputs[at.values].expected.data(), ElementMap::Sign::apply));
    const std::int64_t k = m_axes.at(spec.shape.back()), n = m_axes.at(of.shape.back());
    std::vector<std::uint8_t> seen;
    for (std::int64_t row = 0; row < count / k; ++row)
      compare_index_row({.got = got.data() + static_cast<std::size_t>(row * k) * bytes_of(spec.dtype),
                         .values = values_now.data() + static_cast<std::size_t>(row * k) * bytes_of(values.dtype),
                         .of = of_now.data() + static_cast<std::size_t>(row * n) * bytes_of(of.dtype),
                         .type = spec.dtype,
                         .of_type = of.dtype,
                         .first = row * k,
                         .k = k,
                         .n = n},
                        poison, seen, found);
    return found;
  }
  const DType stored = stored_type(rule, spec);
  const DeviceBase::Output& base = content.base->outputs[o];
  FORGE_TRY_ASSIGN(const auto expected, moved(spec, stored, base.expected.data(), ElementMap::Sign::apply));
  std::vector<std::byte> bound;
  if (rule.kind == JudgeKind::scaled) {
    FORGE_TRY_ASSIGN(bound, moved(spec, DType::f32, base.bound.data(), ElementMap::Sign::ignore));
  }
  for (std::int64_t at = 0; at < count; at += k_piece)
    compare_piece(rule, spec.dtype,
                  {.got = got.data() + static_cast<std::size_t>(at) * bytes_of(spec.dtype),
                   .expected = expected.data() + static_cast<std::size_t>(at) * bytes_of(stored),
                   .bound = bound.empty() ? nullptr : reinterpret_cast<const float*>(bound.data()) + at,
                   .first = at,
                   .count = std::min(k_piece, count - at)},
                  poison, found);
  return found;
}

namespace {

class CudaStage : public Stage {
 public:
  explicit CudaStage(std::unique_ptr<CudaSlots> slots) : m_slots(std::move(slots)) {}
  const std::string& label() const override { return m_slots->label(); }
  const AxisValues& axes() const override { return m_slots->axes(); }
  Status refresh() override { return m_slots->refresh(1); }
  CheckResult check() override { return m_slots->check(1); }
  Result<CallSpec> call_for(const Image& image, int) override { return m_slots->call_for(&image, 0); }
  CallSpec call_for_expert() override { return *m_slots->call_for(nullptr, 0); }  // fails only with an image

 private:
  std::unique_ptr<CudaSlots> m_slots;
};

class CudaBatch : public Batch {
 public:
  explicit CudaBatch(std::unique_ptr<CudaSlots> slots) : m_slots(std::move(slots)) {}
  int slots() const override { return m_slots->slots(); }
  // All slots, those too that no call will be asked for: a call that looks around must not see how many there will be.
  Status refresh(int) override { return m_slots->refresh(slots()); }
  CheckResult check(int calls) override { return m_slots->check(calls); }
  Result<std::vector<CallSpec>> calls_for(const Image* image, int) override {
    std::vector<CallSpec> calls;
    for (int s = 0; s < slots(); ++s) {
      FORGE_TRY_ASSIGN(CallSpec call, m_slots->call_for(image, s));
      calls.push_back(std::move(call));
    }
    return calls;
  }

 private:
  std::unique_ptr<CudaSlots> m_slots;
};

}  // namespace

std::unique_ptr<Stage> as_stage(std::unique_ptr<CudaSlots> slots) { return std::make_unique<CudaStage>(std::move(slots)); }
std::unique_ptr<Batch> as_batch(std::unique_ptr<CudaSlots> slots) { return std::make_unique<CudaBatch>(std::move(slots)); }

}  // namespace forge
