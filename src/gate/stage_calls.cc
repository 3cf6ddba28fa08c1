// SPDX-License-Identifier: Apache-2.0
// The calls that runners make on a stage's buffers, workspaces, and the battery's view of the current content.
#include <fmt/format.h>

#include <cstring>

#include "gate/judgement.h"
#include "gate/numeric.h"
#include "gate/stage.h"

namespace forge {

Status check_workspaces(const TaskFile& task, const ConcretePlan& plan) {
  double total = 0;
  for (const ConcreteWorkspace& workspace : plan.workspaces) total += static_cast<double>(workspace.bytes);
  if (const double limit = task.workspace_limit_bytes; total > limit) {
    Error error{.code = Code::bad_input, .message = fmt::format("the workspaces need {:.0f} bytes, the task allows {:.0f}", total, limit)};
    error.field = "workspace.bytes";
    error.fix = "use less workspace";
    return fail(error);
  }
  for (const ConcreteWorkspace& workspace : plan.workspaces) {
    if (workspace.init != WorkspaceInit::prepared) continue;
    Error error{.code = Code::bad_input,
                .message = fmt::format("workspace '{}': 'prepared' needs constant inputs, and this task declares none", workspace.name)};
    error.field = "workspace.init";
    error.fix = "use poison, zero or clean";
    return fail(error);
  }
  return {};
}

Result<std::vector<OperandStage::Space>> OperandStage::make_spaces(const ConcretePlan& plan) {
  FORGE_TRY(check_workspaces(m_context->op.task, plan));
  std::vector<Space> spaces;
  for (const ConcreteWorkspace& workspace : plan.workspaces) {
    const auto bytes = static_cast<std::size_t>(workspace.bytes);
    FORGE_TRY_ASSIGN(SharedBuffer buffer, SharedBuffer::make(bytes, workspace.name, 1024));
    std::memset(buffer.data(), 0, bytes);
    spaces.push_back({std::move(buffer), bytes, workspace.name, workspace.init, {}});
  }
  return spaces;
}

CallSpec OperandStage::call_on_operands() const {
  const Definition& definition = m_context->op.definition;
  CallSpec call;
  for (std::size_t i = 0; i < m_inputs.size(); ++i) {
    call.inputs.push_back({m_inputs[i].buffer ? &*m_inputs[i].buffer : nullptr, Access::read});
    call.input_shapes.push_back(shape_of(definition.inputs[i], m_axes));
  }
  for (std::size_t o = 0; o < m_outputs.size(); ++o) {
    call.outputs.push_back({&*m_outputs[o].buffer, Access::write});
    call.output_shapes.push_back(shape_of(definition.outputs[o], m_axes));
  }
  call.input_specs = definition.inputs;
  call.output_specs = definition.outputs;
  for (const Axis& axis : definition.axes)
    if (!axis.constant) call.axes.emplace_back(axis.name, m_axes.at(axis.name));
  call.scalars = scalars();
  return call;
}

CallSpec OperandStage::call_for_expert() { return call_on_operands(); }

Result<CallSpec> OperandStage::call_for(const Image& image, int workers) {
  CallSpec call = call_on_operands();
  FORGE_TRY_ASSIGN(call.plan, make_concrete(image.plan, m_axes, workers, workers));
  call.layout = make_arg_layout(image.plan, m_context->op.definition);
  std::erase_if(m_spaces, [](const auto& held) { return held.second.expired(); });
  auto& held = m_spaces[fmt::format("{}:{}", image.sha256, workers)];
  auto spaces = held.lock();
  if (!spaces) {
    FORGE_TRY_ASSIGN(auto made, make_spaces(call.plan));
    spaces = std::make_shared<std::vector<Space>>(std::move(made));
    held = spaces;
    if (m_now) set_canaries();  // the new buffers have canaries to be checked, too
  }
  for (const Space& space : *spaces) call.workspaces.push_back({&space.buffer, Access::write});
  call.keep_alive = spaces;
  return call;
}

std::span<std::byte> OperandStage::input(std::size_t i) const {
  if (!m_inputs[i].buffer) return {};
  return {m_inputs[i].buffer->data(), m_inputs[i].buffer->bytes()};
}

std::span<std::byte> OperandStage::output(std::size_t o) const { return {m_outputs[o].buffer->data(), m_outputs[o].buffer->bytes()}; }

std::vector<double> OperandStage::expected_now(std::size_t o) const {
  const TensorSpec& spec = m_context->op.definition.outputs[o];
  const JudgeRule& rule = rule_of(m_context->op.task, spec.name);
  const DType stored = stored_type(rule, spec);
  const ElementMap map(spec, m_axes, m_now->action);
  std::vector<std::byte> moved(static_cast<std::size_t>(map.elements()) * bytes_of(stored));
  map.copy(m_now->base->outputs[o].expected.data(), stored, ElementMap::Sign::apply, 0, map.elements(), moved.data());
  std::vector<double> values(static_cast<std::size_t>(map.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = decode(stored, moved.data() + i * bytes_of(stored));
  if (rule.kind != JudgeKind::indexes) return values;
  // The elements that the oracle named have moved along their axis.
  const TensorSpec& of = m_context->op.definition.inputs[index_tensors(m_context->op.definition, rule).of];
  const auto moves = m_now->action.from.find(of.shape.back());
  if (moves == m_now->action.from.end()) return values;
  std::vector<double> to(moves->second.size());
  for (std::size_t i = 0; i < to.size(); ++i) to[static_cast<std::size_t>(moves->second[i])] = static_cast<double>(i);
  for (double& value : values) value = value >= 0 && value < static_cast<double>(to.size()) ? to[static_cast<std::size_t>(value)] : -1;
  return values;
}

std::vector<double> OperandStage::allowed_now(std::size_t o) const {
  const TensorSpec& spec = m_context->op.definition.outputs[o];
  const JudgeRule& rule = rule_of(m_context->op.task, spec.name);
  const auto expected = expected_now(o);
  std::vector<float> bounds(expected.size());
  if (rule.kind == JudgeKind::scaled)
    ElementMap(spec, m_axes, m_now->action)
        .copy(m_now->base->outputs[o].bound.data(), DType::f32, ElementMap::Sign::ignore, 0, static_cast<std::int64_t>(bounds.size()),
              bounds.data());
  std::vector<double> allowed(expected.size());
  for (std::size_t i = 0; i < allowed.size(); ++i)
    allowed[i] = rule.kind == JudgeKind::indexes ? 0 : allowed_error(rule, static_cast<float>(expected[i]), bounds[i]);
  return allowed;
}

}  // namespace forge
