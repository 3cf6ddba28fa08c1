// SPDX-License-Identifier: Apache-2.0
// forge compare: whole runs against an arm of themselves (without revision, without knowledge), seed by seed, equal budgets; the two
// kernels that come out are then timed against each other in one job, so that no figure is compared across jobs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/outcome.h"
#include "cli/table.h"
#include "gate/gate.h"
#include "util/progress.h"

namespace forge {

namespace {

struct Flags {
  std::string op, arm = "no-revise", out_file;
  int seeds = 5, first = 1;
  double seconds = 60;
};

double final_speedup(const RunResult& r) {
  const PairedTiming* t = r.confirmation ? find_pairing(*r.confirmation, "reference") : nullptr;
  return t ? t->speedup.mid : 0;
}

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

int compare_arms(Context& c, const Flags& f) {
  auto store = c.store();
  if (!store) return c.fail(store.error());
  const auto machine = c.machine("");
  if (!machine) return c.fail(machine.error());
  Json document;
  document["operator"] = f.op, document["arm"] = f.arm, document["date"] = utc_now(), document["machine"] = to_json_value(*machine),
  document["wall_seconds"] = f.seconds;
  std::vector<std::vector<std::string>> rows;
  int better = 0;
  for (int seed = f.first; seed < f.first + f.seeds; ++seed) {
    Task task;
    task.operator_name = f.op, task.target = machine->target.name, task.reference = "expert", task.seed = static_cast<std::uint64_t>(seed);
    task.budget.wall_seconds = f.seconds;
    Task arm = task;
    arm.revise = f.arm != "no-revise";
    arm.knowledge = f.arm != "no-knowledge";
    std::optional<RunResult> runs[2];
    for (int i = 0; i < 2; ++i) {
      c.say(fmt::format("seed {}: {}", seed, i == 0 ? f.arm : "full"));
      auto r = start_run(c.paths, *store, i == 0 ? arm : task, [&c](const std::string& line) { c.say("  " + line); });
      if (!r) return c.fail(r.error());
      if (r->stop == Stop::user) return kInterrupted;
      runs[i] = std::move(*r);
    }
    std::string verdict = "no kernel", ratio = "-";
    Json row = {{"seed", seed},
                {"arm_run", runs[0]->run_id},
                {"full_run", runs[1]->run_id},
                {"arm_speedup", final_speedup(*runs[0])},
                {"full_speedup", final_speedup(*runs[1])},
                {"revisions", runs[1]->plans.size() - 1}};
    if (runs[0]->generation && runs[1]->generation) {
      if (runs[0]->generation->id == runs[1]->generation->id) {
        verdict = "same kernel";
      } else {
        const auto t = duel(c, *machine, f.op, *runs[0]->generation, *runs[1]->generation);
        if (!t) return c.fail(t.error());
        verdict = name(t->comparison), ratio = format_interval(t->speedup);
        row["full_against_arm"] = to_json_value(*t);
        better += t->comparison == Comparison::faster;
      }
    } else if (runs[1]->generation) {
      verdict = "only the full run made one";
      ++better;
    }
    row["verdict"] = verdict;
    document["seeds"].push_back(row);
    rows.push_back({std::to_string(seed), fmt::format("{:.3f}", final_speedup(*runs[0])), fmt::format("{:.3f}", final_speedup(*runs[1])),
                    ratio, verdict});
  }
  document["better"] = better;
  c.out("\n" +
        format_table({"seed", f.arm + " against the expert", "full against the expert", "full against " + f.arm + " [95 %]", "verdict"},
                     rows));
  c.out(fmt::format("{}: the full run ends better on {} of {} seeds", f.op, better, f.seeds));
  if (!f.out_file.empty())
    if (const auto written = write_file_atomic(f.out_file, dump(document, 1) + "\n"); !written) return c.fail(written.error());
  c.finish(dump(document));
  return better * 5 >= f.seeds * 4 ? kOk : kNegative;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto f = std::make_shared<Flags>();
  CLI::App* sub =
      app.add_subcommand("compare", "whole runs against an arm of themselves, seed by seed, the kernels timed against each other");
  sub->add_option("operator", f->op, "an operator")->required();
  sub->add_option("--arm", f->arm, "no-revise (first plan only) or no-knowledge")
      ->check(CLI::IsMember({"no-revise", "no-knowledge"}))
      ->capture_default_str();
  sub->add_option("--seeds", f->seeds, "how many")->check(CLI::Range(1, 1000))->capture_default_str();
  sub->add_option("--first-seed", f->first, "where to begin: a comparison may be taken in parts")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  sub->add_option("--seconds", f->seconds, "wall budget of each run")->check(CLI::PositiveNumber)->capture_default_str();
  sub->add_option("-o,--output", f->out_file, "write the results as JSON too");
  sub->footer(
      "Example:\n  forge compare softmax_f32 --arm no-revise --seeds 5\nExit: 0 the full run ends better on at least 4 of 5 seeds, 1 not.");
  sub->callback([f, &action] { action = [f](Context& c) { return compare_arms(c, *f); }; });
}

}  // namespace forge
