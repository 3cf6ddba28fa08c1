// SPDX-License-Identifier: Apache-2.0
// forge compare: whole runs against arms of themselves (an ablation, other agents), seed by seed, under equal budgets; the two kernels
// that come out are then timed against each other in one job, so that no figure is compared across jobs.
#include "cli/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "agents/seats.h"
#include "cli/command.h"
#include "cli/outcome.h"
#include "cli/table.h"
#include "cli/task_flags.h"
#include "gate/gate.h"
#include "util/progress.h"

namespace forge {

namespace {

struct CompareFlags {
  std::vector<std::string> ops, arms = {"no-revise"};
  std::string out_file;
  int seeds = 5, first = 1, candidates = 0;
  double seconds = 60, gate_seconds = 0;
  std::int64_t tokens = 0;
  double dollars = 0;
};

// The full run's kernel against the arm's, directly: the figure hangs on this one job, so it may take its time to tell 1 %.
constexpr double kDuelSeconds = 12, kDuelEffect = 0.01;
Result<PairedTiming> duel(const Context& c, const Machine& machine, const std::string& op, const Generation& arm, const Generation& full) {
  Task task;
  task.operator_name = op, task.target = machine.target.name, task.reference = "gen:" + arm.id;
  FORGE_TRY_ASSIGN(const std::unique_ptr<Gate> gate,
                   make_gate(c.paths, task, machine, {.timing_seconds = kDuelSeconds, .max_pairs = 300, .wanted_effect = kDuelEffect}));
  FORGE_TRY(gate->open());
  FORGE_TRY(gate->measure_floor());
  FORGE_TRY_ASSIGN(const Verdict v, gate->confirm(full.package, {}));
  if (const PairedTiming* t = find_pairing(v, "reference")) return *t;
  return fail(Code::crashed, fmt::format("the kernels could not be timed against each other: {}", v.detail()));
}

Task task_of(const CompareFlags& f, const Machine& machine, const std::string& op, int seed) {
  Task task;
  task.operator_name = op, task.target = machine.target.name, task.reference = "expert", task.seed = static_cast<std::uint64_t>(seed);
  task.budget.wall_seconds = f.seconds;
  if (f.candidates > 0) task.budget.candidates = f.candidates;
  if (f.gate_seconds > 0) task.budget.gate_seconds = f.gate_seconds;
  task.budget.tokens = f.tokens, task.budget.dollars = f.dollars;
  return task;
}

// How the full run's kernel does against the arm's.
Status settle(const Context& c, const Machine& machine, ArmRun& arm, const RunResult& full) {
  if (!full.generation || !arm.run.generation) {
    arm.duel = full.generation ? "only the full run made one" : arm.run.generation ? "only the arm made one" : "no kernel";
    return {};
  }
  if (full.generation->id == arm.run.generation->id) {
    arm.duel = "same kernel";
    return {};
  }
  FORGE_TRY_ASSIGN(arm.full_against, duel(c, machine, arm.op, *arm.run.generation, *full.generation));
  arm.duel = fmt::format("{} {}", name(arm.full_against->comparison), format_interval(arm.full_against->speedup));
  return {};
}

Json row_of(const ArmRun& r) {
  Json row = run_to_json(r.run);
  row["operator"] = r.op, row["arm"] = r.arm, row["seed"] = r.seed;
  if (r.full_against) row["full_against_arm"] = to_json_value(*r.full_against);
  if (!r.duel.empty()) row["duel"] = r.duel;
  return row;
}

// "full" first, then each arm once.
Result<std::vector<Arm>> read_arms(const CompareFlags& f) {
  std::vector<Arm> arms(1, Arm{.name = "full", .parts = {}});
  for (const std::string& text : f.arms) {
    FORGE_TRY_ASSIGN(Arm arm, parse_arm(text));
    if (std::any_of(arms.begin(), arms.end(), [&](const Arm& a) { return a.name == arm.name; }))
      return fail(Error{.code = Code::bad_input,
                        .message = arm.name == "full" ? "the full run always takes part" : fmt::format("'{}' is named twice", arm.name),
                        .file = {},
                        .line = 0,
                        .field = "arm",
                        .fix = "name each arm once"});
    arms.push_back(std::move(arm));
  }
  return arms;
}

// Every run in turn. What was measured before an error stays in `runs` and in `document`, which is written to the output file run by run.
Status run_arms(Context& c, const CompareFlags& f, Store& store, const Machine& machine, const std::vector<Arm>& arms,
                std::vector<ArmRun>& runs, Json& document) {
  for (const std::string& op : f.ops)
    for (int seed = f.first; seed < f.first + f.seeds; ++seed) {
      const std::size_t full = runs.size();
      for (const Arm& arm : arms) {
        c.say(fmt::format("{}, seed {}: {}", op, seed, arm.name));
        FORGE_TRY_ASSIGN(RunResult r, start_run(c.paths, store, arm.apply(task_of(f, machine, op, seed)),
                                                [&c](const std::string& line) { c.say("  " + line); }));
        if (r.stop == Stop::user)
          return fail(Code::interrupted, "stopped before every arm had run", "that run alone goes on with: forge run --resume " + r.run_id);
        runs.push_back({.op = op, .arm = arm.name, .seed = seed, .run = std::move(r), .full_against = {}, .duel = {}});
        const Status settled = runs.size() - 1 > full ? settle(c, machine, runs.back(), runs[full].run) : Status();
        if (!runs.back().duel.empty()) c.say(fmt::format("  full against {}: {}", arm.name, runs.back().duel));
        document["runs"].push_back(row_of(runs.back()));
        if (!f.out_file.empty()) FORGE_TRY(write_file_atomic(f.out_file, dump(document, 1) + "\n"));
        FORGE_TRY(settled);
      }
    }
  return {};
}

int compare_arms(Context& c, const CompareFlags& f) {
  auto store = c.store();
  if (!store) return c.fail(store.error());
  const auto machine = c.machine("");
  if (!machine) return c.fail(machine.error());
  const auto arms = read_arms(f);
  if (!arms) return c.fail(arms.error());
  // What can be known is said before the first run is paid for.
  for (const std::string& op : f.ops)
    for (const Arm& arm : *arms)
      if (const Status can = check_seats(c.paths, arm.apply(task_of(f, *machine, op, f.first)), *machine); !can) return c.fail(can.error());
  Json document;
  document["operators"] = f.ops, document["date"] = utc_now(), document["machine"] = to_json_value(*machine),
  document["budget"] = to_json_value(task_of(f, *machine, "", 1).budget);
  document["runs"] = Json::array();
  if (!f.out_file.empty())  // whether it can be written is better known now
    if (const auto written = write_file_atomic(f.out_file, dump(document, 1) + "\n"); !written) return c.fail(written.error());
  std::vector<ArmRun> runs;
  const Status all = run_arms(c, f, *store, *machine, *arms, runs, document);
  if (!all && runs.empty()) return c.fail(all.error());
  if (!all) document["ended"] = all.error().text();
  c.out("\n" + compare_table(runs));
  c.finish(dump(document));
  if (!all) return c.fail(all.error());
  int better = 0, pairs = 0;
  for (const ArmRun& r : runs) {
    pairs += r.arm != "full";
    better += (r.full_against && r.full_against->comparison == Comparison::faster) || r.duel == "only the full run made one";
  }
  return better * 5 >= pairs * 4 ? kOk : kNegative;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto f = std::make_shared<CompareFlags>();
  CLI::App* sub =
      app.add_subcommand("compare", "whole runs against arms of themselves, seed by seed, the kernels timed against each other");
  sub->add_option("operators", f->ops, "operators")->required();
  sub->add_option("--arm", f->arms,
                  "beside the full run: no-revise, no-knowledge, no-plan (goal mode), no-disassembly, no-template, coder=AGENT, "
                  "architect=AGENT, or several with '+' between; repeatable")
      ->capture_default_str();
  sub->add_option("--seeds", f->seeds, "how many")->check(CLI::Range(1, 1000))->capture_default_str();
  sub->add_option("--first-seed", f->first, "where to begin: a comparison may be taken in parts")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  sub->add_option("--seconds", f->seconds, "wall budget of each run")->check(positive)->capture_default_str();
  sub->add_option("--candidates", f->candidates, "hand-ins of each run")->check(CLI::PositiveNumber);
  sub->add_option("--gate-seconds", f->gate_seconds, "the gate's time of each run")->check(positive);
  sub->add_option("--tokens", f->tokens, "of each run, for agents that are models")->check(CLI::Range(std::int64_t{1}, kMostTokens));
  sub->add_option("--dollars", f->dollars, "likewise")->check(positive);
  sub->add_option("-o,--output", f->out_file, "write the results as JSON too, run by run");
  sub->footer(
      "Examples:\n  forge compare softmax_f32 --arm no-revise --seeds 5\n  forge compare gemm_f32 softmax_f32 --arm no-knowledge --arm "
      "no-plan --seeds 3 --candidates 12\n  forge compare softmax_f32 --arm coder=openai:my-model@http://localhost:8000/v1 --tokens "
      "300000\nExit: 0 the full runs end better in at least 4 of 5 pairs, 1 not.");
  sub->callback([f, &action] { action = [f](Context& c) { return compare_arms(c, *f); }; });
}

}  // namespace forge
