// SPDX-License-Identifier: Apache-2.0
// forge doctor: what works here, what does not, and the command that mends it.
#include <fmt/format.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "build/build.h"
#include "cli/command.h"
#include "cli/table.h"
#include "core/json_io.h"
#include "device/cpu.h"
#include "device/cuda.h"
#include "gate/catalog.h"
#include "gate/real_gate.h"
#include "knowledge/knowledge.h"
#include "report/report.h"
#include "report/web.h"
#include "runner/runner.h"
#include "util/process.h"
#include "util/sandbox.h"

namespace forge {

namespace {

enum class Health { ok, degraded, missing };
const char* name(Health h) { return h == Health::ok ? "ok" : h == Health::degraded ? "degraded" : "missing"; }

struct Line {
  std::string what;
  Health health = Health::ok;
  std::string found, fix;
  bool essential = true;
};

Line check_state(const Context& c) {
  auto store = c.store();
  if (!store) return {"state folder", Health::missing, store.error().text(), "set FORGE_HOME to a folder that is writable", true};
  std::error_code error;
  const auto space = fs::space(c.paths.home, error);
  const double gib = error ? 0 : static_cast<double>(space.available) / (1 << 30);
  if (gib < 1)
    return {"state folder", Health::degraded, fmt::format("{}: only {:.2f} GiB free", c.paths.home.string(), gib),
            "free some space, or set FORGE_HOME elsewhere", true};
  return {"state folder", Health::ok, fmt::format("{} ({:.0f} GiB free)", c.paths.home.string(), gib), "", true};
}

std::vector<Line> check_all(const Context& c) {
  std::vector<Line> out;
  const auto target = native_cpu_target();
  out.push_back(target ? Line{"CPU target", Health::ok, target->name, ""}
                       : Line{"CPU target", Health::missing, target.error().message, "use a machine with AVX2 and FMA"});
  if (target) {
    if (const auto m = probe_cpu(*target))
      out.push_back({"device class", Health::ok, fmt::format("{} ({}, {} cores)", m->device_class, m->model, m->cores), "", false});
  }
  const auto compiler = find_cpu_compiler();
  out.push_back(compiler ? Line{"compiler", Health::ok, (*compiler)->identity(), ""}
                         : Line{"compiler", Health::missing, compiler.error().message, "apt-get install build-essential"});
  const auto runner = find_runner_program(c.paths);
  out.push_back(runner ? Line{"runner", Health::ok, *runner, ""}
                       : Line{"runner", Health::missing, runner.error().message, runner.error().fix});
  for (const std::string& op : operator_names(c.paths)) {
    const auto loaded = load_operator(c.paths, op, "");
    if (!loaded) {
      out.push_back({"operator " + op, Health::missing, loaded.error().text(), loaded.error().fix});
      continue;
    }
    std::vector<std::string> experts;
    for (const auto& [expert, path] : loaded->experts) experts.push_back(expert);
    if (loaded->family != "cpu") {  // the toolkit's headers are needed to build an expert, a card to run it
      out.push_back({"operator " + op, Health::ok,
                     fmt::format("{} only; experts: {}", loaded->family,
                                 experts.empty() ? "none was built" : fmt::format("{}", fmt::join(experts, ", "))),
                     "", false});
      continue;
    }
    out.push_back({"operator " + op, experts.empty() ? Health::degraded : Health::ok,
                   experts.empty() ? "no expert was built" : "experts: " + fmt::format("{}", fmt::join(experts, ", ")),
                   experts.empty() ? "apt-get install libdnnl-dev libopenblas-pthread-dev, then build again" : "", false});
  }
  const auto base = KnowledgeBase::load_readable(c.paths.data / "knowledge");
  out.push_back(base ? Line{"knowledge", Health::ok, fmt::format("{} entries", base->entries().size()), ""}
                     : Line{"knowledge", Health::missing, base.error().text(), base.error().fix});
  for (const DamagedEntry& d : base ? base->damaged() : std::vector<DamagedEntry>())
    out.push_back({"knowledge " + d.id, Health::missing, d.error.text(), d.error.fix});
  out.push_back(check_state(c));
  for (const std::string& line : describe(probe_sandbox())) {
    const bool missing = line.find("missing") != std::string::npos || line.find("not ") != std::string::npos;
    out.push_back({"sandbox", missing ? Health::degraded : Health::ok, line,
                   missing ? "results say so; a newer kernel has it, or apt-get install bubblewrap" : "", false});
  }
  const auto chart = find_chart_js();
  out.push_back(chart ? Line{"report charts", Health::ok, "Chart.js", "", false}
                      : Line{"report charts", Health::degraded, chart.error().message, "apt-get install libjs-chart.js", false});
  const auto web = find_web_library();
  out.push_back(web ? Line{"live page", Health::ok, "libmicrohttpd", "", false}
                    : Line{"live page", Health::degraded, web.error().message, web.error().fix, false});
  std::ifstream governor("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  std::string mode;
  if (governor >> mode && mode != "performance")
    out.push_back({"clock", Health::degraded, "governor " + mode, "cpupower frequency-set -g performance", false});
  // What GPU targets need; CPU targets work without any of it.
  for (const auto& [what, lines] : {std::pair{"NVIDIA GPU", cuda_findings()}, std::pair{"CUDA toolkit", cuda_build_findings()}})
    for (const std::string& line : lines) {
      const bool missing = line.starts_with("missing: ");
      out.push_back({what, missing ? Health::degraded : Health::ok, missing ? line.substr(9) : line,
                     missing ? "needed by cuda targets only; install what it names" : "", false});
    }
  return out;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* doctor = app.add_subcommand("doctor", "what works on this machine, what does not, and the command that mends it");
  doctor->footer("Example:\n  forge doctor --json\nExit: 0 everything essential works, 3 something essential is missing.");
  doctor->callback([&action] {
    action = [](Context& c) -> int {
      const std::vector<Line> lines = check_all(c);
      std::vector<std::vector<std::string>> rows;
      Json document;
      bool whole = true;
      for (const Line& l : lines) {
        rows.push_back({l.what, name(l.health), l.found, l.fix});
        document["checks"].push_back(
            {{"what", l.what}, {"health", name(l.health)}, {"found", l.found}, {"fix", l.fix}, {"essential", l.essential}});
        whole = whole && !(l.essential && l.health == Health::missing);
      }
      document["ok"] = whole;
      c.out(format_table({"what", "health", "found", "to mend it"}, rows));
      c.out(whole ? "everything essential works" : "something essential is missing: see the last column");
      c.finish(dump(document));
      return whole ? kOk : kEnvironment;
    };
  });
}

}  // namespace forge
