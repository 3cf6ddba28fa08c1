// SPDX-License-Identifier: Apache-2.0
#include "cli/task_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "device/cpu.h"

namespace forge {

namespace {

// A folder that a task names goes on record, where it must mean the same from every other folder.
std::string on_record(const std::string& text, std::string_view kind) {
  if (text.size() <= kind.size() || !text.starts_with(kind)) return text;
  return std::string(kind) + fs::absolute(text.substr(kind.size())).lexically_normal().string();
}

}  // namespace

std::string positive(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool number = end != text.c_str() && *end == 0;
  return number && value > 0 && value < 1e12 ? "" : "'" + text + "' is no number above 0";
}

void add_task_flags(CLI::App& app, TaskFlags& f) {
  app.add_option("--target", f.target, "cpu:x86-64-avx512 or cpu:x86-64-avx2 (default: the widest of this machine)");
  app.add_option("--goal", f.goal, "stop at this speedup over the reference, e.g. 1.2")->check([](const std::string& text) {
    return text == "0" ? std::string() : positive(text);
  });
  app.add_option("--candidates", f.candidates, "budget of hand-ins")->check(CLI::PositiveNumber);
  app.add_option("--gate-seconds", f.gate_seconds, "budget of the gate's time")->check(positive);
  app.add_option("--seed", f.seed, "of the agents; the judge's seeds come from the operating system")->check(CLI::NonNegativeNumber);
  app.add_option("--architect", f.architect, "who decides: builtin, anthropic:MODEL, openai:MODEL[@URL]")->capture_default_str();
  app.add_option("--tokens", f.tokens, "budget of tokens, for agents that are models")->check(CLI::Range(std::int64_t{1}, kMostTokens));
  app.add_flag("--no-knowledge", f.no_knowledge, "retrieve no entries");
}

Result<Task> make_task(const Context& c, const TaskFlags& f) {
  FORGE_TRY_ASSIGN(const Config config, read_config(c.paths.home));
  Task task;
  task.operator_name = f.op;
  task.reference = on_record(f.reference, "package:");
  task.budget = config.budget;
  task.goal = f.goal >= 0 ? f.goal : config.goal;
  task.seed = f.seed >= 0 ? static_cast<std::uint64_t>(f.seed) : config.seed;
  task.target = !f.target.empty() ? f.target : config.target;
  if (task.target.empty()) {
    FORGE_TRY_ASSIGN(const TargetSpec native, native_cpu_target());
    task.target = native.name;
  }
  if (f.candidates) task.budget.candidates = f.candidates;
  if (f.gate_seconds > 0) task.budget.gate_seconds = f.gate_seconds;
  if (f.wall_seconds > 0) task.budget.wall_seconds = f.wall_seconds;
  task.revise = !f.no_revise;
  task.knowledge = !f.no_knowledge;
  task.plan = !f.no_plan, task.disassembly = !f.no_disassembly, task.plan_template = !f.no_template;
  task.show_reference = f.show_reference;
  task.architect = f.architect, task.coder = on_record(f.coder, "folder:");
  task.budget.tokens = f.tokens, task.budget.dollars = f.dollars;
  return task;
}

}  // namespace forge
