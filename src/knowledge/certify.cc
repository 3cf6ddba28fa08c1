// SPDX-License-Identifier: Apache-2.0
// A probe goes through the gate like any candidate: the baseline is the reference, the mechanism the hand-in.
#include <fmt/format.h>

#include <algorithm>

#include "build/build.h"
#include "core/blueprint.h"
#include "knowledge/knowledge.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {

namespace {

std::string evidence_file(const std::string& device_class) {
  std::string file = device_class;
  std::replace(file.begin(), file.end(), ':', '_');
  return file + ".json";
}

// Two packages of one blueprint differ in what was chosen, and in nothing else.
Result<KernelPackage> render_probe(const Entry& entry, ProbeSide side, const Paths& paths, const Machine& machine) {
  FORGE_TRY_ASSIGN(const OperatorFolder op,
                   load_operator(with_probe_operators(paths, entry.probe_operator), entry.probe_operator, machine.target.family));
  FORGE_TRY_ASSIGN(Blueprint blueprint, load_blueprint(paths, entry.probe_blueprint, machine.target));
  blueprint.operator_name = entry.probe_operator;
  Choices choices = default_choices(blueprint);
  for (const auto* list : {&entry.probe_choices, side == ProbeSide::baseline ? &entry.probe_baseline : &entry.probe_mechanism})
    for (const auto& [decision, value] : *list) choices[decision] = value;
  const auto package = render(blueprint, choices, machine.target, blueprint_names(op.definition, op.task, machine));
  if (package) return package;
  Error e = package.error();
  e.message = fmt::format("the {} of the probe cannot be rendered from blueprint {}: {}{}", name(side), entry.probe_blueprint,
                          e.field.empty() ? "" : e.field + ": ", e.message);
  e.file = entry.folder + "/entry.toml";
  e.field = "probe";
  return tl::unexpected(std::move(e));
}

}  // namespace

const char* name(ProbeSide side) { return side == ProbeSide::baseline ? "baseline" : "mechanism"; }

Result<KernelPackage> probe_package(const Entry& entry, ProbeSide side, const Paths& paths, const Machine& machine) {
  const fs::path folder = fs::path(entry.folder) / name(side);
  std::error_code error;
  if (!entry.probe_blueprint.empty() && !fs::exists(folder, error)) return render_probe(entry, side, paths, machine);
  FORGE_TRY_ASSIGN(KernelPackage package, read_package_folder(folder));
  // Written once; the target line is this machine's.
  FORGE_TRY_ASSIGN(package.plan_text, expand(package.plan_text, {{"target", machine.target.name}}, (folder / "launch.toml").string()));
  return package;
}

Result<Certification> certify(const Paths& paths, const Machine& machine, const Entry& entry) {
  Certification c;
  c.device_class = machine.device_class;
  c.device = machine.model;
  c.date = utc_now();
  const bool target_fits = std::any_of(entry.targets.begin(), entry.targets.end(),
                                       [&](const std::string& glob) { return glob_match(glob, machine.target.name); });
  const auto needs = entry.probe_requires.empty() ? Result<std::int64_t>(1) : evaluate(entry.probe_requires, machine.properties);
  if (!needs)
    return fail(Error{.code = Code::bad_input,
                      .message = needs.error().message,
                      .file = entry.folder + "/entry.toml",
                      .line = 0,
                      .field = "probe.requires",
                      .fix = "use machine properties only"});
  if (!target_fits || *needs == 0) {
    c.applicable = false;
    c.outcome = EntryState::proposed;
    c.note = target_fits ? fmt::format("this machine lacks what the probe needs: {}", entry.probe_requires.text)
                         : fmt::format("not for target {}", machine.target.name);
    return c;
  }
  FORGE_TRY_ASSIGN(const KernelPackage mechanism, probe_package(entry, ProbeSide::mechanism, paths, machine));
  FORGE_TRY_ASSIGN(const KernelPackage baseline, probe_package(entry, ProbeSide::baseline, paths, machine));
  if (package_hash(baseline) == package_hash(mechanism))
    return fail(Error{.code = Code::bad_input,
                      .message = "both sides of the probe are the same kernel",
                      .file = entry.folder + "/entry.toml",
                      .line = 0,
                      .field = "probe",
                      .fix = "let probe.baseline and probe.mechanism choose differently"});
  // The gate reads its reference from a folder; the one with the target filled in is temporary.
  FORGE_TRY_ASSIGN(const TempDir temp, TempDir::make("forge-probe"));
  FORGE_TRY(write_package_folder(baseline, temp.path() / "baseline"));

  Task task;
  task.operator_name = entry.probe_operator;
  task.target = machine.target.name;
  task.reference = "package:" + (temp.path() / "baseline").string();
  FORGE_TRY_ASSIGN(const std::unique_ptr<Gate> gate,
                   make_gate(with_probe_operators(paths, entry.probe_operator), task, machine, GateOptions{}));
  FORGE_TRY(gate->open());
  FORGE_TRY_ASSIGN(const NoiseFloor floor, gate->measure_floor());
  c.floor = floor.ratio;
  Submission hand_in{.package = mechanism, .milestone = "probe", .acceptance = {}, .branch_best = {}, .global_best = {}, .timed = true};
  hand_in.acceptance.performance = PerformanceCondition{Against::reference, entry.min_effect};
  hand_in.acceptance.mechanism = entry.signature;
  FORGE_TRY_ASSIGN(const Verdict verdict, gate->submit(hand_in));
  if (!verdict.measurement() || verdict.measurement()->pairs.empty())
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("the probe's mechanism was not measured: {}: {}", name(verdict.reason()), verdict.detail()),
                      .file = entry.folder + "/entry.toml",
                      .line = 0,
                      .field = {},
                      .fix = "mend the probe: both packages must be correct, and the signature must hold on the mechanism"});
  const PairedTiming& timing = verdict.measurement()->pairs.front();
  c.comparison = timing.comparison;
  c.effect = timing.speedup;
  if (const auto found = verdict.measurement()->conditions.find("compiler"); found != verdict.measurement()->conditions.end())
    c.compiler = found->second;
  if (timing.comparison == Comparison::faster && timing.lower_bound > 1 + entry.min_effect) {
    c.outcome = EntryState::certified;
  } else if (timing.upper_bound < 1 + std::max(entry.min_effect, floor.ratio)) {
    c.outcome = EntryState::refuted;
    c.note = fmt::format("gains less than the {:g} % that it claims", 100 * entry.min_effect);
  } else {
    c.note = "measured, but the interval does not settle it";
  }
  return c;
}

Status write_certification(const Entry& entry, const Certification& c) {
  const fs::path folder = fs::path(entry.folder) / "evidence";
  FORGE_TRY(make_dirs(folder));
  return write_file_atomic(folder / evidence_file(c.device_class), certification_to_json(c) + "\n");
}

Status set_retired(const fs::path& knowledge_folder, const std::string& id, bool retired) {
  FORGE_TRY_ASSIGN(const KnowledgeBase base, KnowledgeBase::load_readable(knowledge_folder));
  const std::optional<Entry> entry = base.find(id);
  if (!entry) {
    if (const Error* damage = base.damage_of(id)) return fail(*damage);
    std::vector<std::string> ids;
    for (const Entry& e : base.entries()) ids.push_back(e.id);
    const std::string near = closest(id, ids);
    return fail(Code::not_found, fmt::format("no entry is called '{}'", id),
                near.empty() ? "`forge kb list` shows them" : fmt::format("did you mean '{}'?", near));
  }
  if (entry->retired == retired) return {};
  const fs::path file = fs::path(entry->folder) / "entry.toml";
  FORGE_TRY_ASSIGN(const std::string text, read_file(file));
  // The rest of the file, comments included, stays as its author wrote it. Top-level keys come before the first table.
  std::string out;
  bool placed = false, dropped = false;
  for (const std::string& line : split(text, '\n')) {
    if (!placed && trim(line).starts_with("retired")) {
      dropped = true;
      continue;
    }
    if (dropped && trim(line).empty() && out.ends_with("\n\n")) continue;  // the blank line that came with it
    dropped = false;
    if (!placed && trim(line).starts_with("[")) {
      if (retired) out += "retired = true\n\n";
      placed = true;
    }
    out += line + "\n";
  }
  if (!placed && retired) out += "retired = true\n";
  while (out.ends_with("\n\n")) out.pop_back();
  FORGE_TRY(parse_entry(out, file.string()));
  return write_file_atomic(file, out);
}

Result<bool> adopted(const Entry& entry, const InstructionMix& sealed, const Paths& paths, const Machine& machine) {
  if (entry.signature.empty() || !check_signature(entry.signature, sealed).ok) return false;
  FORGE_TRY_ASSIGN(const OperatorFolder op,
                   load_operator(with_probe_operators(paths, entry.probe_operator), entry.probe_operator, machine.target.family));
  FORGE_TRY_ASSIGN(const KernelPackage baseline, probe_package(entry, ProbeSide::baseline, paths, machine));
  FORGE_TRY_ASSIGN(const std::unique_ptr<Compiler> compiler, find_compiler(machine.target));
  Builder builder(*compiler, paths.home.empty() ? fs::path() : paths.home / "cache");
  const auto image = builder.build(baseline, op.definition, machine.target);
  if (!image) return fail(Code::build_failed, fmt::format("the baseline of entry '{}' does not build: {}", entry.id, image.error().detail));
  FORGE_TRY_ASSIGN(const InstructionMix plain, disassemble_image(*image, machine.target));
  return !check_signature(entry.signature, plain).ok;
}

}  // namespace forge
