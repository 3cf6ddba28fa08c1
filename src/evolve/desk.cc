// SPDX-License-Identifier: Apache-2.0
#include "evolve/desk.h"

#include <fmt/format.h>

#include "core/version.h"
#include "util/progress.h"
#include "vault/vault.h"

namespace forge {

namespace {

constexpr const char* kWhere = "journal";

Json sha_list(const std::vector<KernelPackage>& packages) {
  Json out = Json::array();
  for (const auto& p : packages) out.push_back(package_hash(p));
  return out;
}

Json sha_or_null(const std::optional<KernelPackage>& p) { return p ? Json(package_hash(*p)) : Json(nullptr); }

Json object(const char* key, Json value) {
  Json out = Json::object();
  out[key] = std::move(value);
  return out;
}

}  // namespace

void Desk::say(const std::string& line) const {
  if (m_parts.say && !m_parts.journal->replaying()) m_parts.say(line);
}

Result<Json> Desk::ask(const std::string& type, const Json& request, const Work& work) {
  if (stop_requested()) return fail(Code::interrupted, "stopped");
  const double before = m_parts.journal->elapsed_seconds();
  FORGE_TRY_ASSIGN(const std::string text, m_parts.journal->step(type, dump(request), [&]() -> Result<std::string> {
    FORGE_TRY_ASSIGN(const Json response, work());
    return dump(response);
  }));
  if (type.rfind("gate.", 0) == 0) m_gate_seconds += m_parts.journal->elapsed_seconds() - before;
  return parse_json(text, kWhere);
}

Result<Json> Desk::ask_about_a_kernel(const std::string& type, const Json& request, const Work& work) {
  FORGE_TRY_ASSIGN(Json j, ask(type, request, [&]() -> Result<Json> {
                     Result<Json> answer = work();
                     if (answer) return answer;
                     const Code code = answer.error().code;
                     if (code != Code::build_failed && code != Code::bad_input && code != Code::unsupported) return answer;
                     return Json{{"error", answer.error().text()}, {"code", name(code)}};
                   }));
  if (!j.is_object() || !j.contains("error") || !j["error"].is_string()) return j;
  Code code = Code::build_failed;  // the only one there was before `code` was written
  for (const Code known : {Code::bad_input, Code::unsupported})
    if (j.contains("code") && j["code"] == name(known)) code = known;
  return fail(code, j["error"].get<std::string>());
}

Status Desk::decide(const std::string& type, const Json& request) {
  FORGE_TRY(ask(type, request, [] { return Result<Json>(Json(nullptr)); }));
  return {};
}

Status Desk::start(const Task& task) {
  Json request;
  request["run"] = m_parts.run_id;
  request["task"] = to_json_value(task);
  request["machine"] = to_json_value(*m_parts.machine);
  request["heritage"] = heritage_to_json(m_parts.heritage);
  FORGE_TRY(ask("run.start", request, [&]() -> Result<Json> {
    Json response;
    response["format"] = 1;
    response["forge"] = forge_version();
    response["architect"] = m_parts.architect->identity();
    response["coder"] = m_parts.coder->identity();
    return response;
  }));
  return {};
}

Result<ReferenceInfo> Desk::open() {
  FORGE_TRY_ASSIGN(const Json j, ask("gate.open", Json::object(), [&]() -> Result<Json> {
                     FORGE_TRY_ASSIGN(const ReferenceInfo r, m_parts.gate->open());
                     return reference_to_json(r);
                   }));
  return read_reference(j);
}

Result<NoiseFloor> Desk::measure_floor() {
  FORGE_TRY_ASSIGN(const Json j, ask("gate.floor", Json::object(), [&]() -> Result<Json> {
                     FORGE_TRY_ASSIGN(const NoiseFloor f, m_parts.gate->measure_floor());
                     return to_json_value(f);
                   }));
  return read_noise_floor(j, kWhere);
}

Result<Evidence> Desk::analyse() {
  FORGE_TRY_ASSIGN(const Json j, ask("gate.analyse", Json::object(), [&]() -> Result<Json> {
                     FORGE_TRY_ASSIGN(const Evidence e, m_parts.gate->analyse());
                     return to_json_value(e);
                   }));
  return read_evidence(j, kWhere);
}

Result<std::vector<Retrieved>> Desk::retrieve(const Names& names) {
  Json listed = Json::object();
  for (const auto& [key, value] : names) listed[key] = value;
  FORGE_TRY_ASSIGN(const Json j, ask("knowledge.retrieve", object("names", listed), [&]() -> Result<Json> {
                     return retrieved_to_json(forge::retrieve(*m_parts.knowledge, *m_parts.machine, names));
                   }));
  return read_retrieved(j);
}

Result<Verdict> Desk::submit(const Submission& s, const HandInLabel& label) {
  Json request;
  request["n"] = label.n;
  request["revision"] = label.revision;
  request["milestone"] = s.milestone;
  request["sha"] = package_hash(s.package);
  request["package"] = to_json_value(s.package);
  request["decisions"] = decisions_to_json(label.decisions);
  request["acceptance"] = acceptance_to_json(s.acceptance);
  request["branch_best"] = sha_or_null(s.branch_best);
  request["global_best"] = sha_or_null(s.global_best);
  const double before = m_gate_seconds;
  FORGE_TRY_ASSIGN(const Json j, ask_about_a_kernel("gate.submit", request, [&]() -> Result<Json> {
                     FORGE_TRY_ASSIGN(const Verdict v, m_parts.gate->submit(s));
                     return to_json_value(v);
                   }));
  FORGE_TRY_ASSIGN(Verdict v, read_verdict(j, kWhere));
  m_gate_seconds = std::max(before, m_gate_seconds - v.times.waited);
  m_hand_in_seconds += m_gate_seconds - before;
  ++m_hand_ins;
  return v;
}

Result<std::vector<Diagnostic>> Desk::time(const std::string& purpose, const std::string& milestone,
                                           const std::vector<KernelPackage>& packages) {
  Json request;
  request["purpose"] = purpose;
  request["milestone"] = milestone;
  request["packages"] = sha_list(packages);
  FORGE_TRY_ASSIGN(const Json j, ask_about_a_kernel("gate.time", request, [&]() -> Result<Json> {
                     FORGE_TRY_ASSIGN(const auto diagnostics, m_parts.gate->time(packages));
                     return diagnostics_to_json(diagnostics);
                   }));
  FORGE_TRY_ASSIGN(const std::vector<Diagnostic> timed, read_diagnostics(j, kWhere));
  double best = 0;
  for (std::size_t i = 1; i < timed.size(); ++i)
    if (timed[i].ran) best = std::max(best, timed[i].against_first);
  if (timed.size() > 1) say(fmt::format("{}: {} variants in one job, the best {:.3f}x of the first", purpose, timed.size() - 1, best));
  return timed;
}

Result<Verdict> Desk::check(const Submission& s) {
  Json request;
  request["milestone"] = s.milestone;
  request["package"] = package_hash(s.package);
  FORGE_TRY_ASSIGN(const Json j, ask_about_a_kernel("gate.check", request, [&]() -> Result<Json> {
                     FORGE_TRY_ASSIGN(const Verdict v, m_parts.gate->submit(s));
                     return to_json_value(v);
                   }));
  return read_verdict(j, kWhere);
}

Result<Evidence> Desk::examine(const KernelPackage& package) {
  FORGE_TRY_ASSIGN(const Json j, ask_about_a_kernel("gate.examine", object("package", package_hash(package)), [&]() -> Result<Json> {
                     FORGE_TRY_ASSIGN(const Evidence e, m_parts.gate->examine(package));
                     return object("evidence", to_json_value(e));
                   }));
  if (!j.contains("evidence")) return fail(Code::bad_input, "the journal's record of gate.examine has no evidence");
  return read_evidence(j["evidence"], kWhere);
}

Result<Verdict> Desk::confirm(const KernelPackage& package, const std::vector<Signature>& mechanisms) {
  Json request;
  request["package"] = package_hash(package);
  request["mechanisms"] = Json::array();
  for (const auto& s : mechanisms) request["mechanisms"].push_back(to_json_value(s));
  FORGE_TRY_ASSIGN(const Json j, ask("gate.confirm", request, [&]() -> Result<Json> {
                     FORGE_TRY_ASSIGN(const Verdict v, m_parts.gate->confirm(package, mechanisms));
                     return to_json_value(v);
                   }));
  return read_verdict(j, kWhere);
}

Result<std::optional<Verdict>> Desk::against_expert(const KernelPackage& package) {
  FORGE_TRY_ASSIGN(const Json j, ask("gate.against_expert", object("package", package_hash(package)), [&]() -> Result<Json> {
                     const Result<Verdict> v = m_parts.gate->against_expert(package);
                     if (v) return to_json_value(*v);
                     if (v.error().code != Code::not_found && v.error().code != Code::unsupported) return fail(v.error());
                     return object("error", v.error().message);
                   }));
  if (j.contains("error")) return std::optional<Verdict>();
  FORGE_TRY_ASSIGN(Verdict v, read_verdict(j, kWhere));
  return std::optional<Verdict>(std::move(v));
}

Result<std::vector<std::string>> Desk::adopted(const std::vector<std::string>& cites, const Verdict& confirmation) {
  Json request;
  request["cites"] = cites;
  request["package"] = confirmation.package_sha;
  FORGE_TRY_ASSIGN(const Json j, ask("knowledge.adopted", request, [&]() -> Result<Json> {
                     Json out = Json::array();
                     if (!m_parts.paths) return out;
                     for (const auto& id : cites) {
                       const std::optional<Entry> entry = m_parts.knowledge->find(id);
                       if (!entry) continue;  // retired from the folder since: cannot be recognised any more
                       FORGE_TRY_ASSIGN(const bool is, forge::adopted(*entry, confirmation.mix, *m_parts.paths, *m_parts.machine));
                       if (is) out.push_back(id);
                     }
                     return out;
                   }));
  return j.get<std::vector<std::string>>();
}

// What is promoted gives way to a kernel that is faster in one job with it: the confirmation, if it was the reference; else one more job.
Result<bool> Desk::beats(const Generation& made, const Generation& promoted) const {
  if (made.id == promoted.id) return true;
  const auto faster = [](const PairedTiming* p) { return p && p->comparison == Comparison::faster; };
  if (made.parent == promoted.id) return faster(find_pairing(made.verdict, "reference"));
  const Result<Verdict> v = m_parts.gate->against(made.package, promoted.package);
  if (v) return faster(find_pairing(*v, "rival"));
  if (v.error().code == Code::interrupted) return tl::unexpected(v.error());
  say(fmt::format("gen{} {} cannot be timed here and stays promoted: {}", promoted.number, promoted.id.substr(0, 12), v.error().message));
  return false;
}

Result<Desk::Sealed> Desk::seal(Generation generation) {
  Json request;
  request["number"] = generation.number;
  request["package"] = generation.id;
  request["promote"] = true;  // always: replays compare requests with the record, and journals of earlier versions hold it
  FORGE_TRY_ASSIGN(Json j, ask("vault.seal", request, [&]() -> Result<Json> {
                     generation.date = utc_now();
                     bool promote = true;
                     if (!m_parts.home.empty()) {
                       FORGE_TRY_ASSIGN(Vault vault, Vault::open(m_parts.home));
                       // Of a kernel that is sealed already the vault keeps the earlier record, and that is told.
                       FORGE_TRY_ASSIGN(generation, vault.seal(generation));
                       FORGE_TRY_ASSIGN(const auto before, vault.promoted(generation.operator_name, generation.target));
                       if (before) {
                         FORGE_TRY_ASSIGN(promote, beats(generation, *before));
                       }
                       if (promote) FORGE_TRY(vault.promote(generation.operator_name, generation.target, generation.id));
                     }
                     Json answer = to_json_value(generation);
                     if (!promote) answer["promoted"] = false;
                     return answer;
                   }));
  const bool promoted = !j.contains("promoted");
  j.erase("promoted");
  FORGE_TRY_ASSIGN(Generation recorded, read_generation(j, kWhere));
  return Sealed{std::move(recorded), promoted};
}

Status Desk::propose(const Task& task, const std::vector<Ablation>& ablations) {
  Json listed = Json::array();
  for (const auto& a : ablations)
    listed.push_back(Json{{"decision", a.decision}, {"value", a.value}, {"alternative", a.alternative}, {"effect", a.effect}});
  FORGE_TRY(ask("knowledge.propose", object("ablations", listed), [&]() -> Result<Json> {
    if (m_parts.home.empty()) return Json::array();
    FORGE_TRY_ASSIGN(const auto ids, propose_entries(m_parts.home, task.operator_name, ablations, *m_parts.machine));
    return Json(ids);
  }));
  return {};
}

Status Desk::record_uses(const std::vector<UseRow>& rows) {
  Json listed = Json::array();
  for (const auto& r : rows) listed.push_back(Json{{"entry", r.entry}, {"use", name(r.use)}, {"generation", r.generation}});
  const auto asked = ask("knowledge.uses", object("uses", listed), [&]() -> Result<Json> {
    if (!m_parts.home.empty()) FORGE_TRY(forge::record_uses(m_parts.home, rows));
    return Json(nullptr);
  });
  FORGE_TRY(asked);
  return {};
}

}  // namespace forge
