// SPDX-License-Identifier: Apache-2.0
// forge run | evolve | replay
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "agents/folder_driver.h"
#include "cli/command.h"
#include "cli/outcome.h"
#include "cli/table.h"
#include "cli/task_flags.h"
#include "core/json_io.h"
#include "evolve/evolve.h"

namespace forge {

namespace {

struct RunFlags : TaskFlags {
  std::string resume;
  int generations = 3;
};

void add_flags(CLI::App& app, RunFlags& f) {
  add_task_flags(app, f);
  app.add_option("--wall-seconds", f.wall_seconds, "budget of wall time")->check(positive);
  app.add_option("--coder", f.coder, "who builds: the same, command:NAME (docs/agents.md) or folder (see `forge open`)")
      ->capture_default_str();
  app.add_option("--dollars", f.dollars, "budget of dollars, by the prices in models.toml")->check(positive);
  app.add_flag("--no-plan", f.no_plan, "goal mode: nobody decides, the coder is only asked for a faster kernel; no knowledge");
  app.add_flag("--no-disassembly", f.no_disassembly, "agents see no instruction mix and no listing");
  app.add_flag("--no-template", f.no_template, "an architect that is a model is not told how plans are built up");
  app.add_flag("--show-reference", f.show_reference, "the coder reads the reference (gen:ID or package:FOLDER only)");
  app.add_flag("--no-revise", f.no_revise, "first plan only");
}

int after_run(const Context& c, const RunResult& r, bool by_hand = false) {
  c.out(describe_run(r));
  c.finish(dump(run_to_json(r)));
  if (r.stop == Stop::user) {
    c.out(fmt::format("stopped; go on with: {} {}", by_hand ? "forge submit" : "forge run --resume", r.run_id));
    return kInterrupted;
  }
  return r.confirmation && r.confirmation->accepted() ? kOk : kNegative;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto f = std::make_shared<RunFlags>();
  CLI::App* run = app.add_subcommand("run", "forge one kernel for an operator against one reference");
  run->add_option("operator", f->op, "an operator (`forge operators` lists them)");
  run->add_option("--reference", f->reference, "expert (the better one), expert:NAME, gen:ID, package:FOLDER, or none");
  run->add_option("--resume", f->resume, "go on with an interrupted run: its id, a unique prefix, or 'last'");
  add_flags(*run, *f);
  run->footer(
      "Examples:\n  forge run gemm_f32\n  forge run softmax_f32 --goal 1.1 --candidates 12\n  forge run gemm_f32 --reference gen:3f2a\n"
      "  forge run softmax_f32 --coder anthropic:MODEL --tokens 500000\n"
      "  forge run --resume last\nExit: 0 a kernel was confirmed, 1 none was, 4 interrupted.");
  run->callback([f, run, &action] {
    std::string ignored;  // a resumed run has its task from the journal
    if (!f->resume.empty())
      for (const CLI::Option* o : run->get_options())
        if (o->count() > 0 && o->get_name(false, true).find("resume") == std::string::npos) ignored = o->get_name();
    action = [f, ignored](Context& c) -> int {
      if (!ignored.empty())
        return c.fail(Error{.code = Code::bad_input,
                            .message = fmt::format("a resumed run has its task from its journal: {} would be ignored", ignored),
                            .file = {},
                            .line = 0,
                            .field = "--resume",
                            .fix = "leave it out, or leave --resume out to start another run"});
      const auto say = [&c](const std::string& line) { c.say(line); };
      auto store = c.store();
      if (!store) return c.fail(store.error());
      if (!f->resume.empty()) {
        const auto id = store->resolve_run(f->resume);
        if (!id) return c.fail(id.error());
        const auto result = resume_run(c.paths, *store, *id, say);
        return result ? after_run(c, *result) : c.fail(result.error());
      }
      if (f->op.empty())
        return c.fail(Error{.code = Code::bad_input,
                            .message = "which operator?",
                            .file = {},
                            .line = 0,
                            .field = "operator",
                            .fix = "forge run gemm_f32, or forge run --resume last"});
      const auto task = make_task(c, *f);
      if (!task) return c.fail(task.error());
      const auto result = start_run(c.paths, *store, *task, say);
      return result ? after_run(c, *result, is_folder_seat(task->coder)) : c.fail(result.error());
    };
  });

  auto e = std::make_shared<RunFlags>();
  CLI::App* evo =
      app.add_subcommand("evolve", "forge generations: gen0 against the expert, gen1 against gen0, until the gain is within the floor");
  evo->add_option("operator", e->op, "an operator")->required();
  evo->add_option("--generations", e->generations, "at most this many")->check(CLI::Range(1, 20))->capture_default_str();
  add_flags(*evo, *e);
  evo->footer("Example:\n  forge evolve softmax_f32 --generations 3\nThen: forge lineage softmax_f32");
  evo->callback([e, &action] {
    action = [e](Context& c) -> int {
      auto store = c.store();
      if (!store) return c.fail(store.error());
      const auto task = make_task(c, *e);
      if (!task) return c.fail(task.error());
      const auto result = evolve(c.paths, *store, *task, e->generations, [&c](const std::string& line) { c.say(line); });
      if (!result) return c.fail(result.error());
      Json document;
      document["ended"] = result->ended, document["generations"] = Json::array();
      std::vector<std::vector<std::string>> rows;
      bool any = false;
      for (const RunResult& r : result->generations) {
        document["generations"].push_back(run_to_json(r));
        rows.push_back(outcome_row(r));
        any = any || r.sealed;
      }
      c.out(format_table(outcome_head(), rows));
      c.out("ended: " + result->ended);
      c.finish(dump(document));
      if (!result->generations.empty() && result->generations.back().stop == Stop::user) {
        c.out(fmt::format("stopped; go on with: forge run --resume {}", result->generations.back().run_id));
        return kInterrupted;
      }
      return any ? kOk : kNegative;
    };
  });

  auto id = std::make_shared<std::string>("last");
  CLI::App* rep = app.add_subcommand("replay", "repeat a run's decisions from its recorded measurements; nothing is measured");
  rep->add_option("run", *id, "run id, unique prefix, or 'last'")->capture_default_str();
  rep->footer("Example:\n  forge replay last\nExit: 0 every decision repeats, 1 it diverges (and where).");
  rep->callback([id, &action] {
    action = [id](Context& c) -> int {
      auto store = c.store();
      if (!store) return c.fail(store.error());
      const auto run_id = store->resolve_run(*id);
      if (!run_id) return c.fail(run_id.error());
      const auto result = replay_run(c.paths, *store, *run_id);
      if (!result) return c.fail(result.error());
      c.out(result->same ? fmt::format("{}: {} events, every decision repeats", *run_id, result->steps)
                         : fmt::format("{}: diverges after {} events: {}", *run_id, result->steps, result->difference));
      Json j;
      j["run"] = *run_id, j["steps"] = result->steps, j["same"] = result->same, j["difference"] = result->difference;
      c.finish(dump(j));
      return result->same ? kOk : kNegative;
    };
  });
}

}  // namespace forge
