// SPDX-License-Identifier: Apache-2.0
#include "gate/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "gate/judgement.h"
#include "gate/numeric.h"

namespace forge {
namespace {

constexpr std::int64_t k_unit = std::int64_t(1) << 16;  // elements that a thread takes at once

// A piece of work on one tensor.
struct Unit {
  std::size_t tensor;
  bool output;
  std::int64_t begin, end;
};
std::vector<Unit> units_of(const std::vector<TensorSpec>& specs, const AxisValues& axes, bool output) {
  std::vector<Unit> units;
  for (std::size_t t = 0; t < specs.size(); ++t) {
    if (specs[t].scalar) continue;
    const std::int64_t count = element_count(specs[t], axes);
    for (std::int64_t at = 0; at < count; at += k_unit) units.push_back({t, output, at, std::min(count, at + k_unit)});
  }
  return units;
}

}  // namespace

Result<std::unique_ptr<OperandStage>> OperandStage::make(std::shared_ptr<JudgeContext> context, const AxisValues& axes, std::string label,
                                                         std::vector<std::shared_ptr<BasePair>> bases, BaseMaker make_another) {
  std::unique_ptr<OperandStage> stage(new OperandStage);
  stage->m_context = std::move(context);
  stage->m_axes = axes;
  stage->m_label = std::move(label);
  stage->m_bases = std::move(bases);
  stage->m_make_another = std::move(make_another);
  stage->m_repeats = action_bits(stage->m_context->op.task, axes) < k_enough_bits;
  stage->m_random = Random(os_entropy());
  const Definition& definition = stage->m_context->op.definition;
  for (const TensorSpec& spec : definition.inputs) {
    Operand operand;
    if (!spec.scalar) {
      FORGE_TRY_ASSIGN(operand.buffer, SharedBuffer::make(static_cast<std::size_t>(byte_count(spec, axes)), spec.name));
      FORGE_TRY(operand.buffer->seal_for_reading());
    }
    stage->m_inputs.push_back(std::move(operand));
  }
  for (const TensorSpec& spec : definition.outputs) {
    Operand operand;
    FORGE_TRY_ASSIGN(operand.buffer, SharedBuffer::make(static_cast<std::size_t>(byte_count(spec, axes)), spec.name));
    stage->m_outputs.push_back(std::move(operand));
  }
  return stage;
}

std::vector<ElementMap> OperandStage::maps(const std::vector<TensorSpec>& specs, const Action& action) const {
  std::vector<ElementMap> result;
  for (const TensorSpec& spec : specs) result.emplace_back(spec, m_axes, action);
  return result;
}

Result<std::shared_ptr<BasePair>> OperandStage::next_base() {
  if (m_repeats) return m_make_another();
  return m_bases[m_random.below(m_bases.size())];
}

Status OperandStage::refresh() {
  FORGE_TRY_ASSIGN(auto base, next_base());
  if (m_now) m_past.push_front(std::move(*m_now));
  if (m_past.size() > k_remembered) m_past.pop_back();
  m_now = Content{std::move(base), draw_action(m_context->op.task, m_axes, m_random)};
  for (Operand& output : m_outputs) output.poison = draw_poison(m_random);
  fill_operands();
  set_canaries();
  return {};
}

// Inputs, poison of outputs and of workspaces, all past the caches. Through a staging block in L1, so that every store is a full
// line whatever the symmetry gathers.
void OperandStage::fill_operands() {
  const Definition& definition = m_context->op.definition;
  const auto input_maps = maps(definition.inputs, m_now->action);
  auto units = units_of(definition.inputs, m_axes, false);
  const auto outputs = units_of(definition.outputs, m_axes, true);
  units.insert(units.end(), outputs.begin(), outputs.end());
  m_context->team.run(static_cast<std::int64_t>(units.size()), [&](std::int64_t u, int) {
    const Unit& unit = units[static_cast<std::size_t>(u)];
    if (unit.output) {
      const std::size_t size = bytes_of(definition.outputs[unit.tensor].dtype);
      const Operand& operand = m_outputs[unit.tensor];
      stream_pattern(operand.buffer->data() + static_cast<std::size_t>(unit.begin) * size, operand.poison,
                     static_cast<std::size_t>(unit.end - unit.begin) * size);
    } else {
      const DType type = definition.inputs[unit.tensor].dtype;
      alignas(64) std::byte staging[k_piece * 8];
      for (std::int64_t at = unit.begin; at < unit.end; at += k_piece) {
        const std::int64_t end = std::min(unit.end, at + k_piece);
        input_maps[unit.tensor].copy(m_now->base->inputs[unit.tensor].data(), type, ElementMap::Sign::apply, at, end, staging);
        stream_copy(m_inputs[unit.tensor].buffer->data() + static_cast<std::size_t>(at) * bytes_of(type), staging,
                    static_cast<std::size_t>(end - at) * bytes_of(type));
      }
    }
    finish_streaming();
  });
  for (const auto& spaces : live_spaces())
    for (Space& space : *spaces) {
      if (space.init == WorkspaceInit::clean) continue;  // zero since it was made; check() sees that it stays so
      space.poison = draw_poison(m_random);
      const auto chunks = static_cast<std::int64_t>((space.bytes + k_unit - 1) / k_unit);
      m_context->team.run(chunks, [&](std::int64_t c, int) {
        const std::size_t at = static_cast<std::size_t>(c) * k_unit;
        stream_pattern(space.buffer.data() + at, space.poison, std::min<std::size_t>(k_unit, space.bytes - at));
        finish_streaming();
      });
    }
}

template <class Visit>
void OperandStage::each_buffer(Visit visit) const {
  for (const Operand& operand : m_inputs)
    if (operand.buffer) visit(*operand.buffer);
  for (const Operand& operand : m_outputs) visit(*operand.buffer);
  for (const auto& spaces : live_spaces())
    for (const Space& space : *spaces) visit(space.buffer);
}

std::vector<std::shared_ptr<std::vector<OperandStage::Space>>> OperandStage::live_spaces() const {
  std::vector<std::shared_ptr<std::vector<Space>>> live;
  for (const auto& [image, held] : m_spaces)
    if (auto spaces = held.lock()) live.push_back(std::move(spaces));
  return live;
}

// Random bytes in the slack around every tensor, new each time; drawn again from the seed to be compared. Each buffer has its own
// stream, so that a workspace which goes away between refresh and check does not matter to the others.
static Random canary_stream(std::uint64_t seed, const SharedBuffer& buffer) {
  return Random(seed ^ reinterpret_cast<std::uintptr_t>(buffer.data()));
}

void OperandStage::set_canaries() {
  m_canary_seed = m_random.next();
  each_buffer([&](const SharedBuffer& buffer) {
    Random random = canary_stream(m_canary_seed, buffer);
    for (const auto slack : {buffer.slack_before(), buffer.slack_after()}) {
      for (std::byte& b : slack) b = static_cast<std::byte>(random.next() >> 56);
      flush_lines(slack.data(), slack.size());  // the last one may hold the tensor's end
    }
  });
}

std::string OperandStage::broken_canary() const {
  std::string found;
  each_buffer([&](const SharedBuffer& buffer) {
    Random random = canary_stream(m_canary_seed, buffer);
    bool after = false;
    for (const auto slack : {buffer.slack_before(), buffer.slack_after()}) {
      std::int64_t changed = 0;
      for (const std::byte b : slack) changed += b != static_cast<std::byte>(random.next() >> 56);
      if (changed && found.empty())
        found = fmt::format("{} bytes just {} '{}' were overwritten", changed, after ? "behind" : "before", buffer.label());
      after = true;
    }
  });
  return found;
}

// Runners cannot map inputs writable (the seal), so a sample guards against a hole in that; inputs up to 4 MiB are compared whole.
std::string OperandStage::changed_input() const {
  constexpr std::int64_t sampled_pieces = 256;
  const Definition& definition = m_context->op.definition;
  const auto input_maps = maps(definition.inputs, m_now->action);
  Random random(os_entropy());
  for (std::size_t t = 0; t < definition.inputs.size(); ++t) {
    const TensorSpec& spec = definition.inputs[t];
    if (spec.scalar) continue;
    const std::size_t size = bytes_of(spec.dtype);
    const std::int64_t count = element_count(spec, m_axes), pieces = (count + k_piece - 1) / k_piece;
    const std::int64_t looks = std::min(pieces, sampled_pieces);
    for (std::int64_t look = 0; look < looks; ++look) {
      const std::int64_t p = pieces <= sampled_pieces ? look : static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(pieces)));
      const std::int64_t begin = p * k_piece, end = std::min(count, begin + k_piece);
      std::byte staging[k_piece * 8];
      input_maps[t].copy(m_now->base->inputs[t].data(), spec.dtype, ElementMap::Sign::apply, begin, end, staging);
      if (std::memcmp(staging, m_inputs[t].buffer->data() + static_cast<std::size_t>(begin) * size,
                      static_cast<std::size_t>(end - begin) * size) != 0)
        return fmt::format("input '{}' was changed within elements {} to {}", spec.name, begin, end - 1);
    }
  }
  return {};
}

std::string OperandStage::dirty_workspace() const {
  std::string found;
  for (const auto& spaces : live_spaces())
    for (Space& space : *spaces) {
      if (space.init != WorkspaceInit::clean) continue;
      const auto dirty =
          std::count_if(space.buffer.data(), space.buffer.data() + space.bytes, [](std::byte b) { return b != std::byte{0}; });
      if (dirty == 0) continue;
      if (found.empty()) found = fmt::format("'clean' workspace '{}' has {} bytes that are not zero after the call", space.name, dirty);
      std::memset(space.buffer.data(), 0, space.bytes);
    }
  return found;
}

std::vector<Findings> OperandStage::compare_with(const Content& content, bool stop_at_first_bad) const {
  const Definition& definition = m_context->op.definition;
  const auto output_maps = maps(definition.outputs, content.action);
  const auto units = units_of(definition.outputs, m_axes, true);
  std::vector<std::vector<Findings>> by_thread(static_cast<std::size_t>(m_context->team.size()),
                                               std::vector<Findings>(definition.outputs.size()));
  std::atomic<bool> stop{false};
  m_context->team.run(static_cast<std::int64_t>(units.size()), [&](std::int64_t u, int thread) {
    if (stop) return;
    const Unit& unit = units[static_cast<std::size_t>(u)];
    Findings& findings = by_thread[static_cast<std::size_t>(thread)][unit.tensor];
    const TensorSpec& spec = definition.outputs[unit.tensor];
    const JudgeRule& rule = rule_of(m_context->op.task, spec.name);
    if (rule.kind == JudgeKind::indexes) return;  // by rows, below
    const BaseOutput& base = content.base->outputs[unit.tensor];
    const DType stored = stored_type(rule, spec);
    alignas(64) std::byte expected[k_piece * 8];
    alignas(64) float bound[k_piece];
    for (std::int64_t at = unit.begin; at < unit.end; at += k_piece) {
      const std::int64_t end = std::min(unit.end, at + k_piece);
      output_maps[unit.tensor].copy(base.expected.data(), stored, ElementMap::Sign::apply, at, end, expected);
      Piece piece{.got = m_outputs[unit.tensor].buffer->data() + static_cast<std::size_t>(at) * bytes_of(spec.dtype),
                  .expected = expected,
                  .bound = nullptr,
                  .first = at,
                  .count = end - at};
      if (rule.kind == JudgeKind::scaled) {
        output_maps[unit.tensor].copy(base.bound.data(), DType::f32, ElementMap::Sign::ignore, at, end, bound);
        piece.bound = bound;
      }
      compare_piece(rule, spec.dtype, piece, m_outputs[unit.tensor].poison, findings);
    }
    if (stop_at_first_bad && findings.bad() > 0) stop = true;
  });
  std::vector<Findings> total(definition.outputs.size());
  for (const auto& thread : by_thread)
    for (std::size_t o = 0; o < total.size(); ++o) total[o].merge(thread[o]);
  for (std::size_t o = 0; o < total.size(); ++o)
    if (rule_of(m_context->op.task, definition.outputs[o].name).kind == JudgeKind::indexes) total[o] = compare_indexes(content, o);
  return total;
}

// Looked up in what the input was made from, not in the buffer, which is only sampled for changes.
Findings OperandStage::compare_indexes(const Content& content, std::size_t o) const {
  const Definition& definition = m_context->op.definition;
  const TensorSpec& spec = definition.outputs[o];
  const JudgeRule& rule = rule_of(m_context->op.task, spec.name);
  const IndexTensors at = index_tensors(definition, rule);
  const TensorSpec &of = definition.inputs[at.of], &values = definition.outputs[at.values];
  const ElementMap of_map(of, m_axes, content.action), values_map(values, m_axes, content.action);
  const std::int64_t k = m_axes.at(spec.shape.back()), n = m_axes.at(of.shape.back()), rows = element_count(spec, m_axes) / k;
  struct Room {
    std::vector<std::byte> of, values;
    std::vector<std::uint8_t> seen;
    Findings findings;
  };
  std::vector<Room> rooms(static_cast<std::size_t>(m_context->team.size()));
  m_context->team.run(rows, [&](std::int64_t r, int thread) {
    Room& room = rooms[static_cast<std::size_t>(thread)];
    room.of.resize(static_cast<std::size_t>(n) * bytes_of(of.dtype));
    room.values.resize(static_cast<std::size_t>(k) * bytes_of(values.dtype));
    of_map.copy(content.base->inputs[at.of].data(), of.dtype, ElementMap::Sign::apply, r * n, (r + 1) * n, room.of.data());
    values_map.copy(content.base->outputs[at.values].expected.data(), values.dtype, ElementMap::Sign::apply, r * k, (r + 1) * k,
                    room.values.data());
    compare_index_row({.got = m_outputs[o].buffer->data() + static_cast<std::size_t>(r * k) * bytes_of(spec.dtype),
                       .values = room.values.data(),
                       .of = room.of.data(),
                       .type = spec.dtype,
                       .of_type = of.dtype,
                       .first = r * k,
                       .k = k,
                       .n = n},
                      m_outputs[o].poison, room.seen, room.findings);
  });
  Findings total;
  for (const Room& room : rooms) total.merge(room.findings);
  return total;
}

CheckResult OperandStage::check() {
  if (!m_now) return {.reason = Reason::runner_broke, .detail = "check() before refresh(): there is no content to check"};
  if (std::string problem = broken_canary(); !problem.empty())
    return {.reason = Reason::out_of_bounds, .detail = fmt::format("{} (workload {})", problem, m_label)};
  if (std::string problem = changed_input(); !problem.empty())
    return {.reason = Reason::inputs_changed, .detail = fmt::format("{} (workload {})", problem, m_label)};
  CheckResult result = sum_up(m_context->op.definition, m_axes, m_label, compare_with(*m_now, false),
                              [this](std::size_t o, std::int64_t index) { return describe(o, index); });
  if (result.reason != Reason::accepted && result.reason != Reason::not_written) {
    for (std::size_t age = 0; age < m_past.size(); ++age) {
      const auto old = compare_with(m_past[age], true);
      if (std::any_of(old.begin(), old.end(), [](const Findings& f) { return f.bad() > 0; })) continue;
      result.reason = Reason::stale_result;
      result.detail = stale_text(age + 1, m_label);
      break;
    }
  }
  const std::string dirty = dirty_workspace();
  if (result.reason == Reason::accepted && !dirty.empty()) {
    result.reason = Reason::dirty_workspace;
    result.detail = fmt::format("{} (workload {})", dirty, m_label);
  }
  return result;
}

std::string OperandStage::describe(std::size_t o, std::int64_t index) const {
  const Definition& definition = m_context->op.definition;
  const TensorSpec& spec = definition.outputs[o];
  const JudgeRule& rule = rule_of(m_context->op.task, spec.name);
  const double got = decode(spec.dtype, m_outputs[o].buffer->data() + static_cast<std::size_t>(index) * bytes_of(spec.dtype));
  // What is expected there: of an index, the value that it should name.
  const std::size_t e = rule.kind == JudgeKind::indexes ? index_tensors(definition, rule).values : o;
  const TensorSpec& expected_spec = definition.outputs[e];
  const DType stored = stored_type(rule_of(m_context->op.task, expected_spec.name), expected_spec);
  const ElementMap map(expected_spec, m_axes, m_now->action);
  const BaseOutput& base = m_now->base->outputs[e];
  std::int64_t room = 0;
  map.copy(base.expected.data(), stored, ElementMap::Sign::apply, index, index + 1, &room);
  const double expected = decode(stored, &room);
  if (rule.kind == JudgeKind::indexes) return describe_index(spec, m_axes, rule, index, got, expected);
  float bound = 0;
  if (rule.kind == JudgeKind::scaled) map.copy(base.bound.data(), DType::f32, ElementMap::Sign::ignore, index, index + 1, &bound);
  return describe_element(spec, m_axes, rule, index, got, expected, bound);
}

}  // namespace forge
