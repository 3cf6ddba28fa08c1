// SPDX-License-Identifier: Apache-2.0
// forge suite: a list of tasks, one after the other, with a table at the end.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>

#include "cli/command.h"
#include "cli/outcome.h"
#include "cli/table.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {

namespace {

struct SuiteFlags {
  std::string suite = "cpu", out_file, target;
  bool quick = false;
  std::int64_t seed = 1;
  double seconds = 0;
  bool no_revise = false, no_knowledge = false;
};

constexpr double kBusyFloor = 0.03;  // a quiet machine's is near 0.01

std::vector<std::string> operators_of(const Context& c, const std::string& suite) {
  if (suite == "cpu") return operator_names(c.paths, "cpu");
  return {"gemm_f16",
          "conv2d_fwd_f16",
          "topk_f32",
          "rmsnorm_bf16_h2048",
          "rmsnorm_bf16_h4096",
          "rmsnorm_bf16_h7168",
          "fused_add_rmsnorm_bf16_h2048",
          "fused_add_rmsnorm_bf16",
          "fused_add_rmsnorm_bf16_h7168"};
}

int run_suite(Context& c, const SuiteFlags& f) {
  const std::vector<std::string> ops = operators_of(c, f.suite);
  auto store = c.store();
  if (!store) return c.fail(store.error());
  const std::string usual = f.suite == "hopper" ? "cuda:sm_90a" : "";
  const auto machine = c.machine(f.target.empty() ? usual : f.target);
  if (!machine) return c.fail(machine.error());
  const auto config = read_config(c.paths.home);
  if (!config) return c.fail(config.error());
  const double start = monotonic_seconds();
  const Ceilings& ceilings = machine->ceilings;
  c.out(fmt::format("{} on {} ({} cores): ceilings {:.0f} GFLOP/s{}, {:.1f} GB/s copy", machine->target.name, machine->model,
                    machine->cores, ceilings.gflops,
                    ceilings.matrix_gflops > 0 ? fmt::format(" ({:.0f} in matrix units)", ceilings.matrix_gflops) : "", ceilings.copy_gbs));

  Json document;
  document["suite"] = f.suite, document["date"] = utc_now(), document["machine"] = to_json_value(*machine);
  document["runs"] = Json::array();
  const auto keep = [&]() -> Status {
    if (f.out_file.empty()) return {};
    return write_file_atomic(f.out_file, dump(document, 1) + "\n");
  };
  if (const auto written = keep(); !written) return c.fail(written.error());  // whether it can be written is better known now
  std::vector<std::vector<std::string>> rows;
  double log_sum = 0, worst = 0;
  int measured = 0;
  double widest_floor = 0;
  std::string stopped;
  std::vector<std::string> reports;
  for (const std::string& op : ops) {
    Task task;
    task.operator_name = op, task.target = machine->target.name, task.reference = "expert";
    task.budget = config->budget, task.seed = static_cast<std::uint64_t>(f.seed);
    task.revise = !f.no_revise, task.knowledge = !f.no_knowledge;
    // The quickstart's promise: at most 4 minutes of forging in all, confirmations included.
    if (f.quick) task.budget.wall_seconds = 186.0 / static_cast<double>(ops.size());
    if (f.seconds > 0) task.budget.wall_seconds = f.seconds;
    c.out(fmt::format("\n{} ({} of {})", op, &op - ops.data() + 1, ops.size()));
    const auto result = start_run(c.paths, *store, task, [&c](const std::string& line) { c.say("  " + line); });
    if (!result && result.error().code == Code::interrupted) {
      stopped = result.error().text();
      document["ended"] = "stopped by the user at " + op;
      break;
    }
    if (!result) {  // the others are measured all the same; the mean counts this one as 0
      c.out(fmt::format("{}: {}", op, result.error().text()));
      document["failed"][op] = result.error().text();
      continue;
    }
    rows.push_back(outcome_row(*result));
    widest_floor = std::max(widest_floor, floor_of(*result));
    Json row = run_to_json(*result);
    row["operator"] = op;
    document["runs"].push_back(row);
    if (result->stop == Stop::user) {
      stopped = "stopped; go on with: forge run --resume " + result->run_id;
      document["ended"] = "stopped by the user at " + op;
      break;
    }
    const PairedTiming* t = result->confirmation ? find_pairing(*result->confirmation, "reference") : nullptr;
    if (t) {
      log_sum += std::log(t->speedup.mid);
      worst = measured == 0 ? t->speedup.mid : std::min(worst, t->speedup.mid);
      ++measured;
    }
    if (const auto report = write_report(*store, result->run_id, ""))
      reports.push_back(*report);
    else
      c.out("no report: " + report.error().text());
    document["seconds"] = monotonic_seconds() - start;
    if (const auto written = keep(); !written) return c.fail(written.error());  // what ends this program next loses no row
  }
  // A kernel that could not be measured counts as 0: it may not vanish from the mean.
  const bool whole = measured == static_cast<int>(ops.size());
  const double geomean = whole && measured > 0 ? std::exp(log_sum / measured) : 0;
  document["geomean"] = geomean, document["worst"] = whole ? worst : 0, document["seconds"] = monotonic_seconds() - start;
  c.out("\n" + format_table(outcome_head(), rows));
  if (document.contains("failed"))
    for (const auto& [op, why] : document["failed"].items()) c.out(fmt::format("not measured: {}", op));
  if (stopped.empty())
    c.out(fmt::format("geometric mean against the better expert: {:.3f}, worst {:.3f}; {} in all", geomean, whole ? worst : 0,
                      format_seconds(monotonic_seconds() - start)));
  if (widest_floor > kBusyFloor)
    c.out(fmt::format(
        "this machine is busy: a noise floor of {:.1f} % was measured, and intervals are about as wide. Repeat it on a quiet one "
        "before the figures are used",
        100 * widest_floor));
  for (const std::string& report : reports) c.out("report: " + report);
  document["widest_floor"] = widest_floor;
  const Status written = keep();
  c.finish(dump(document));
  if (!written) return c.fail(written.error());
  if (!stopped.empty()) {
    c.out(stopped);
    return kInterrupted;
  }
  return whole ? kOk : kNegative;
}

}  // namespace

void add_suite(CLI::App& app, Action& action) {
  auto f = std::make_shared<SuiteFlags>();
  CLI::App* suite = app.add_subcommand("suite", "forge every operator of a suite against the better expert, with a table at the end");
  suite->add_option("suite", f->suite, "cpu, hopper")
      ->capture_default_str()
      ->check(CLI::IsMember(std::vector<std::string>{"cpu", "hopper"}));
  suite->add_flag("--quickstart", f->quick, "at most 4 minutes for all operators of the CPU suite");
  suite->add_option("--seconds", f->seconds, "wall budget of each operator");
  suite->add_option("--seed", f->seed, "of the agents")->check(CLI::NonNegativeNumber)->capture_default_str();
  suite->add_option("--target", f->target, "default: the widest of this machine; hopper: cuda:sm_90a");
  suite->add_flag("--no-revise", f->no_revise, "first plans only");
  suite->add_flag("--no-knowledge", f->no_knowledge, "retrieve no entries");
  suite->add_option("-o,--output", f->out_file, "write the results as JSON too");
  suite->footer(
      "Examples:\n  forge suite cpu\n  forge suite cpu -o results/suite.json\n  forge suite hopper\nExit: 0 every operator has a confirmed "
      "measurement, 1 not, 4 "
      "interrupted.");
  suite->callback([f, &action] { action = [f](Context& c) { return run_suite(c, *f); }; });
}

}  // namespace forge
