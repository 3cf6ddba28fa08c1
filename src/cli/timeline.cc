// SPDX-License-Identifier: Apache-2.0
#include "cli/timeline.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/table.h"
#include "core/json_io.h"
#include "util/text.h"
#include "vault/vault.h"

namespace forge {
namespace {

constexpr double kTimelineSeconds = 6;  // aim for its job: a stage that takes one percent should show

struct StagedKernel {
  Blueprint blueprint;
  Choices choices;
  Names names;
  std::string what;
  std::vector<std::string> notes;
};

// A sealed kernel's choices, if it came from the blueprint: a kernel that was written otherwise has no stages that could be left out.
Status take_choices(StagedKernel& k, const Generation& g, const Machine& machine) {
  const std::string id = fmt::format("gen{}:{}", g.number, g.id.substr(0, 12));
  Choices choices;
  for (const auto& [decision, value] : g.decisions) choices[decision] = value;
  const auto package = render(k.blueprint, choices, machine.target, k.names);
  if (!package)
    return fail(Error{.code = Code::unsupported,
                      .message = fmt::format("{} cannot be rendered from the blueprint: {}", id, package.error().text()),
                      .fix = "--reference defaults takes the blueprint's default choices"});
  k.choices = choices;
  k.what = id + " of " + g.operator_name;
  if (package_hash(*package) != g.id)
    k.notes.push_back(
        fmt::format("the blueprint now renders {} for the decisions of {}: it was changed since, or the kernel was not "
                    "rendered from it. The table is of what it renders now",
                    package_hash(*package).substr(0, 12), id));
  return {};
}

Result<StagedKernel> choose_kernel(const Context& c, const std::string& op, const std::string& reference, const Machine& machine) {
  StagedKernel k;
  FORGE_TRY_ASSIGN(const OperatorFolder folder, load_operator(c.paths, op, machine.target.family));
  FORGE_TRY_ASSIGN(k.blueprint, load_blueprint(c.paths, op, machine.target));
  k.names = blueprint_names(folder.definition, folder.task, machine);
  std::optional<Generation> sealed;
  if (reference.empty() || reference.starts_with("gen:")) {
    FORGE_TRY_ASSIGN(const Vault vault, Vault::open(c.paths.home));
    if (reference.empty()) {
      FORGE_TRY_ASSIGN(sealed, vault.promoted(op, machine.target.name));
    } else {
      FORGE_TRY_ASSIGN(sealed, vault.find(reference.substr(4)));
      if (sealed->operator_name != op || sealed->target != machine.target.name)
        return fail(Code::bad_input, fmt::format("{} is a kernel of {} for {}", reference, sealed->operator_name, sealed->target));
    }
  } else if (reference != "defaults") {
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("'{}' has no stages that could be left out", reference),
                      .field = "--reference",
                      .fix = "gen:ID, or defaults: kernels that come from a blueprint"});
  }
  if (sealed) {
    FORGE_TRY(take_choices(k, *sealed, machine));
  } else {
    k.choices = default_choices(k.blueprint);
    k.what = "the default choices of the blueprint of " + op;
  }
  return k;
}

std::string percent(double ratio) { return fmt::format("{:.1f} %", 100 * ratio); }

}  // namespace

std::string timeline_table(const Timeline& t) {
  std::vector<std::vector<std::string>> rows{
      {"(the whole)", format_seconds(t.seconds), "", "", ""},
      {"(the whole again)", format_seconds(t.seconds * (1 - t.again_share)), "", percent(t.again_share), "what this job cannot tell"}};
  for (const StageTime& s : t.stages) {
    if (s.problem.empty())
      rows.push_back({s.name, format_seconds(s.without_s), (s.saved_s < 0 ? "-" : "") + format_seconds(std::abs(s.saved_s)),
                      percent(s.share), s.text});
    else
      rows.push_back({s.name, "", "", "", s.problem});
  }
  return format_table({"stage", "time without it", "time saved", "share", "what it is"}, rows) + "\n" + describe_overlap(t) + "\n";
}

int show_timeline(Context& c, const std::string& op, const std::string& target, const std::string& reference) {
  const auto machine = c.machine(target);
  if (!machine) return c.fail(machine.error());
  const auto kernel = choose_kernel(c, op, reference, *machine);
  if (!kernel) return c.fail(kernel.error());
  Task task;
  task.operator_name = op, task.target = machine->target.name, task.reference = "none";
  auto gate = make_gate(c.paths, task, *machine, {.tuning_seconds = kTimelineSeconds});
  if (!gate) return c.fail(gate.error());
  const auto timeline = time_stages(**gate, kernel->blueprint, kernel->choices, machine->target, kernel->names);
  if (!timeline) return c.fail(timeline.error());

  c.out(kernel->what + "\n" + timeline_table(*timeline));
  for (const std::string& note : kernel->notes) c.out("note: " + note);
  Json document;
  document["machine"] = to_json_value(*machine);
  document["kernel"] = kernel->what;
  document["decisions"] = kernel->choices;
  document["seconds"] = timeline->seconds;
  document["again_share"] = timeline->again_share;
  document["stages"] = Json::array();
  for (const StageTime& s : timeline->stages) {
    Json row{{"name", s.name}, {"text", s.text}};
    if (s.problem.empty())
      row["seconds_without"] = s.without_s, row["seconds_saved"] = s.saved_s, row["share"] = s.share;
    else
      row["problem"] = s.problem;
    document["stages"].push_back(std::move(row));
  }
  document["sum_of_shares"] = timeline->sum;
  document["complete"] = timeline->complete();
  document["overlap"] = describe_overlap(*timeline);
  document["notes"] = kernel->notes;
  return c.finish(dump(document));
}

}  // namespace forge
