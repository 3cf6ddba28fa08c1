// SPDX-License-Identifier: Apache-2.0
// The main flow. run() is the table of contents; each pass is a function of its own. Whatever asks the outside world does so
// through the desk, which journals it, so that a resumed run goes through the very same code and only stops being a replay
// where the record ends.
#include <fmt/format.h>

#include <algorithm>

#include "evolve/flow.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {

namespace {

Result<RunResult> passes(Flow& flow) {
  FORGE_TRY(flow.desk.start(flow.task));  // what, on which machine, against whom
  FORGE_TRY(survey(flow));                // the sealed reference: time, noise floor, evidence; what is known of such cases
  FORGE_TRY_ASSIGN(std::optional<Plan> plan, first_plan(flow));
  while (plan) {
    FORGE_TRY(implement(flow, *plan));          // milestones in dependency order, every hand-in through the gate
    if (const auto stop = stop_reason(flow)) {  // goal met, budget spent
      flow.result.stop = *stop;
      break;
    }
    flow.result.stop = flow.branches.back().outcome.stop;
    if (!flow.task.revise) break;          // the first plan only: its own reason stands
    FORGE_TRY_ASSIGN(plan, revise(flow));  // exhausted, plateau or blocked; none when there is nothing left to decide
    if (!plan && !flow.architect_failed) flow.result.stop = flow.lab.may_go_on() ? Stop::exhausted : Stop::budget;
  }
  FORGE_TRY(finish(flow));  // confirm the best of all branches afresh, harvest, seal, promote
  return flow.result;
}

}  // namespace

Result<RunResult> run(const Task& task, const RunParts& parts) {
  Flow flow(task, parts);
  flow.result.run_id = parts.run_id;
  Result<RunResult> done = passes(flow);
  if (done || done.error().code != Code::interrupted) return done;
  // Nothing is journalled: the record ends with the last finished step, and a resume goes on from there. The command says how.
  flow.result.stop = Stop::user;
  flow.result.spent = spent(flow);
  for (const auto& branch : flow.branches) flow.result.branches.push_back(branch.outcome);
  return flow.result;
}

Evidence shown(const Task& task, Evidence evidence) {
  if (task.disassembly) return evidence;
  // What is left was timed, or follows from the operator and the machine; every other metric and note is read off the code.
  constexpr std::string_view kTimed[] = {"seconds",        "speedup",          "flops",        "compulsory_bytes", "compute_percent",
                                         "memory_percent", "roofline_percent", "achieved_gbs", "achieved_gflops",  "roofline_seconds"};
  const auto timed = [&](std::string_view key) {
    return key.starts_with("ceiling_") || key.starts_with("working_set") ||
           std::find(std::begin(kTimed), std::end(kTimed), key) != std::end(kTimed);
  };
  std::erase_if(evidence.metrics, [&](const auto& metric) { return !timed(metric.first); });
  evidence.mix = {};
  evidence.hot_symbols.clear();
  evidence.notes = {"the disassembly is withheld in this run"};
  return evidence;
}

Status survey(Flow& flow) {
  const RunParts& parts = flow.parts;
  PlanRequest& request = flow.request;
  request.task = flow.task;
  request.definition = parts.op->definition;
  request.task_file = flow.public_task_file;
  request.machine = *parts.machine;
  request.earlier_decisions = parts.heritage.decisions;
  request.avoided = parts.heritage.avoided;
  request.lab = &flow.lab;
  FORGE_TRY_ASSIGN(request.reference, flow.desk.open());
  if (request.reference.present)
    flow.desk.say(fmt::format("reference {} ({}): {}", request.reference.id, request.reference.description,
                              format_seconds(request.reference.seconds)));
  else
    flow.desk.say("no reference: candidates are compared with each other");
  FORGE_TRY_ASSIGN(request.floor, flow.desk.measure_floor());
  if (request.reference.present) flow.desk.say(fmt::format("noise floor {:.2f} %", request.floor.ratio * 100));
  FORGE_TRY_ASSIGN(const Evidence evidence, flow.desk.analyse());
  request.evidence = shown(flow.task, evidence);
  if (remembers(flow.task)) {
    const Names names = knowledge_names(request.definition, request.task_file, request.machine, request.evidence);
    FORGE_TRY_ASSIGN(request.knowledge, flow.desk.retrieve(names));
    flow.desk.say(fmt::format("{} entries of the knowledge base apply here", request.knowledge.size()));
  }
  flow.result.reference = request.reference;
  flow.result.floor = request.floor;
  return {};
}

namespace {

// A plan is a decision: the same evidence must give the same plan, on a replay too.
Status adopt(Flow& flow, const Plan& plan) {
  FORGE_TRY(check_plan(plan));
  FORGE_TRY(flow.desk.decide("plan", to_json_value(plan)));
  std::string ids;
  for (const auto& m : plan.milestones) ids += (ids.empty() ? "" : " ") + m.id;
  flow.desk.say(fmt::format("plan r{} ({}): {}", plan.revision, ids, plan.reason));
  flow.result.plans.push_back(plan);
  return {};
}

// What the architect answered. An agent that failed ends its run with what the run has; what the world did stops it, to be resumed.
Result<std::optional<Plan>> take(Flow& flow, Result<std::optional<Plan>> plan) {
  if (stop_requested()) return fail(Code::interrupted, "stopped");  // the lab was cut short: that is no decision
  if (!plan && plan.error().code == Code::crashed) {
    FORGE_TRY(flow.desk.decide("plan.none", Json{{"why", plan.error().message}}));
    flow.desk.say("no plan: " + plan.error().message);
    flow.architect_failed = true;
    flow.result.stop = Stop::blocked;
    return std::optional<Plan>();
  }
  if (plan && *plan) FORGE_TRY(adopt(flow, **plan));
  return plan;
}

}  // namespace

Result<std::optional<Plan>> first_plan(Flow& flow) {
  return take(flow, flow.parts.architect->plan(flow.request).map([](Plan plan) { return std::optional<Plan>(std::move(plan)); }));
}

std::optional<Stop> stop_reason(const Flow& flow) {
  if (goal_met(flow)) return Stop::goal;
  if (budget_spent(flow)) return Stop::budget;
  if (flow.parts.coder->finished()) return Stop::enough;
  return std::nullopt;
}

Result<std::optional<Plan>> revise(Flow& flow) {
  ReviseRequest request;
  request.first = flow.request;
  request.plans = flow.result.plans;
  for (const auto& branch : flow.branches) request.branches.push_back(branch.outcome);
  request.failures = flow.result.failures;
  request.best_branch = flow.best_branch;
  if (flow.best) {
    request.global_best_speedup = flow.best->score;
    request.best_decisions = flow.best->decisions;
    // What the reference's evidence says of the machine, scaled to the best kernel; the mix is of its own image, as the gate saw it.
    Evidence evidence{.subject = "candidate " + flow.best->sha.substr(0, 12),
                      .metrics = {},
                      .mix = flow.best->verdict.mix,
                      .notes = {},
                      .hot_symbols = {}};
    evidence.metrics["speedup"] = flow.best->score;
    if (const auto& m = flow.best->verdict.measurement()) evidence.metrics["seconds"] = m->seconds;
    evidence.metrics["spills"] = evidence.mix.spills;
    evidence.metrics["vector_bits"] = evidence.mix.widest_vector_bits;
    if (flow.request.reference.present)
      for (const char* key : {"memory_percent", "compute_percent", "achieved_gflops", "achieved_gbs"})
        if (const auto at = flow.request.evidence.metrics.find(key); at != flow.request.evidence.metrics.end())
          evidence.metrics[key] = at->second * flow.best->score;
    request.best_evidence = shown(flow.task, evidence);
  }
  return take(flow, flow.parts.architect->revise(request));
}

}  // namespace forge
