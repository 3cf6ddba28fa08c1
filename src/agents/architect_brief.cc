// SPDX-License-Identifier: Apache-2.0
#include "agents/architect_brief.h"

#include <fmt/format.h>

#include "core/json_io.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr std::size_t k_listing = 2500;  // characters of one hot loop

std::string describe(const TensorSpec& t) {
  return fmt::format("{} {}{}", t.name, name(t.dtype), t.scalar ? " (scalar)" : fmt::format(" [{}]", fmt::join(t.shape, ", ")));
}

std::string describe(const Workload& w) {
  std::string axes;
  for (const auto& [axis, value] : w.axes) axes += fmt::format("{}{}={}", axes.empty() ? "" : " ", axis, value);
  return axes;
}

void add_operator(std::string& out, const PlanRequest& request) {
  const Definition& d = request.definition;
  out += fmt::format("# Operator {}\n{}\nAxes:", d.name, d.description);
  for (const Axis& a : d.axes) out += a.constant ? fmt::format(" {}={}", a.name, a.value) : fmt::format(" {} (variable)", a.name);
  for (const TensorSpec& t : d.inputs) out += "\n- input " + describe(t);
  for (const TensorSpec& t : d.outputs) out += "\n- output " + describe(t);
  out += fmt::format("\nTimed at: {}\n", describe(timed_workload(request.task_file, request.machine.target.family)));
  for (const JudgeRule& j : request.task_file.judges)
    out += fmt::format("Judge of {}: {}, tolerance {:.3g}, relative {:.3g}, absolute {:.3g}\n", j.output, name(j.kind), j.tolerance,
                       j.relative, j.absolute);
  out += fmt::format("Work: {} flop; traffic that nothing avoids: {} bytes\n", request.task_file.flops.text, request.task_file.bytes.text);
}

void add_evidence(std::string& out, const std::string& title, const Evidence& e) {
  out += fmt::format("\n# {}\n", title);
  for (const auto& [key, value] : e.metrics) out += fmt::format("- {}: {:.6g}\n", key, value);
  for (const auto& note : e.notes) out += "- " + note + "\n";
  if (!e.mix.hot.empty()) {
    out += "- instructions of the hot loops:";
    for (const auto& [mnemonic, count] : e.mix.hot) out += fmt::format(" {} {}", mnemonic, count);
    out += "\n";
  }
  for (std::size_t i = 0; i < e.mix.loops.size() && i < 2; ++i)
    out += fmt::format("```\n{}\n```\n", utf8_head(e.mix.loops[i].listing, k_listing));
}

void add_knowledge(std::string& out, const std::vector<Retrieved>& known) {
  out += "\n# Knowledge that applies here\n";
  if (known.empty()) out += "Nothing is certified for this case.\n";
  for (const Retrieved& r : known) {
    const std::string& mechanism = r.entry.mechanism;
    out += fmt::format("- {} ({}{}): {}\n", r.entry.id, name(r.state), r.effect != 1 ? fmt::format(", {:.2f}x in its probe", r.effect) : "",
                       utf8_head(mechanism, 400));
    for (const Advice& a : r.advice) out += fmt::format("  - advises {} = {}: {}\n", a.decision, a.value, a.because);
    for (const auto& limit : r.entry.limitations) out += fmt::format("  - limit: {}\n", limit);
  }
}

void add_vocabulary(std::string& out, const Blueprint& blueprint) {
  out +=
      "\n# Decisions that the coder can carry out\nIt renders a template: use these names and values, and no others. In brackets: the "
      "plain choice.\n";
  for (const BlueprintDecision& d : blueprint.decisions) {
    out += fmt::format("- {} ({}, milestone {}, relieves {}) [{}]:\n", d.name, d.structural ? "structural" : "local", d.milestone,
                       d.limiter, d.default_value);
    for (const BlueprintOption& o : d.options) out += fmt::format("  - {}: {}\n", o.value, o.text);
  }
  for (const BlueprintConstraint& c : blueprint.constraints) out += fmt::format("- must hold: {} ({})\n", c.must.text, c.message);
}

}  // namespace

std::string architect_brief(const PlanRequest& request, const Blueprint* vocabulary) {
  std::string out;
  add_operator(out, request);
  const Machine& m = request.machine;
  out += fmt::format("\n# Machine\n{} ({}), {} cores\nCeilings: {:.0f} GFLOP/s, read {:.0f} GB/s, copy {:.0f} GB/s\n", m.model,
                     m.target.name, m.cores, m.ceilings.gflops, m.ceilings.read_gbs, m.ceilings.copy_gbs);
  for (const auto& [key, value] : m.properties) out += fmt::format("- {}: {}\n", key, value);
  out += request.reference.present ? fmt::format("\nReference {}: {:.4g} s. Noise floor {:.2f} %.\n", request.reference.description,
                                                 request.reference.seconds, request.floor.ratio * 100)
                                   : std::string("\nThere is no reference: the first correct kernel is the one to beat.\n");
  add_evidence(out, "Evidence about the reference", request.evidence);
  add_knowledge(out, request.knowledge);
  if (vocabulary) add_vocabulary(out, *vocabulary);
  for (const FailureCondition& f : request.avoided)
    out += fmt::format("\nFailed in an earlier generation: {} = {}: {}", f.decision, f.value, f.because);
  const Budget& b = request.task.budget;
  out += fmt::format("\nBudget: {} hand-ins, {:.0f} s of the gate.{}\n", b.candidates, b.gate_seconds,
                     request.task.goal > 0 ? fmt::format(" Goal: {:.2f}x.", request.task.goal) : "");
  return out;
}

std::string trajectory_brief(const ReviseRequest& request) {
  std::string out = "# What happened so far\n";
  for (std::size_t i = 0; i < request.branches.size() && i < request.plans.size(); ++i) {
    const BranchOutcome& b = request.branches[i];
    out += fmt::format("\n## Plan r{}: ended {}, best {:.3f}x{}\n{}\n", b.revision, name(b.stop), b.best_speedup,
                       b.reverted ? ", reverted" : "", request.plans[i].reason);
    for (const HandIn& h : b.hand_ins)
      out += fmt::format("- {}: {}{} {}\n", h.milestone, name(h.reason), h.speedup > 0 ? fmt::format(" {:.3f}x", h.speedup) : "",
                         utf8_head(h.detail, 300));
    for (const MilestoneOutcome& m : b.milestones) out += fmt::format("- {} {} {}\n", m.id, name(m.end), utf8_head(m.why, 300));
  }
  if (!request.plans.empty()) out += "\n# The last plan\n```json\n" + plan_to_json(request.plans.back()) + "\n```\n";
  out += fmt::format("\n# The best kernel: {:.3f}x of the reference\n", request.global_best_speedup);
  for (const auto& [decision, value] : request.best_decisions) out += fmt::format("- {} = {}\n", decision, value);
  if (request.best_evidence) add_evidence(out, "Evidence about the best kernel", *request.best_evidence);
  for (const FailureCondition& f : request.failures) out += fmt::format("Failed: {} = {}: {}\n", f.decision, f.value, f.because);
  return out;
}

}  // namespace forge
