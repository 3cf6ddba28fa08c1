// SPDX-License-Identifier: Apache-2.0
// Evidence of a kernel: what its time and its instructions say against the machine's ceilings. Never source.
#include <fmt/format.h>

#include <algorithm>

#include "gate/card_evidence.h"
#include "gate/ncu.h"
#include "gate/real_gate.h"
#include "util/progress.h"

namespace forge {
namespace {

std::int64_t count_matching(const std::map<std::string, std::int64_t>& mnemonics, const char* start) {
  std::int64_t n = 0;
  for (const auto& [mnemonic, count] : mnemonics)
    if (mnemonic.starts_with(start)) n += count;
  return n;
}

double value_of(const Names& names, const char* name) {
  const auto it = names.find(name);
  return it == names.end() ? 0 : double(it->second);
}

bool narrow_inputs(const Definition& d) {
  return std::all_of(d.inputs.begin(), d.inputs.end(), [](const TensorSpec& t) { return t.scalar || bits(t.dtype) <= 16; });
}

}  // namespace

AxisValues timed_axes(const OperatorFolder& op) {
  auto axes = complete_axes(op.definition, op.task.timed.axes);
  return axes ? *axes : AxisValues{};  // the catalog refused a task whose timed axes are incomplete
}

void add_mix_metrics(Evidence& e, const InstructionMix& mix) {
  e.mix = mix;
  std::int64_t hot = 0;
  for (const auto& [mnemonic, count] : mix.hot) hot += count;
  e.metrics["instructions"] = double(mix.instructions);
  e.metrics["vector_bits"] = mix.widest_vector_bits;
  e.metrics["spills"] = mix.spills;
  e.metrics["hot_instructions"] = double(hot);
  e.metrics["hot_fma"] = double(count_matching(mix.hot, "vfm") + count_matching(mix.hot, "vfnm"));
  e.metrics["nontemporal_stores"] = double(count_matching(mix.mnemonics, "vmovnt") + count_matching(mix.mnemonics, "movnt"));
  e.metrics["prefetches"] = double(count_matching(mix.mnemonics, "prefetch"));
  int fma = 0, loads = 0, stores = 0;
  for (const auto& loop : mix.loops) {
    fma += loop.fma;
    loads += loop.loads;
    stores += loop.stores;
  }
  if (loads > 0) e.metrics["fma_per_load"] = double(fma) / loads;
  e.metrics["hot_loads"] = loads;
  e.metrics["hot_stores"] = stores;
  if (mix.undecoded > 0) e.notes.push_back(fmt::format("{} instructions could not be decoded", mix.undecoded));
}

void add_cost_metrics(Evidence& e, const OperatorFolder& op, const Machine& machine, double seconds) {
  const AxisValues axes = timed_axes(op);
  double tensors = 0;
  for (const auto* list : {&op.definition.inputs, &op.definition.outputs})
    for (const auto& t : *list)
      if (!t.scalar) tensors += double(byte_count(t, axes));
  const bool card = machine.target.family == "cuda";
  e.metrics["working_set_bytes"] = tensors;
  if (card) {
    for (const char* name : {"sm_count", "l2_bytes", "shared_bytes_per_sm", "registers_per_sm"})
      e.metrics[name] = value_of(machine.properties, name);
  } else {
    e.metrics["working_set_per_core_bytes"] = tensors / std::max(1, machine.cores);
    for (const char* name : {"l1d_bytes", "l2_bytes", "l3_bytes", "cores"}) e.metrics[name] = value_of(machine.properties, name);
  }
  const Ceilings& top = machine.ceilings;
  e.metrics["ceiling_read_gbs"] = top.read_gbs;
  e.metrics["ceiling_copy_gbs"] = top.copy_gbs;
  const auto flops = evaluate(op.task.flops, axes), bytes = evaluate(op.task.bytes, axes);
  if (!flops || !bytes) {
    e.notes.push_back("the task's cost expressions could not be evaluated: " + (flops ? bytes : flops).error().text());
    return;
  }
  e.metrics["flops"] = double(*flops);
  e.metrics["compulsory_bytes"] = double(*bytes);
  // Matrix units take 16-bit operands, and pay only where the arithmetic would not hide behind the memory anyway.
  const double ridge = top.copy_gbs > 0 ? top.gflops / top.copy_gbs : 0;  // flops a byte
  const bool matrix = top.matrix_gflops > 0 && narrow_inputs(op.definition) && double(*flops) > ridge * double(*bytes);
  const double gflops = matrix ? top.matrix_gflops : top.gflops;
  e.metrics["ceiling_gflops"] = gflops;
  if (card) e.notes.push_back(matrix ? "compute ceiling: matrix units, 16-bit operands with f32 accumulation" : "compute ceiling: f32 FMA");
  double roofline = 0;
  if (gflops > 0) roofline = double(*flops) / (gflops * 1e9);
  if (top.copy_gbs > 0) roofline = std::max(roofline, double(*bytes) / (top.copy_gbs * 1e9));
  e.metrics["roofline_seconds"] = roofline;
  if (!(gflops > 0 && top.copy_gbs > 0)) e.notes.push_back("ceilings were not measured: no percentages of them");
  if (!(seconds > 0)) return;
  e.metrics["seconds"] = seconds;
  e.metrics["achieved_gflops"] = double(*flops) / seconds * 1e-9;
  e.metrics["achieved_gbs"] = double(*bytes) / seconds * 1e-9;
  if (gflops > 0) e.metrics["compute_percent"] = 100 * e.metrics["achieved_gflops"] / gflops;
  if (top.copy_gbs > 0) e.metrics["memory_percent"] = 100 * e.metrics["achieved_gbs"] / top.copy_gbs;
  e.metrics["roofline_percent"] = 100 * roofline / seconds;
  if (e.metrics["roofline_percent"] > 100)
    e.notes.push_back(fmt::format("faster than the roofline ({:.0f} %): a ceiling was measured too low, or the task's costs are too high",
                                  e.metrics["roofline_percent"]));
}

Result<Evidence> RealGate::examine(const KernelPackage& package) {
  FORGE_TRY_ASSIGN(const Built image, build(package));
  if (!image) {
    const auto& failure = image.error();
    return fail(Code::build_failed, failure.detail + (failure.log.empty() ? "" : "\n" + failure.log));
  }
  Evidence e{.subject = "candidate " + package_hash(package).substr(0, 12)};
  FORGE_TRY(add_image_metrics(e, *image));
  add_cost_metrics(e, m_parts.op, m_machine, 0);
  return e;
}

Status RealGate::add_image_metrics(Evidence& e, const Image& image) const {
  auto mix = m_parts.disassemble(image);
  if (!mix && mix.error().code != Code::unsupported) return tl::unexpected(mix.error());
  if (m_machine.target.family != "cuda") {
    if (!mix) return tl::unexpected(mix.error());
    add_mix_metrics(e, *mix);
    return {};
  }
  if (mix)
    add_sass_metrics(e, *mix);
  else
    e.notes.push_back("no instruction mix: " + mix.error().text());
  // For the shape alone: how many blocks of a launch fit the card changes its grid, and nothing that is told here.
  const std::int64_t sms = value_of(m_machine.properties, "sm_count") > 0 ? std::int64_t(value_of(m_machine.properties, "sm_count")) : 1;
  const auto plan = make_concrete(image.plan, m_parts.op.definition, timed_axes(m_parts.op), sms,
                                  [sms](const LaunchSpec&, std::int64_t) -> Result<std::int64_t> { return sms; });
  if (plan)
    add_resource_metrics(e, image, *plan, m_machine);
  else
    e.notes.push_back("no resources: " + plan.error().text());
  return {};
}

// What a card counts while it makes the reference's call; of a library its instruction mix too.
Status RealGate::add_card_counters(Evidence& e) {
  FORGE_TRY_ASSIGN(Stage * stage, timed_stage());
  FORGE_TRY_ASSIGN(const CallSpec call, call_on(*stage, m_reference->image_or_null(), m_machine.cores));
  if (!m_reference->runner)
    if (auto ready = make_ready(*m_reference, *stage, call); !ready)
      return fail(Code::crashed, "the reference could not be prepared for profiling: " + ready.error().detail);
  if (m_reference->runner->composed()) e.notes.push_back("composed of several primitives: " + m_info.description);
  auto lease = m_parts.lease(Lease::Kind::measure);
  if (!lease) return tl::unexpected(lease.error());
  // An expert's framework starts and tunes itself under the profiler, twice: of a short run that must not be all.
  add_counters(e, *m_reference->runner, call, !m_reference->image, std::clamp(m_task.budget.wall_seconds / 5, 10.0, 240.0));
  if (stop_requested()) return fail(Code::interrupted, "stopped while counting");  // no absence to put on record
  return {};
}

Result<Evidence> RealGate::analyse() {
  FORGE_TRY(ensure_open());
  Evidence e;
  if (!m_machine.ceilings.gflops) {
    auto lease = m_parts.lease(Lease::Kind::measure);
    if (!lease) return tl::unexpected(lease.error());
    if (auto c = m_parts.ceilings(); c)
      m_machine.ceilings = *c;
    else
      e.notes.push_back("ceilings: " + c.error().text());
  }
  if (!m_reference) {
    e.subject = "no reference";
    add_cost_metrics(e, m_parts.op, m_machine, 0);
    e.notes.push_back("the run has no reference: nothing to time or to disassemble");
    return e;
  }
  e.subject = m_info.id + " " + m_info.description;
  add_cost_metrics(e, m_parts.op, m_machine, m_info.seconds);
  if (m_reference->image) FORGE_TRY(add_image_metrics(e, *m_reference->image));
  if (m_machine.target.family == "cuda") {
    FORGE_TRY(add_card_counters(e));
    return e;
  }
  if (m_reference->image) return e;
  // A library's code is sampled while it runs on the timed workload: it may have been generated a moment ago.
  FORGE_TRY_ASSIGN(Stage * stage, timed_stage());
  FORGE_TRY(stage->refresh());
  if (auto ready = make_ready(*m_reference, *stage, stage->call_for_expert()); !ready)
    return fail(Code::crashed, "the reference could not be prepared for profiling: " + ready.error().detail);
  if (m_reference->runner->composed()) e.notes.push_back("composed of several primitives: " + m_info.description);
  auto lease = m_parts.lease(Lease::Kind::measure);
  if (!lease) return tl::unexpected(lease.error());
  auto profile = m_reference->runner->profile(0.5);
  if (!profile) {
    e.notes.push_back("no profile of the reference: " + profile.error().detail);
    return e;
  }
  for (const auto& sample : profile->where) e.hot_symbols.emplace_back(sample.mapping, sample.share);
  if (!profile->note.empty()) e.notes.push_back(profile->note);
  if (profile->hot_code.empty())
    e.notes.push_back("no code was sampled: the instruction mix is missing");
  else
    add_mix_metrics(e, disassemble_code(profile->hot_code, m_info.id, profile->hot_places));
  return e;
}

}  // namespace forge
