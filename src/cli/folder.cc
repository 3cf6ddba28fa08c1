// SPDX-License-Identifier: Apache-2.0
// forge open | submit | status: a run whose coding agent is a person at a folder. Each command goes through the run that is on record, to
// the next hand-in that is missing, and stops there.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "agents/folder_driver.h"
#include "agents/workspace_files.h"
#include "cli/command.h"
#include "cli/outcome.h"
#include "cli/standing.h"
#include "cli/task_flags.h"
#include "core/loose_json.h"
#include "evolve/evolve.h"
#include "util/progress.h"

namespace forge {

namespace {

struct OpenFlags : TaskFlags {
  std::string folder;
};

struct SubmitFlags {
  std::string where, give_up;
  bool finish = false, build = false, check = false, time = false;
  std::string action() const {
    return finish ? "finish" : build ? "build" : check ? "check" : time ? "time" : give_up.empty() ? "submit" : "give_up";
  }
};

Result<Task> task_by_hand(const Context& c, const OpenFlags& f) {
  TaskFlags flags = f;
  flags.coder = f.folder.empty() ? kFolderSeat : kFolderSeat + (":" + f.folder);
  FORGE_TRY_ASSIGN(Task task, make_task(c, flags));
  task.budget.wall_seconds = 1e9;  // a person's evenings are not the run's
  return task;
}

// What a folder, an id or nothing at all stands for.
struct Place {
  std::string run;
  std::optional<FolderTag> tag;  // of the folder, if it is one
};
Result<Place> find_place(const Store& store, const std::string& where) {
  std::error_code error;
  fs::path at = where.empty() ? fs::current_path(error) : fs::path(where);
  if (where.empty() || fs::is_directory(at, error)) {
    for (at = fs::absolute(at, error).lexically_normal(); !at.empty(); at = at.parent_path()) {
      if (auto tag = read_folder_tag(at)) {
        FORGE_TRY_ASSIGN(std::string run, store.resolve_run(tag->run));
        return Place{std::move(run), std::move(*tag)};
      }
      if (at == at.root_path()) break;
    }
    if (!where.empty())
      return fail(Error{.code = Code::not_found,
                        .message = "is no folder that `forge open` laid out",
                        .file = where,
                        .line = 0,
                        .field = {},
                        .fix = "go to the folder that `forge status RUN` names"});
  }
  FORGE_TRY_ASSIGN(std::string run, store.resolve_run(where.empty() ? "last" : where));
  return Place{std::move(run), std::nullopt};
}

Result<Standing> open_milestone(const Context& c, const Store& store, const std::string& run) {
  FORGE_TRY_ASSIGN(Standing s, standing_of(c.paths, store, run));
  if (!is_folder_seat(s.task.coder))
    return fail(Code::bad_input, fmt::format("the coder of {} is {}, not a person", run, s.task.coder),
                "forge open " + s.task.operator_name);
  if (s.ended) return fail(Code::bad_input, run + " has ended", "forge show " + run);
  return s;
}

// A hand-in goes to the milestone whose folder it came from, never silently to another.
Status expect_open(const Standing& s, const std::optional<FolderTag>& tag) {
  if (!tag || s.milestone.empty() || (tag->milestone == s.milestone && tag->attempt == s.attempt)) return {};
  return fail(Code::bad_input,
              fmt::format("{} has ended here, {} is open", milestone_folder("", tag->milestone, tag->attempt).string(),
                          milestone_folder("", s.milestone, s.attempt).string()),
              "forge submit " + s.folder.string());
}

// What the run says for people, but for its advice on how to resume: that is forge submit here.
std::function<void(const std::string&)> sayer(const Context& c) {
  return [&c](const std::string& line) {
    const bool verdict = line.size() > 2 && line[0] == 'M' && line.find(": ") < 6;  // said by us, and once
    if (!verdict && line.rfind("stopped;", 0) != 0 && line.rfind("resuming ", 0) != 0) c.say(line);
  };
}

std::string feedback_stem(const Standing& s, std::size_t turn) { return (s.folder / "feedback" / fmt::format("{:02}", turn)).string(); }

// A turn is on record, and its answer did not reach the folder: forge was killed in between.
bool under_way(const Standing& s) {
  std::error_code error;
  return !s.milestone.empty() && s.turn > 0 && !fs::exists(feedback_stem(s, s.turn) + ".json", error);
}

// After a run went as far as it could: where it stands now, and what to do next.
int conclude(const Context& c, const Store& store, const RunResult& r, const std::optional<Standing>& before, bool pending = false) {
  const auto now = standing_of(c.paths, store, r.run_id);
  if (!now) return c.fail(now.error());
  Json j = to_json_value(*now);
  bool good = !before;
  if (before && !before->folder.empty()) {
    const std::string stem = feedback_stem(*before, before->turn + (pending ? 0 : 1));
    const Result<std::string> text = read_file(stem + ".md"), answer = read_file(stem + ".json");
    if (text && answer) {
      j["answer"] = Json::parse(*answer, nullptr, false);
      const Json& kept = j["answer"];  // a file in a person's folder: it may hold anything by now
      const Json& verdict = field_of(kept, "verdict");
      good = verdict == "accepted" || verdict == "correct" || verdict == "built" || verdict == "timed";
      c.out(*text + "(kept as " + stem + ".md)");
    }
  }
  if (now->ended) {
    j["result"] = run_to_json(r);
    c.out(describe_run(r));
    c.finish(dump(j));
    return r.confirmation && r.confirmation->accepted() ? kOk : kNegative;
  }
  if (!now->milestone.empty() && !stop_requested()) {
    c.out(fmt::format("{}: {}\n  {}\n  read BRIEF.md there, write the kernel, then: forge submit {}", now->milestone, now->title,
                      now->folder.string(), now->folder.string()));
    c.finish(dump(j));
    return good ? kOk : kNegative;
  }
  c.out("stopped; go on with: forge submit " + r.run_id);
  c.finish(dump(j));
  return kInterrupted;
}

// An editor's view of the arguments follows launch.toml.
Status refresh_header(const Context& c, const Standing& s, const KernelPackage& package) {
  FORGE_TRY_ASSIGN(const TargetSpec target, find_target(s.task.target));
  FORGE_TRY_ASSIGN(const OperatorFolder op, load_operator(c.paths, s.task.operator_name, target.family));
  const auto plan = parse_launch_plan(package.plan_text, "launch.toml");
  if (!plan || !check_plan(*plan, op.definition, target, "launch.toml")) return {};  // the gate says what is wrong
  return write_file_atomic(s.folder / "forge_args.h", make_args_header(*plan, op.definition, target));
}

int submit(const Context& c, const SubmitFlags& f) {
  auto store = c.store();
  if (!store) return c.fail(store.error());
  const auto place = find_place(*store, f.where);
  if (!place) return c.fail(place.error());
  if (f.where.empty() && !place->tag)
    return c.fail(Error{.code = Code::bad_input,
                        .message = "this is no milestone's folder",
                        .file = fs::current_path().string(),
                        .line = 0,
                        .field = {},
                        .fix = "go to it, or name it: forge submit FOLDER (`forge status` names the open one)"});
  auto before = open_milestone(c, *store, place->run);
  if (!before) return c.fail(before.error());
  Fd alone;
  if (!before->milestone.empty()) {  // what stands there is read again once nobody else hands in
    auto held = hold_folder(before->folder);
    if (!held) return c.fail(held.error());
    alone = std::move(*held);
    if (before = open_milestone(c, *store, place->run); !before) return c.fail(before.error());
  }
  if (const Status open = expect_open(*before, place->tag); !open) return c.fail(open.error());
  const bool pending = under_way(*before);
  if (pending) c.out("going on with the hand-in that was under way");
  if (!before->milestone.empty() && !pending) {  // else the run was stopped between two milestones: it only goes on
    FolderRequest request{.turn = before->turn, .action = f.action(), .why = f.give_up};
    if (request.action != "give_up" && request.action != "finish") {
      const auto package = read_workspace_package(before->folder.string(), "");
      if (!package) return c.fail(package.error());
      if (const Status written = refresh_header(c, *before, *package); !written) return c.fail(written.error());
    }
    if (const Status left = leave_request(before->folder, request); !left) return c.fail(left.error());
  }
  const auto result = resume_run(c.paths, *store, place->run, sayer(c));
  if (!result) return c.fail(result.error());
  return conclude(c, *store, *result, *before, pending);
}

}  // namespace

void add_folder(CLI::App& app, Action& action) {
  auto o = std::make_shared<OpenFlags>();
  CLI::App* open = app.add_subcommand("open", "begin a run in which you write the kernels: lays the first milestone out in a folder");
  open->add_option("operator", o->op, "an operator (`forge operators` lists them)")->required();
  open->add_option("--folder", o->folder, "where milestones are laid out (default: in the run's own folder)");
  open->add_option("--reference", o->reference, "expert (the better one), expert:NAME, gen:ID, package:FOLDER, or none");
  add_task_flags(*open, *o);
  open->footer(
      "Example:\n  forge open softmax_f32 --folder ~/softmax\nThen write the kernel in the folder that is named, and: forge submit");
  open->callback([o, &action] {
    action = [o](Context& c) -> int {
      auto store = c.store();
      if (!store) return c.fail(store.error());
      const auto task = task_by_hand(c, *o);
      if (!task) return c.fail(task.error());
      const auto result = start_run(c.paths, *store, *task, sayer(c));
      return result ? conclude(c, *store, *result, std::nullopt) : c.fail(result.error());
    };
  });

  auto s = std::make_shared<SubmitFlags>();
  CLI::App* sub = app.add_subcommand("submit", "hand in the kernel of an opened milestone, and go on to the next");
  sub->add_option("where", s->where, "the milestone's folder, or a run (default: this folder)");
  CLI::Option* why = sub->add_option("--give-up", s->give_up, "end this milestone without a kernel: why");
  // One of them at a time: they end a milestone, end the run, or only look.
  std::vector<CLI::Option*> kinds{why};
  kinds.push_back(sub->add_flag("--finish", s->finish, "end the run: confirm and seal the best that it has"));
  kinds.push_back(sub->add_flag("--build", s->build, "no hand-in: build it, show its hot loop"));
  kinds.push_back(sub->add_flag("--check", s->check, "no hand-in: is it correct?"));
  kinds.push_back(sub->add_flag("--time", s->time, "no hand-in: time it, unchecked, against the best accepted in this branch"));
  for (CLI::Option* one : kinds)
    for (CLI::Option* other : kinds)
      if (one != other) one->excludes(other);
  why->check([](const std::string& text) { return text.empty() ? std::string("say why") : std::string(); });
  sub->footer(
      "Example:\n  forge submit\n  forge submit --give-up 'the plan needs more registers than there are'\nExit: 0 accepted, 1 rejected "
      "(and why), 4 interrupted.");
  sub->callback([s, &action] { action = [s](Context& c) { return submit(c, *s); }; });

  auto where = std::make_shared<std::string>();
  CLI::App* status = app.add_subcommand("status", "where a run by hand stands: milestone, verdicts so far, budget left");
  status->add_option("where", *where, "the milestone's folder, or a run (default: this folder, else the last run)");
  status->footer("Example:\n  forge status --json");
  status->callback([where, &action] {
    action = [where](Context& c) -> int {
      auto store = c.store();
      if (!store) return c.fail(store.error());
      const auto place = find_place(*store, *where);
      if (!place) return c.fail(place.error());
      const auto standing = standing_of(c.paths, *store, place->run);
      if (!standing) return c.fail(standing.error());
      c.out(describe(*standing));
      return c.finish(dump(to_json_value(*standing)));
    };
  });
}

}  // namespace forge
