// SPDX-License-Identifier: Apache-2.0
// The calls that runners make on a GPU stage's slots, their workspaces, and the two faces of the slots: Stage and Batch.
#include <fmt/format.h>

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
    call.inputs.push_back({.buffer = nullptr,
                           .access = Access::read,
                           .device = m_inputs[i] ? &*m_inputs[i] : nullptr,
                           .offset = m_input_stride[i] * s});
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

  const Residency residency = [this, image](const LaunchSpec& launch, std::int64_t smem) { return m_device->resident(*image, launch, smem); };
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

Result<std::vector<std::byte>> CudaSlots::expected_now(std::size_t o, int slot) const {
  const TensorSpec& spec = m_context->op.definition.outputs[o];
  const JudgeRule& rule = rule_of(m_context->op.task, spec.name);
  const DType stored = stored_type(rule, spec);
  const Content& content = *m_slots[static_cast<std::size_t>(slot)].now;
  const rules::MoveMap map = ElementMap(spec, m_axes, content.action).plain();
  std::vector<std::byte> base(static_cast<std::size_t>(map.elements) * bytes_of(stored));
  FORGE_TRY(m_device->context().copy_to_host(base.data(), content.base->outputs[o].expected.data(), base.size()));
  std::vector<std::byte> out(static_cast<std::size_t>(map.elements) * bytes_of(spec.dtype));
  std::vector<std::int64_t> to;  // where the elements that indices name have moved
  if (rule.kind == JudgeKind::indexes) {
    const TensorSpec& of = m_context->op.definition.inputs[index_tensors(m_context->op.definition, rule).of];
    if (const auto moves = content.action.from.find(of.shape.back()); moves != content.action.from.end()) {
      to.resize(moves->second.size());
      for (std::size_t i = 0; i < to.size(); ++i) to[static_cast<std::size_t>(moves->second[i])] = static_cast<std::int64_t>(i);
    }
  }
  for (std::int64_t e = 0; e < map.elements; ++e) {
    const rules::Source from = rules::source_of(map, e);
    double value = rules::decode(element_type(stored),
                                 rules::signed_bits(element_type(stored), rules::load(element_type(stored), base.data(), from.index), from.negative));
    if (!to.empty()) value = static_cast<double>(to.at(static_cast<std::size_t>(value)));
    encode(spec.dtype, value, out.data() + static_cast<std::size_t>(e) * bytes_of(spec.dtype));
  }
  return out;
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
  Status refresh(int calls) override { return m_slots->refresh(calls); }
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
