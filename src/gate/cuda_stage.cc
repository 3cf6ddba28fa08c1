// SPDX-License-Identifier: Apache-2.0
// Map: refresh (draw, place_maps, fill_slot, canaries) -> the runner's turn -> check (canaries, inputs, compare, stale, workspaces).
// What runners are handed: cuda_stage_calls.cc.
#include "gate/cuda_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gate/numeric.h"

namespace forge {
namespace {

constexpr std::size_t k_align = 256;  // of a slot's tensor

std::size_t aligned(std::size_t bytes) { return (bytes + k_align - 1) / k_align * k_align; }
template <class T = void>
T* on_card(DevicePointer pointer) {
  return reinterpret_cast<T*>(pointer);
}

// Tables of several actions, side by side in one piece of the card's memory.
class TablePacker {
 public:
  const void* place(const void* table, std::size_t bytes) {
    m_bytes.resize(aligned(m_bytes.size()));
    const std::size_t at = m_bytes.size();
    m_bytes.resize(at + bytes);
    std::memcpy(m_bytes.data() + at, table, bytes);
    return reinterpret_cast<const void*>(at + 1);  // not null; moved to where the tables end up by rebase()
  }
  static void rebase(rules::MoveMap& map, DevicePointer tables) {
    const auto move = [tables](auto& pointer) {
      if (!pointer) return;
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(tables + reinterpret_cast<std::uintptr_t>(pointer) - 1);
    };
    for (int d = 0; d < map.outer; ++d) {
      move(map.from[d]);
      move(map.negative[d]);
    }
    move(map.inner_from);
    move(map.inner_negative);
  }
  const std::vector<std::byte>& bytes() const { return m_bytes; }

 private:
  std::vector<std::byte> m_bytes;
};

}  // namespace

std::size_t CudaSlots::slot_bytes(const OperatorFolder& op, const AxisValues& axes) {
  std::size_t total = 0;
  for (const auto* tensors : {&op.definition.inputs, &op.definition.outputs})
    for (const TensorSpec& spec : *tensors) total += spec.scalar ? 0 : aligned(static_cast<std::size_t>(byte_count(spec, axes)));
  return total;
}

Result<std::unique_ptr<CudaSlots>> CudaSlots::make(std::shared_ptr<JudgeContext> context, std::shared_ptr<JudgeDevice> device,
                                                   const AxisValues& axes, std::string label,
                                                   std::vector<std::shared_ptr<DeviceBase>> bases, BaseMaker make_another, int slots) {
  std::unique_ptr<CudaSlots> stage(new CudaSlots);
  stage->m_context = std::move(context);
  stage->m_device = std::move(device);
  stage->m_axes = axes;
  stage->m_label = std::move(label);
  stage->m_bases = std::move(bases);
  stage->m_make_another = std::move(make_another);
  stage->m_repeats = action_bits(stage->m_context->op.task, axes) < k_enough_bits;
  stage->m_random = Random(os_entropy());
  stage->m_slots.resize(static_cast<std::size_t>(std::max(1, slots)));
  const Definition& definition = stage->m_context->op.definition;
  const auto place = [&](const TensorSpec& spec, auto& buffers, auto& strides) -> Status {
    const auto bytes = spec.scalar ? 0 : static_cast<std::size_t>(byte_count(spec, axes));
    strides.push_back(aligned(bytes));
    buffers.emplace_back();
    if (spec.scalar) return {};
    FORGE_TRY_ASSIGN(buffers.back(), DeviceBuffer::make(strides.back() * (stage->m_slots.size() - 1) + bytes, spec.name));
    return {};
  };
  for (const TensorSpec& spec : definition.inputs) FORGE_TRY(place(spec, stage->m_inputs, stage->m_input_stride));
  for (const TensorSpec& spec : definition.outputs) FORGE_TRY(place(spec, stage->m_outputs, stage->m_output_stride));
  return stage;
}

DevicePointer CudaSlots::input_at(std::size_t i, int slot) const {
  return m_inputs[i]->data() + m_input_stride[i] * static_cast<std::size_t>(slot);
}
DevicePointer CudaSlots::output_at(std::size_t o, int slot) const {
  return m_outputs[o]->data() + m_output_stride[o] * static_cast<std::size_t>(slot);
}

Result<std::shared_ptr<DeviceBase>> CudaSlots::next_base() {
  if (m_repeats) return m_make_another();
  return m_bases[m_random.below(m_bases.size())];
}

// ---- new content ----

Result<std::vector<CudaSlots::Maps>> CudaSlots::place_maps(const std::vector<const Action*>& actions, DeviceMemory& tables) const {
  const Definition& definition = m_context->op.definition;
  TablePacker packer;
  std::vector<Maps> all;
  for (const Action* action : actions) {
    Maps maps;
    const auto add = [&](const std::vector<TensorSpec>& specs, std::vector<rules::MoveMap>& to) {
      for (const TensorSpec& spec : specs)
        to.push_back(ElementMap(spec, m_axes, *action).plain([&](const void* t, std::size_t bytes) { return packer.place(t, bytes); }));
    };
    add(definition.inputs, maps.inputs);
    add(definition.outputs, maps.outputs);
    all.push_back(std::move(maps));
  }
  if (tables.bytes() < packer.bytes().size()) {
    FORGE_TRY_ASSIGN(tables, DeviceMemory::make(packer.bytes().size()));
  }
  if (!packer.bytes().empty()) FORGE_TRY(m_device->context().copy_to_device(tables.data(), packer.bytes().data(), packer.bytes().size()));
  for (Maps& maps : all)
    for (auto* list : {&maps.inputs, &maps.outputs})
      for (rules::MoveMap& map : *list) TablePacker::rebase(map, tables.data());
  return all;
}

Status CudaSlots::refresh(int calls) {
  const auto n = static_cast<std::size_t>(calls);
  if (calls < 1 || n > m_slots.size()) return fail(Code::internal, fmt::format("{} calls on {} slots", calls, m_slots.size()));
  std::vector<Content> fresh(n);
  std::vector<std::uint64_t> seeds;
  for (Content& content : fresh) {
    FORGE_TRY_ASSIGN(content.base, next_base());
    seeds.push_back(m_random.next());
  }
  m_context->team.run(calls, [&](std::int64_t s, int) {
    Random random(seeds[static_cast<std::size_t>(s)]);
    fresh[static_cast<std::size_t>(s)].action = draw_action(m_context->op.task, m_axes, random);
  });
  for (std::size_t s = 0; s < n; ++s) {
    Slot& slot = m_slots[s];
    if (slot.now && m_slots.size() == 1) slot.past.push_front(std::move(*slot.now));
    if (slot.past.size() > k_remembered) slot.past.pop_back();
    slot.now = std::move(fresh[s]);
    slot.poison.clear();
    for (std::size_t o = 0; o < m_outputs.size(); ++o) slot.poison.push_back(draw_poison(m_random));
  }
  std::vector<const Action*> actions;
  for (std::size_t s = 0; s < n; ++s) actions.push_back(&m_slots[s].now->action);
  FORGE_TRY_ASSIGN(auto maps, place_maps(actions, m_tables));
  for (std::size_t s = 0; s < n; ++s) {
    m_slots[s].maps = std::move(maps[s]);
    FORGE_TRY(fill_slot(m_slots[s], static_cast<int>(s)));
  }
  for (const auto& spaces : live_spaces())
    for (const Space& space : *spaces)
      if (space.init != WorkspaceInit::clean)  // zero since it was made; check() sees that it stays so
        FORGE_TRY(poison_at(space.buffer.data(), space.bytes, draw_poison(m_random)));
  FORGE_TRY(set_canaries(slacks()));
  return m_device->context().synchronize();
}

Status CudaSlots::fill_slot(const Slot& slot, int index) const {
  const Definition& definition = m_context->op.definition;
  for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
    if (definition.inputs[i].scalar) continue;
    const judge::Move move{.map = slot.maps.inputs[i],
                           .base = on_card(slot.now->base->inputs[i].data()),
                           .to = on_card(input_at(i, index)),
                           .type = element_type(definition.inputs[i].dtype)};
    FORGE_TRY(m_device->launch("judge_move", move, move.map.elements));
  }
  for (std::size_t o = 0; o < definition.outputs.size(); ++o)
    FORGE_TRY(poison_at(output_at(o, index), static_cast<std::size_t>(byte_count(definition.outputs[o], m_axes)), slot.poison[o]));
  return {};
}

Status CudaSlots::poison_at(DevicePointer at, std::size_t bytes, const Pattern& pattern) const {
  const judge::Fill fill{.line = poison_of(pattern), .to = on_card(at), .bytes = static_cast<std::int64_t>(bytes)};
  return m_device->launch("judge_poison", fill, fill.bytes / 16 + 1);
}

std::vector<CudaSlots::Slack> CudaSlots::slacks() const {
  std::vector<Slack> all;
  const auto add = [&](const DeviceBuffer& buffer) {
    all.push_back({buffer.allocation(), buffer.offset(), &buffer.label(), "just before"});
    const std::size_t end = buffer.offset() + buffer.bytes();
    all.push_back({buffer.allocation() + end, buffer.allocation_bytes() - end, &buffer.label(), "just behind"});
  };
  const auto add_gaps = [&](const DeviceBuffer& buffer, std::size_t stride, std::size_t bytes) {
    for (std::size_t s = 0; s + 1 < m_slots.size() && bytes < stride; ++s)
      all.push_back({buffer.data() + s * stride + bytes, stride - bytes, &buffer.label(), "just behind"});
  };
  const Definition& definition = m_context->op.definition;
  for (std::size_t i = 0; i < m_inputs.size(); ++i) {
    if (!m_inputs[i]) continue;
    add(*m_inputs[i]);
    add_gaps(*m_inputs[i], m_input_stride[i], static_cast<std::size_t>(byte_count(definition.inputs[i], m_axes)));
  }
  for (std::size_t o = 0; o < m_outputs.size(); ++o) {
    add(*m_outputs[o]);
    const auto bytes = static_cast<std::size_t>(byte_count(definition.outputs[o], m_axes));
    add_gaps(*m_outputs[o], m_output_stride[o], bytes);
  }
  for (const auto& spaces : live_spaces())
    for (const Space& space : *spaces) add(space.buffer);
  std::erase_if(all, [](const Slack& s) { return s.bytes == 0; });
  return all;
}

Status CudaSlots::set_canaries(const std::vector<Slack>& all) {
  m_canary_seed = m_random.next();
  for (const Slack& slack : all) {
    const judge::Canary canary{
        .at = on_card(slack.at), .bytes = static_cast<std::int64_t>(slack.bytes), .seed = m_canary_seed ^ slack.at, .changed = nullptr};
    FORGE_TRY(m_device->launch("judge_set_canary", canary, canary.bytes));
  }
  m_canaries = all;
  return {};
}

// ---- checks ----

// That many, all zero.
Status CudaSlots::make_counters(std::size_t count) {
  const std::size_t bytes = std::max<std::size_t>(count, 1) * sizeof(std::uint64_t);
  if (m_counters.bytes() < bytes) {
    FORGE_TRY_ASSIGN(m_counters, DeviceMemory::make(bytes));
  }
  return m_device->context().fill(m_counters.data(), 0, bytes);
}

// Those of workspaces that went away since are not looked for: slacks() knows who is here.
Result<std::string> CudaSlots::broken_canary() {
  const auto here = slacks();
  std::vector<const Slack*> watched;
  for (const Slack& slack : m_canaries)
    if (std::any_of(here.begin(), here.end(), [&](const Slack& s) { return s.at == slack.at && s.bytes == slack.bytes; }))
      watched.push_back(&slack);
  std::vector<std::uint64_t> changed(watched.size());
  FORGE_TRY(make_counters(changed.size()));
  for (std::size_t w = 0; w < watched.size(); ++w) {
    const judge::Canary canary{.at = on_card(watched[w]->at),
                               .bytes = static_cast<std::int64_t>(watched[w]->bytes),
                               .seed = m_canary_seed ^ watched[w]->at,
                               .changed = on_card<std::uint64_t>(m_counters.data()) + w};
    FORGE_TRY(m_device->launch("judge_check_canary", canary, canary.bytes));
  }
  FORGE_TRY(m_device->context().synchronize());
  FORGE_TRY(m_device->context().copy_to_host(changed.data(), m_counters.data(), changed.size() * 8));
  for (std::size_t w = 0; w < watched.size(); ++w)
    if (changed[w]) return fmt::format("{} bytes {} '{}' were overwritten", changed[w], watched[w]->where, *watched[w]->label);
  return std::string();
}

Result<std::string> CudaSlots::changed_input(int calls) {
  const Definition& definition = m_context->op.definition;
  const std::size_t inputs = definition.inputs.size(), pairs = inputs * static_cast<std::size_t>(calls);
  std::vector<std::uint64_t> changed(2 * pairs);  // counts, then lowest indices
  FORGE_TRY(make_counters(changed.size()));
  FORGE_TRY(m_device->context().fill(m_counters.data() + pairs * 8, 0xff, pairs * 8));
  for (int s = 0; s < calls; ++s)
    for (std::size_t i = 0; i < inputs; ++i) {
      if (definition.inputs[i].scalar) continue;
      const Slot& slot = m_slots[static_cast<std::size_t>(s)];
      auto* counters = on_card<std::uint64_t>(m_counters.data()) + static_cast<std::size_t>(s) * inputs + i;
      const judge::CompareMoved compare{.map = slot.maps.inputs[i],
                                        .base = on_card(slot.now->base->inputs[i].data()),
                                        .at = on_card(input_at(i, s)),
                                        .type = element_type(definition.inputs[i].dtype),
                                        .changed = counters,
                                        .first = counters + pairs};
      FORGE_TRY(m_device->launch("judge_compare_moved", compare, compare.map.elements));
    }
  FORGE_TRY(m_device->context().synchronize());
  FORGE_TRY(m_device->context().copy_to_host(changed.data(), m_counters.data(), changed.size() * 8));
  for (std::size_t p = 0; p < pairs; ++p)
    if (changed[p] != 0)
      return fmt::format("{} elements of input '{}' were changed, the first at {}", changed[p], definition.inputs[p % inputs].name,
                         changed[pairs + p]);
  return std::string();
}

Result<std::vector<std::vector<Findings>>> CudaSlots::compare(const std::vector<const Content*>& contents,
                                                              const std::vector<const Maps*>& maps) {
  const Definition& definition = m_context->op.definition;
  const std::size_t outputs = definition.outputs.size();
  const auto most = static_cast<std::size_t>(m_device->most_blocks());
  std::vector<std::size_t> blocks;  // by slot and output
  const std::size_t room = contents.size() * outputs * most * sizeof(Findings);
  if (m_findings.bytes() < room) {
    FORGE_TRY_ASSIGN(m_findings, DeviceMemory::make(room));
  }
  for (std::size_t s = 0; s < contents.size(); ++s)
    for (std::size_t o = 0; o < outputs; ++o) {
      const TensorSpec& spec = definition.outputs[o];
      const JudgeRule& rule = rule_of(m_context->op.task, spec.name);
      const DeviceBase& base = *contents[s]->base;
      auto* findings = on_card<Findings>(m_findings.data()) + (s * outputs + o) * most;
      const rules::Poison poison = poison_of(m_slots[s].poison[o]);
      const auto* got = on_card(output_at(o, static_cast<int>(s)));
      if (rule.kind == JudgeKind::indexes) {
        const IndexTensors at = index_tensors(definition, rule);
        const TensorSpec& of = definition.inputs[at.of];
        judge::CompareIndexes compare{.of_map = maps[s]->inputs[at.of],
                                      .values_map = maps[s]->outputs[at.values],
                                      .of = on_card(base.inputs[at.of].data()),
                                      .values = on_card(base.outputs[at.values].expected.data()),
                                      .got = got,
                                      .type = element_type(spec.dtype),
                                      .of_type = element_type(of.dtype),
                                      .rows = 0,
                                      .k = m_axes.at(spec.shape.back()),
                                      .n = m_axes.at(of.shape.back()),
                                      .poison = poison,
                                      .first_use = nullptr,
                                      .blocks = findings};
        compare.rows = element_count(spec, m_axes) / compare.k;
        blocks.push_back(static_cast<std::size_t>(std::min<std::int64_t>(compare.rows, m_device->sm_count() * 2)));
        const std::size_t table = blocks.back() * static_cast<std::size_t>(compare.n) * 4;
        if (m_first_use.bytes() < table) {
          FORGE_TRY_ASSIGN(m_first_use, DeviceMemory::make(table));
        }
        // 0x7f7f7f7f is above every index, as 0x7fffffff is, which the kernel leaves behind.
        FORGE_TRY(m_device->context().fill(m_first_use.data(), 0x7f, table));
        compare.first_use = on_card<std::int32_t>(m_first_use.data());
        FORGE_TRY(m_device->launch("judge_compare_indexes", compare, static_cast<std::int64_t>(blocks.back()) * judge::kThreads));
        continue;
      }
      const judge::Compare compare{.rule = element_rule(rule, spec.dtype),
                                   .map = maps[s]->outputs[o],
                                   .got = got,
                                   .expected = on_card(base.outputs[o].expected.data()),
                                   .bound = rule.kind == JudgeKind::scaled ? on_card<float>(base.outputs[o].bound.data()) : nullptr,
                                   .poison = poison,
                                   .blocks = findings};
      blocks.push_back(static_cast<std::size_t>(m_device->blocks_for(compare.map.elements)));
      FORGE_TRY(m_device->launch("judge_compare", compare, compare.map.elements));
    }
  FORGE_TRY(m_device->context().synchronize());
  std::vector<std::vector<Findings>> found(contents.size(), std::vector<Findings>(outputs));
  std::vector<Findings> part(most);
  for (std::size_t p = 0; p < blocks.size(); ++p) {
    FORGE_TRY(m_device->context().copy_to_host(part.data(), m_findings.data() + p * most * sizeof(Findings), blocks[p] * sizeof(Findings)));
    for (std::size_t b = 0; b < blocks[p]; ++b) found[p / outputs][p % outputs].merge(part[b]);
  }
  return found;
}

Result<std::string> CudaSlots::dirty_workspace() {
  std::string found;
  for (const auto& spaces : live_spaces())
    for (const Space& space : *spaces) {
      if (space.init != WorkspaceInit::clean || space.bytes == 0) continue;
      std::uint64_t dirty = 0;
      FORGE_TRY(make_counters(1));
      const judge::Count count{.at = on_card(space.buffer.data()),
                               .bytes = static_cast<std::int64_t>(space.bytes),
                               .found = on_card<std::uint64_t>(m_counters.data())};
      FORGE_TRY(m_device->launch("judge_count_nonzero", count, count.bytes));
      FORGE_TRY(m_device->context().synchronize());
      FORGE_TRY(m_device->context().copy_to_host(&dirty, m_counters.data(), sizeof dirty));
      if (dirty == 0) continue;
      if (found.empty()) found = fmt::format("'clean' workspace '{}' has {} bytes that are not zero after the call", space.name, dirty);
      FORGE_TRY(m_device->context().fill(space.buffer.data(), 0, space.bytes));
      FORGE_TRY(m_device->context().synchronize());
    }
  return found;
}

Result<std::size_t> CudaSlots::find_stale(const Slot& slot) {
  for (std::size_t age = 0; age < slot.past.size(); ++age) {
    DeviceMemory tables;
    FORGE_TRY_ASSIGN(const auto maps, place_maps({&slot.past[age].action}, tables));
    FORGE_TRY_ASSIGN(const auto old, compare({&slot.past[age]}, {&maps[0]}));
    if (std::none_of(old[0].begin(), old[0].end(), [](const Findings& f) { return f.bad() > 0; })) return age + 1;
  }
  return std::size_t(0);
}

CheckResult CudaSlots::check(int calls) {
  auto result = check_all(calls);
  if (result) return *result;
  // Fails closed: what could not be compared is not accepted.
  return {.reason = Reason::runner_broke,
          .detail = fmt::format("the judge could not compare: {} (workload {})", result.error().text(), m_label)};
}

// Slots behind the first `calls` have content that no call was asked to answer: nothing may have been written there.
Result<CheckResult> CudaSlots::check_all(int calls) {
  if (calls < 1 || calls > slots()) return fail(Code::internal, fmt::format("{} calls on {} slots", calls, slots()));
  std::vector<const Content*> contents;
  std::vector<const Maps*> maps;
  for (int s = 0; s < slots(); ++s) {
    const Slot& slot = m_slots[static_cast<std::size_t>(s)];
    if (!slot.now && s >= calls) break;
    if (!slot.now) return CheckResult{.reason = Reason::runner_broke, .detail = "check() before refresh(): there is no content to check"};
    contents.push_back(&*slot.now);
    maps.push_back(&slot.maps);
  }
  const int filled = static_cast<int>(contents.size());
  FORGE_TRY_ASSIGN(const std::string canary, broken_canary());
  if (!canary.empty()) return CheckResult{.reason = Reason::out_of_bounds, .detail = fmt::format("{} (workload {})", canary, m_label)};
  FORGE_TRY_ASSIGN(const std::string input, changed_input(filled));
  if (!input.empty()) return CheckResult{.reason = Reason::inputs_changed, .detail = fmt::format("{} (workload {})", input, m_label)};
  FORGE_TRY_ASSIGN(const auto found, compare(contents, maps));
  for (int s = calls; s < filled; ++s)
    for (std::size_t o = 0; o < m_outputs.size(); ++o) {
      // An integer that is exact may be expected to be what the poison happens to be, and counts as right then.
      const TensorSpec& spec = m_context->op.definition.outputs[o];
      if (!is_float(spec.dtype) && rule_of(m_context->op.task, spec.name).kind != JudgeKind::indexes) continue;
      const Findings& f = found[static_cast<std::size_t>(s)][o];
      if (f.not_written != f.compared)
        return CheckResult{.reason = Reason::out_of_bounds,
                           .detail = fmt::format("{} elements of '{}' of a call that was not made were written (workload {})",
                                                 f.compared - f.not_written, spec.name, m_label)};
    }
  CheckResult all;
  for (int s = 0; s < calls; ++s) {
    CheckResult one = sum_up(m_context->op.definition, m_axes, m_label, found[static_cast<std::size_t>(s)],
                             [&](std::size_t o, std::int64_t index) { return describe(s, o, index); });
    if (slots() > 1 && one.reason != Reason::accepted) one.detail += fmt::format(", call {} of {} in a batch", s + 1, calls);
    one.elements += all.elements;
    one.worst = std::max(one.worst, all.worst);
    all = std::move(one);
    if (all.reason != Reason::accepted) break;
  }
  if (all.reason != Reason::accepted && all.reason != Reason::not_written) {
    FORGE_TRY_ASSIGN(const std::size_t ago, find_stale(m_slots[0]));
    if (ago > 0) {
      all.reason = Reason::stale_result;
      all.detail = stale_text(ago, m_label);
    }
  }
  FORGE_TRY_ASSIGN(const std::string dirty, dirty_workspace());
  if (all.reason == Reason::accepted && !dirty.empty()) {
    all.reason = Reason::dirty_workspace;
    all.detail = fmt::format("{} (workload {})", dirty, m_label);
  }
  return all;
}

// ---- words ----

Result<double> CudaSlots::number_at(DevicePointer base, DType type, std::int64_t index, bool negative) const {
  std::uint64_t bits = 0;
  const std::size_t size = bytes_of(type);
  FORGE_TRY(m_device->context().copy_to_host(&bits, base + static_cast<std::size_t>(index) * size, size));
  return rules::decode(element_type(type), rules::signed_bits(element_type(type), bits, negative));
}

std::string CudaSlots::describe(int s, std::size_t o, std::int64_t index) const {
  const Definition& definition = m_context->op.definition;
  const Slot& slot = m_slots[static_cast<std::size_t>(s)];
  const TensorSpec& spec = definition.outputs[o];
  const JudgeRule& rule = rule_of(m_context->op.task, spec.name);
  const std::size_t e = rule.kind == JudgeKind::indexes ? index_tensors(definition, rule).values : o;
  const TensorSpec& expected_spec = definition.outputs[e];
  const DType stored = stored_type(rule_of(m_context->op.task, expected_spec.name), expected_spec);
  const rules::Source from = rules::source_of(ElementMap(expected_spec, m_axes, slot.now->action).plain(), index);
  const DeviceBase::Output& base = slot.now->base->outputs[e];
  const auto got = number_at(output_at(o, s), spec.dtype, index, false);
  const auto expected = number_at(base.expected.data(), stored, from.index, from.negative);
  if (!got || !expected) return fmt::format("{} at {} (it could not be read back)", spec.name, index);
  if (rule.kind == JudgeKind::indexes) return describe_index(spec, m_axes, rule, index, *got, *expected);
  float bound = 0;
  if (rule.kind == JudgeKind::scaled)
    if (const auto b = number_at(base.bound.data(), DType::f32, from.index, false)) bound = static_cast<float>(*b);
  return describe_element(spec, m_axes, rule, index, *got, *expected, bound);
}

}  // namespace forge
