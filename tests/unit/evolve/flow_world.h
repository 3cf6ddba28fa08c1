// SPDX-License-Identifier: Apache-2.0
// A small world for tests of the flow: a fake gate whose times come from the package's source, scripted or built-in agents.
#pragma once
#include <map>
#include <string>

#include "agents/scripted.h"
#include "evolve/evolve.h"
#include "gate/fake_gate.h"

namespace forge {

inline Decision decision(const std::string& id, const std::string& name, const std::string& choice, bool structural = true) {
  Decision d;
  d.id = id;
  d.name = name;
  d.choice = choice;
  d.structural = structural;
  d.evidence = {{false, "a guess"}};
  return d;
}

inline Milestone milestone(int n, std::vector<Decision> decisions, std::optional<PerformanceCondition> performance = {}) {
  Milestone m;
  m.id = "M" + std::to_string(n);
  m.title = "step " + std::to_string(n);
  m.decisions = std::move(decisions);
  if (n > 0) m.prerequisites = {"M" + std::to_string(n - 1)};
  m.acceptance.performance = performance;
  return m;
}

inline Plan plan_of(std::vector<Milestone> milestones, int revision = 0, int restart_at = 0) {
  Plan p;
  p.operator_name = "toy";
  p.target = "cpu:x86-64-avx2";
  p.revision = revision;
  p.restart_at = restart_at;
  p.reason = "a test";
  p.milestones = std::move(milestones);
  return p;
}

// Everything that run() needs, on fakes. Times in ms by source; unknown sources take 1 ms, as the reference does.
struct World {
  FakeGate gate;
  std::map<std::string, double> ms;
  std::map<std::string, Reason> refused;
  OperatorFolder op;
  Machine machine;
  KnowledgeBase knowledge;
  Task task;
  std::vector<std::string> said;

  World() {
    gate.seconds = [this](const KernelPackage& p) { return (ms.count(p.source) ? ms.at(p.source) : 1.0) * 1e-3; };
    gate.reason = [this](const KernelPackage& p) { return refused.count(p.source) ? refused.at(p.source) : Reason::accepted; };
    op.definition.name = op.task.operator_name = task.operator_name = "toy";
    op.definition.axes = {{.name = "M", .constant = false, .value = 0}};
    op.task.timed.axes = {{"M", 64}};
    op.task.flops = *parse_expr("M");
    op.task.bytes = *parse_expr("M");
    task.target = machine.target.name = "cpu:x86-64-avx2";
    machine.target.family = "cpu";
    machine.device_class = "cpu:test";
    machine.properties = {{"vector_bits", 256}, {"cores", 2}, {"l2_bytes", 1 << 20}, {"l3_bytes", 1 << 24}};
    task.reference = "expert";
    task.budget.gate_seconds = task.budget.wall_seconds = 1e6;
  }

  const Meter* meter = nullptr;
  fs::path home;  // of the vault; empty: none
  Result<RunResult> go(ArchitectureAgent& architect, CodingAgent& coder, Journal& journal, Heritage heritage = {}) {
    RunParts parts;
    parts.gate = &gate;
    parts.architect = &architect;
    parts.coder = &coder;
    parts.knowledge = &knowledge;
    parts.journal = &journal;
    parts.op = &op;
    parts.machine = &machine;
    parts.run_id = "test-run";
    parts.meter = meter;
    parts.home = home;
    parts.heritage = std::move(heritage);
    parts.say = [this](const std::string& line) { said.push_back(line); };
    return run(task, parts);
  }
  int asked() const {
    int n = 0;
    for (const auto& [method, count] : gate.calls) n += count;
    return n;
  }
};

}  // namespace forge
