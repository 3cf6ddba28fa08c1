// SPDX-License-Identifier: Apache-2.0
#include "agents/seats.h"

#include <fmt/format.h>

#include "agents/builtin.h"
#include "agents/command_driver.h"
#include "agents/folder_driver.h"
#include "agents/goal_architect.h"
#include "agents/model_architect.h"
#include "agents/model_driver.h"

namespace forge {

namespace {

constexpr const char* k_builtin = "builtin";
constexpr double k_model_seconds = 900;  // of one question, retries included

Error unknown(const char* seat, const std::string& spec, const char* names) {
  return Error{.code = Code::bad_input,
               .message = fmt::format("no {} is called '{}'", seat, spec),
               .file = {},
               .line = 0,
               .field = seat,
               .fix = names};
}

// On a replay nobody is asked: an agent lives from the record alone, and needs no key.
class SilentModel final : public Model {
 public:
  explicit SilentModel(std::string spec) : m_spec(std::move(spec)) {}
  std::string identity() const override { return m_spec; }
  Result<ModelReply> ask(const ModelRequest&, double) override { return fail(Code::diverged, "a replay asked a model"); }

 private:
  std::string m_spec;
};

Result<std::unique_ptr<Model>> seat_model(const Paths& paths, const std::string& spec, bool replay) {
  if (replay) return std::make_unique<SilentModel>(spec);
  FORGE_TRY_ASSIGN(const ModelSettings settings, read_model_settings(paths.home, spec));
  return make_model(spec, settings);
}

Result<std::string> read_prompt(const Paths& paths, const char* name) {
  return read_file(paths.data / "agents" / "prompts" / (std::string(name) + ".md"));
}

Status check_model(const Paths& paths, const Task& task, const std::string& spec) {
  FORGE_TRY(seat_model(paths, spec, false));
  if (task.budget.tokens > 0) return {};
  return fail(Error{.code = Code::bad_input,
                    .message = "no tokens are granted to " + spec,
                    .file = {},
                    .line = 0,
                    .field = "tokens",
                    .fix = "say how many the run may use: --tokens 500000"});
}

// Only they need the operator's blueprint.
bool renders(const Task& task) { return task.coder == k_builtin || (task.plan && task.architect == k_builtin); }

Result<std::unique_ptr<ArchitectureAgent>> seat_architect(const Paths& paths, const Task& task, const std::optional<Blueprint>& blueprint,
                                                          Journal& journal, Meter& meter, const SeatOptions& options) {
  const std::optional<Blueprint> vocabulary = task.coder == k_builtin ? blueprint : std::nullopt;
  if (!task.plan) return make_goal_architect(vocabulary);
  if (task.architect == k_builtin) return make_builtin_architect(*blueprint);
  FORGE_TRY_ASSIGN(auto model, seat_model(paths, task.architect, options.replay));
  FORGE_TRY_ASSIGN(std::string instructions, read_prompt(paths, task.plan_template ? "architect" : "architect-plain"));
  return make_model_architect(
      std::move(model), journal, meter,
      {.instructions = std::move(instructions), .vocabulary = vocabulary, .budget = task.budget, .seconds = k_model_seconds});
}

Result<std::unique_ptr<Driver>> seat_driver(const Paths& paths, const Task& task, Journal& journal, const SeatOptions& options) {
  if (is_folder_seat(task.coder)) return make_folder_driver(task.coder, options.workspace);
  if (is_command_seat(task.coder))
    return make_command_seat(
        paths, task.coder, [&journal, all = task.budget.wall_seconds] { return all - journal.elapsed_seconds(); }, options.replay);
  FORGE_TRY_ASSIGN(auto model, seat_model(paths, task.coder, options.replay));
  FORGE_TRY_ASSIGN(std::string instructions, read_prompt(paths, task.plan ? "coder" : "goal"));
  return make_model_driver(std::move(model), std::move(instructions), k_model_seconds);
}

}  // namespace

Status check_seats(const Paths& paths, const Task& task, const Machine& machine) {
  if (!task.plan && task.architect != k_builtin)
    return fail(Error{.code = Code::bad_input,
                      .message = "in goal mode nobody decides, so no architect has a seat",
                      .file = {},
                      .line = 0,
                      .field = "architect",
                      .fix = "leave out --no-plan or --architect"});
  if (is_model_name(task.architect)) {
    FORGE_TRY(check_model(paths, task, task.architect));
  } else if (task.architect != k_builtin) {
    return fail(unknown("architect", task.architect, "builtin, anthropic:MODEL, openai:MODEL[@URL]"));
  }
  if (is_model_name(task.coder)) {
    FORGE_TRY(check_model(paths, task, task.coder));
  } else if (is_command_seat(task.coder)) {
    FORGE_TRY(check_command_seat(paths, task.coder, task.budget));
  } else if (task.coder != k_builtin && !is_folder_seat(task.coder)) {
    return fail(unknown("coder", task.coder, "builtin, folder, anthropic:MODEL, openai:MODEL[@URL], command:NAME[@MODEL]"));
  }
  if (is_folder_seat(task.coder) && task.coder != kFolderSeat && !folder_base(task.coder, {}).is_absolute())
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("'{}' names no folder", task.coder),
                      .file = {},
                      .line = 0,
                      .field = "coder",
                      .fix = "folder, or folder:PATH with an absolute path"});
  if (task.show_reference && !task.reference.starts_with("gen:") && !task.reference.starts_with("package:"))
    return fail(Error{.code = Code::bad_input,
                      .message = "an expert's source is shown to nobody",
                      .file = {},
                      .line = 0,
                      .field = "show_reference",
                      .fix = "--reference gen:ID or package:FOLDER"});
  if (renders(task)) FORGE_TRY(load_blueprint(paths, task.operator_name, machine.target));
  return {};
}

Result<Seats> take_seats(const Paths& paths, const Task& task, const Machine& machine, Journal& journal, const SeatOptions& options) {
  if (!options.replay) FORGE_TRY(check_seats(paths, task, machine));
  std::optional<Blueprint> blueprint;
  if (renders(task)) {
    FORGE_TRY_ASSIGN(blueprint, load_blueprint(paths, task.operator_name, machine.target));
  }
  Seats seats;
  FORGE_TRY_ASSIGN(seats.architect, seat_architect(paths, task, blueprint, journal, *seats.meter, options));
  if (task.coder == k_builtin) {
    seats.coder = make_builtin_coder(*blueprint);
    return seats;
  }
  FORGE_TRY_ASSIGN(auto driver, seat_driver(paths, task, journal, options));
  seats.coder = make_driven_coder(std::move(driver), journal, *seats.meter, task.budget, options.workspace.string());
  return seats;
}

}  // namespace forge
