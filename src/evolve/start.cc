// SPDX-License-Identifier: Apache-2.0
// The real parts put together around run(): a new run, the resume of one, and its replay. A replay gets a gate that refuses to
// be asked; task, machine and heritage come from the record's first event, so that it measures and probes nothing.
#include "evolve/start.h"

#include <fmt/format.h>

#include <algorithm>

#include "agents/seats.h"
#include "build/build.h"
#include "device/survey.h"
#include "evolve/evolve.h"
#include "evolve/run_json.h"
#include "util/text.h"
#include "vault/vault.h"

namespace forge {

namespace {

class RefusingGate final : public Gate {
 public:
  Result<ReferenceInfo> open() override { return refuse(); }
  Result<Evidence> analyse() override { return refuse(); }
  Result<NoiseFloor> measure_floor() override { return refuse(); }
  Result<Verdict> submit(const Submission&) override { return refuse(); }
  Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>&) override { return refuse(); }
  Result<Evidence> examine(const KernelPackage&) override { return refuse(); }
  Result<Verdict> confirm(const KernelPackage&, const std::vector<Signature>&) override { return refuse(); }
  Result<Verdict> against_expert(const KernelPackage&) override { return refuse(); }
  Result<Verdict> against(const KernelPackage&, const KernelPackage&) override { return refuse(); }

 private:
  static tl::unexpected<Error> refuse() { return fail(Code::diverged, "a replay asked the gate for a measurement"); }
};

// What the record's first event says.
struct Recorded {
  Task task;
  Machine machine;
  Heritage heritage;
  std::string reference_id;
};

Result<Recorded> read_start(const std::vector<Event>& events, const std::string& file) {
  if (events.empty() || events.front().type != "run.start")
    return fail(Error{.code = Code::not_found,
                      .message = "the journal holds nothing to go on with",
                      .file = file,
                      .line = 1,
                      .field = {},
                      .fix = "start a new run; this folder can be deleted"});
  FORGE_TRY_ASSIGN(const Json request, parse_json(events.front().request, file));
  for (const char* key : {"task", "machine", "heritage"})
    if (!request.contains(key))
      return fail(Error{
          .code = Code::bad_input, .message = "run.start lacks a field", .file = file, .line = 1, .field = key, .fix = "start a new run"});
  Recorded out;
  FORGE_TRY_ASSIGN(out.task, read_task(request["task"], file));
  FORGE_TRY_ASSIGN(out.machine, read_machine(request["machine"], file));
  FORGE_TRY_ASSIGN(out.heritage, read_heritage(request["heritage"]));
  for (const Event& e : events)
    if (e.type == "gate.open") {
      FORGE_TRY_ASSIGN(const Json response, parse_json(e.response, file));
      FORGE_TRY_ASSIGN(const ReferenceInfo info, read_reference(response));
      if (info.present) out.reference_id = info.id;
    }
  return out;
}

// Operator, knowledge and agents: the same for a run, a resume and a replay.
struct Assembly {
  OperatorFolder op;
  KnowledgeBase knowledge;
  Seats seats;
};
Result<Assembly> assemble(const Paths& paths, const Task& task, const Machine& machine, Journal& journal, const SeatOptions& options) {
  Assembly a;
  FORGE_TRY_ASSIGN(a.op, load_operator(paths, task.operator_name, machine.target.family));
  FORGE_TRY_ASSIGN(a.knowledge, KnowledgeBase::load(paths.data / "knowledge"));
  FORGE_TRY_ASSIGN(a.seats, take_seats(paths, task, machine, journal, options));
  return a;
}

RunParts parts_of(const Assembly& a, const Machine& machine, Gate& gate, Journal& journal, const Heritage& heritage,
                  const std::string& id) {
  RunParts parts;
  parts.gate = &gate;
  parts.architect = a.seats.architect.get();
  parts.coder = a.seats.coder.get();
  parts.meter = a.seats.meter.get();
  parts.knowledge = &a.knowledge;
  parts.journal = &journal;
  parts.op = &a.op;
  parts.machine = &machine;
  parts.heritage = heritage;
  parts.run_id = id;
  return parts;
}

fs::path journal_file(const Store& store, const std::string& id) { return store.run_dir(id) / "journal.jsonl"; }

fs::path workspace_of(const Store& store, const std::string& id) { return store.run_dir(id) / "workspace"; }

bool is_package(const std::string& reference) { return reference.starts_with("package:"); }

// A run keeps what it is measured against: the folder that the task names may change before a resume, or be gone.
fs::path kept_reference(const Store& store, const std::string& id) { return store.run_dir(id) / "reference"; }

// What is no reference is said before there is a run. Whether it runs here the gate finds out.
Result<std::optional<KernelPackage>> check_reference(const Store& store, const Task& task, const OperatorFolder& op) {
  const std::string& r = task.reference;
  const auto bad = [&](const std::string& message, const std::string& fix) {
    return fail(Error{.code = Code::bad_input, .message = message, .file = {}, .line = 0, .field = "reference", .fix = fix});
  };
  if (is_package(r)) {
    FORGE_TRY_ASSIGN(KernelPackage package, read_package_folder(r.substr(8)));
    return std::optional<KernelPackage>(std::move(package));
  }
  if (r.starts_with("gen:")) {
    FORGE_TRY_ASSIGN(const Vault vault, Vault::open(store.home()));
    FORGE_TRY_ASSIGN(const Generation g, vault.find(r.substr(4)));
    if (g.operator_name != task.operator_name || g.target != task.target)
      return bad(fmt::format("{} is a {} for {}, not a {} for {}", r, g.operator_name, g.target, task.operator_name, task.target),
                 "`forge lineage " + task.operator_name + "` shows its own");
  } else if (r.starts_with("expert:")) {
    std::vector<std::string> names;
    for (const auto& [name, plugin] : op.experts) names.push_back(name);
    if (std::find(names.begin(), names.end(), r.substr(7)) == names.end())
      return bad(fmt::format("{} has no expert '{}'", task.operator_name, r.substr(7)), "one of: " + join(names, ", "));
  } else if (r != "expert" && r != "none") {
    return bad(fmt::format("'{}' is no reference", r), "expert, expert:NAME, gen:ID, package:FOLDER or none");
  }
  return std::optional<KernelPackage>();
}

// In an ablation the coder reads what it has to beat: a kernel of our own, never an expert's.
Result<std::optional<KernelPackage>> reference_to_show(const Store& store, const Task& task, const std::string& id) {
  std::optional<KernelPackage> shown;
  if (!task.show_reference) return shown;
  if (is_package(task.reference)) {
    FORGE_TRY_ASSIGN(shown, read_package_folder(kept_reference(store, id)));
    return shown;
  }
  FORGE_TRY_ASSIGN(const Vault vault, Vault::open(store.home()));
  FORGE_TRY_ASSIGN(const Generation generation, vault.find(task.reference.substr(4)));
  shown = generation.package;
  return shown;
}

Result<RunResult> go(const Paths& paths, Store& store, const Task& task, const Machine& machine, const Heritage& heritage,
                     const std::string& reference, const std::string& id, Journal::Mode mode, const Say& say) {
  Task for_gate = task;
  if (!reference.empty()) for_gate.reference = reference;
  if (is_package(task.reference)) for_gate.reference = "package:" + kept_reference(store, id).string();
  FORGE_TRY_ASSIGN(const std::unique_ptr<Gate> gate, make_gate(paths, for_gate, machine, GateOptions{}));
  Result<RunResult> result = fail(Code::internal, "not run");
  {
    FORGE_TRY_ASSIGN(Journal journal, Journal::open(journal_file(store, id), mode));
    FORGE_TRY(store.note_last(id));
    FORGE_TRY_ASSIGN(const Assembly assembly,
                     assemble(paths, task, machine, journal, {.workspace = workspace_of(store, id), .replay = false}));
    RunParts parts = parts_of(assembly, machine, *gate, journal, heritage, id);
    parts.paths = &paths;
    parts.home = store.home();
    FORGE_TRY_ASSIGN(parts.shown_reference, reference_to_show(store, task, id));
    parts.say = say;
    result = run(task, parts);
  }
  // The index is only an index: a run that ended well is not lost because of it.
  if (const Status indexed = store.index_run(id); !indexed && say) say("the index was not updated: " + indexed.error().text());
  if (!result) {
    std::string& fix = result.error().fix;
    const Code code = result.error().code;
    if (fix.empty())
      fix = fmt::format("when the cause is gone, `forge run --resume {}` goes on", id);
    else if (code == Code::disk_full || code == Code::io)
      fix += fmt::format("; then `forge run --resume {}` goes on", id);
  }
  return result;
}

}  // namespace

Result<Heritage> find_heritage(const Store& store, const std::string& reference) {
  Heritage heritage;
  if (reference.rfind("gen:", 0) != 0) return heritage;
  FORGE_TRY_ASSIGN(const Vault vault, Vault::open(store.home()));
  FORGE_TRY_ASSIGN(const Generation parent, vault.find(reference.substr(4)));
  heritage.number = parent.number + 1;
  heritage.parent = parent.id;
  heritage.decisions = parent.decisions;
  return heritage;
}

Result<RunResult> start_run_from(const Paths& paths, Store& store, const Task& asked, const Heritage& heritage, const Say& say) {
  FORGE_TRY_ASSIGN(const Machine machine, survey_machine(asked.target, store.home()));
  Task task = asked;
  task.target = machine.target.name;
  // What is wrong with the task is said before there is a run: first the operator's name, then who works on it, and against what.
  FORGE_TRY_ASSIGN(const OperatorFolder op, load_operator(paths, task.operator_name, machine.target.family));
  FORGE_TRY(check_seats(paths, task, machine));
  FORGE_TRY_ASSIGN(const std::optional<KernelPackage> package, check_reference(store, task, op));
  const std::string id = store.new_run_id(task);
  if (package) FORGE_TRY(write_package_folder(*package, kept_reference(store, id)));
  if (say) say("run " + id);
  return go(paths, store, task, machine, heritage, "", id, Journal::Mode::create, say);
}

Result<RunResult> start_run(const Paths& paths, Store& store, const Task& task, const Say& say) {
  FORGE_TRY_ASSIGN(const Heritage heritage, find_heritage(store, task.reference));
  return start_run_from(paths, store, task, heritage, say);
}

Result<RunResult> resume_run(const Paths& paths, Store& store, const std::string& run_id, const Say& say) {
  FORGE_TRY_ASSIGN(const std::string id, store.resolve_run(run_id));
  const std::string file = journal_file(store, id).string();
  FORGE_TRY_ASSIGN(const std::vector<Event> events, read_journal(file));
  FORGE_TRY_ASSIGN(const Recorded recorded, read_start(events, file));
  FORGE_TRY_ASSIGN(const Machine now, probe_machine(recorded.machine.target));
  if (now.boot_id != recorded.machine.boot_id || now.device_class != recorded.machine.device_class)
    return fail(Error{.code = Code::unsupported,
                      .message = fmt::format("run {} was measured on {} in another boot; times are never compared across boots", id,
                                             recorded.machine.device_class),
                      .file = file,
                      .line = 1,
                      .field = "machine",
                      .fix = fmt::format("start a new run: forge run {}", recorded.task.operator_name)});
  if (say) say(fmt::format("resuming {}: {} recorded steps are repeated from the journal", id, events.size()));
  // The very reference that was chosen then; experts are not compared again.
  const std::string reference = recorded.reference_id.rfind("expert:", 0) == 0 ? recorded.reference_id : "";
  return go(paths, store, recorded.task, recorded.machine, recorded.heritage, reference, id, Journal::Mode::resume, say);
}

Result<ReplayResult> replay_run(const Paths& paths, const Store& store, const std::string& run_id) {
  FORGE_TRY_ASSIGN(const std::string id, store.resolve_run(run_id));
  const std::string file = journal_file(store, id).string();
  FORGE_TRY_ASSIGN(Journal journal, Journal::open(file, Journal::Mode::replay));
  FORGE_TRY_ASSIGN(const Recorded recorded, read_start(journal.events(), file));
  FORGE_TRY_ASSIGN(const Assembly assembly, assemble(paths, recorded.task, recorded.machine, journal, {.workspace = {}, .replay = true}));
  RefusingGate gate;
  RunParts parts = parts_of(assembly, recorded.machine, gate, journal, recorded.heritage, id);
  FORGE_TRY_ASSIGN(parts.shown_reference, reference_to_show(store, recorded.task, id));
  const Result<RunResult> result = run(recorded.task, parts);
  return conclude_replay(journal, result);
}

}  // namespace forge
