// SPDX-License-Identifier: Apache-2.0
// A table of tools, and what each does with arguments that were read and checked.
#include "agents/tools.h"

#include <fmt/format.h>

#include <functional>

#include "agents/disclosure.h"
#include "agents/tool_arguments.h"
#include "agents/tool_results.h"
#include "util/hash.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr std::size_t kMaxTimed = 6;  // packages of one timing job

// JSON schemas. A package is two texts or a folder; every object is closed.
const std::string kPackageKeys =
    R"("source":{"type":"string","description":"the kernel's source text"},)"
    R"("plan":{"type":"string","description":"the text of launch.toml"},)"
    R"("folder":{"type":"string","description":"instead of both: a folder inside the workspace, relative, that holds the source and launch.toml"})";
std::string object_schema(const std::string& properties, const std::string& required = "") {
  return R"({"type":"object","properties":{)" + properties + R"(},"required":[)" + required + R"(],"additionalProperties":false})";
}
std::string text_key(const std::string& name, const std::string& description) {
  return fmt::format(R"("{}":{{"type":"string","description":"{}"}})", name, description);
}

std::vector<ToolSpec> make_specs() {
  const auto spec = [](const char* name, const char* title, bool read_only, std::string description, std::string schema) {
    return ToolSpec{
        .tool = {.name = name, .description = std::move(description), .schema = std::move(schema)}, .title = title, .read_only = read_only};
  };
  return {
      spec("read_milestone", "Read the milestone", true,
           "The milestone: decisions to implement, what is accepted, the kernel's interface and launch.toml, shapes, tolerance, machine.",
           object_schema(text_key("section", "one section of the brief, by its title, when the whole is too long"))),
      spec(
          "submit", "Hand in a kernel", false,
          "Hands a kernel in: built, checked on public and hidden shapes, timed against the reference. Counts against the budget. The "
          "answer "
          "says accepted, or a named reason.",
          object_schema(
              kPackageKeys +
              R"(,"decisions":{"type":"object","additionalProperties":{"type":"string"},"description":"what this kernel chose, by decision name"})")),
      spec("check", "Check correctness", false,
           "Correctness and mechanism on the gate's shapes, without timing. No hand-in: costs gate time only, accepts nothing.",
           object_schema(kPackageKeys)),
      spec("build", "Build and disassemble", true,
           "Builds and admits a kernel and shows its instructions: mix, hottest loop, spills; or the compiler's errors. No hand-in.",
           object_schema(kPackageKeys)),
      spec("time", "Time variants", false,
           "Times one to six kernels in one paired job, each against the first, without checking them. For tuning; no hand-in. "
           "{\"branch_best\":true} stands for the best accepted so far.",
           object_schema(R"("packages":{"type":"array","minItems":1,"maxItems":6,"items":{"type":"object","properties":{)" + kPackageKeys +
                             R"(,"branch_best":{"type":"boolean"}},"additionalProperties":false}})",
                         R"("packages")")),
      spec("search_knowledge", "Search the knowledge base", true, "Entries of the knowledge base that hold any of these words.",
           object_schema(text_key("words", "e.g. store bandwidth cache"), R"("words")")),
      spec("read_knowledge", "Read an entry", true, "One entry of the knowledge base, by its id.",
           object_schema(text_key("id", "as search_knowledge or the milestone names it"), R"("id")")),
      spec("propose_finding", "Propose a finding", false,
           "Puts on record what you found out and others should know. It is read by people, and certified before anyone builds on it.",
           object_schema(text_key("text", "the finding, with its figures") + "," + text_key("decision", "the decision that it is about") +
                             "," + text_key("value", "the value that was better or worse"),
                         R"("text")")),
      spec("give_up", "Give up", false, "Ends this milestone without an accepted kernel. The architect then decides otherwise.",
           object_schema(text_key("why", "what stands in the way; it is what the next plan is made from"), R"("why")")),
  };
}

const std::set<std::string> kPackageArguments{"source", "plan", "folder", "file"};

// One call, its arguments already an object.
struct Call {
  Workbench& bench;
  const Arguments& in;
  const std::string& workspace;
  const std::string& family() const { return bench.machine().target.family; }
};

std::string short_hash(const KernelPackage& p) { return package_hash(p).substr(0, 12); }

Result<ToolResult> over(const Call& c) {
  return tool_result({{"verdict", "error"},
                      {"detail", "this milestone takes no more calls: it is accepted, given up, or its budget is spent"},
                      {"left", budget_result(c.bench)}},
                     true);
}

// An error that the caller can do something about becomes an answer; the rest is the world's.
Result<ToolResult> answer_or_error(const Error& e) {
  if (e.code == Code::bad_input || e.code == Code::unsupported || e.code == Code::build_failed) return refusal(e);
  return fail(e);
}

Result<ToolResult> submit(const Call& c) {
  std::set<std::string> keys = kPackageArguments;
  keys.insert("decisions");
  FORGE_TRY(c.in.only(keys));
  FORGE_TRY_ASSIGN(const KernelPackage package, c.in.package(c.family()));
  FORGE_TRY_ASSIGN(const Decisions decisions, c.in.decisions());
  if (!c.bench.may_go_on()) return over(c);
  const Result<Verdict> v = c.bench.submit(package, decisions);
  if (!v) return answer_or_error(v.error());
  Json out = verdict_result(c.bench, *v);
  if (!v->build_log.empty()) out["build_log"] = log_result(v->build_log, c.workspace, "build-" + short_hash(package));
  return tool_result(std::move(out));
}

Result<ToolResult> check(const Call& c) {
  FORGE_TRY(c.in.only(kPackageArguments));
  FORGE_TRY_ASSIGN(const KernelPackage package, c.in.package(c.family()));
  if (!c.bench.may_go_on()) return over(c);
  const Result<Verdict> v = c.bench.check(package);
  if (!v) return answer_or_error(v.error());
  Json out = check_result(c.bench, *v);
  if (!v->build_log.empty()) out["build_log"] = log_result(v->build_log, c.workspace, "build-" + short_hash(package));
  return tool_result(std::move(out));
}

Result<ToolResult> build(const Call& c) {
  FORGE_TRY(c.in.only(kPackageArguments));
  FORGE_TRY_ASSIGN(const KernelPackage package, c.in.package(c.family()));
  if (!c.bench.may_go_on()) return over(c);
  const Result<Evidence> e = c.bench.examine(package);
  if (e) return tool_result(evidence_result(c.bench, *e));
  if (e.error().code != Code::build_failed) return answer_or_error(e.error());
  const std::string& text = e.error().message;  // a sentence, then the compiler's log
  const std::size_t line = text.find('\n');
  Json out{{"verdict", "not built"}, {"detail", text.substr(0, line)}};
  if (line != std::string::npos) out["build_log"] = log_result(text.substr(line + 1), c.workspace, "build-" + short_hash(package));
  return tool_result(std::move(out), true);
}

Result<ToolResult> time(const Call& c) {
  FORGE_TRY(c.in.only({"packages"}));
  FORGE_TRY_ASSIGN(const auto items, list_of(c.in, "packages", 1, kMaxTimed));
  std::vector<KernelPackage> packages;
  std::set<std::string> keys = kPackageArguments;
  keys.insert("branch_best");
  for (const Arguments& item : items) {
    FORGE_TRY(item.only(keys));
    if (item.has("branch_best") && item.value()["branch_best"] == Json(true)) {
      const auto best = c.bench.branch_best();
      if (!best)
        return refusal({.code = Code::bad_input, .message = "nothing is accepted yet", .fix = "give all packages as texts or folders"});
      packages.push_back(*best);
      continue;
    }
    FORGE_TRY_ASSIGN(KernelPackage package, item.package(c.family()));
    packages.push_back(std::move(package));
  }
  if (!c.bench.may_go_on()) return over(c);
  const auto timed = c.bench.time(packages);
  if (!timed) return answer_or_error(timed.error());
  Json rows = Json::array();
  int ran = 0;
  for (std::size_t i = 0; i < timed->size(); ++i) {
    const Diagnostic& d = (*timed)[i];
    Json row{{"package", i}};
    if (d.ran)
      row["seconds"] = d.seconds, row["times_as_fast_as_first"] = d.against_first;
    else
      row["problem"] = disclose(d.problem, c.bench.definition(), c.bench.task_file());
    ran += d.ran;
    rows.push_back(std::move(row));
  }
  return tool_result({{"verdict", ran == 0 ? "none ran" : "timed"},
                      {"checked", false},
                      {"noise_floor_percent", c.bench.noise_floor() * 100},
                      {"packages", rows},
                      {"left", budget_result(c.bench)}});
}

// The brief may be longer than a result: then it is given by its sections.
Result<ToolResult> read_milestone(const Call& c) {
  FORGE_TRY(c.in.only({"section"}));
  FORGE_TRY_ASSIGN(const std::string wanted, c.in.text("section", false, 100));
  std::vector<std::pair<std::string, std::string>> sections;
  for (const std::string& line : split(brief_of(c.bench), '\n')) {
    if (sections.empty() || line.rfind("## ", 0) == 0) sections.emplace_back(line.substr(line.find(' ') + 1), "");
    sections.back().second += line + "\n";
  }
  Json out{{"verdict", "milestone"}, {"left", budget_result(c.bench)}, {"brief", ""}, {"other_sections", Json::array()}};
  std::string text;
  std::vector<std::string> names;
  for (const auto& [title, body] : sections) {
    names.push_back(title);
    const bool fits = dump(text + body).size() + 1200 < kMaxResult;
    if (wanted.empty() ? fits && out["other_sections"].empty() : title == wanted)
      text += body;
    else
      out["other_sections"].push_back(title);
  }
  if (text.empty())
    return refusal({.code = Code::not_found, .message = "the brief has no such section", .fix = "its sections: " + join(names, " | ")});
  out["brief"] = text;
  return tool_result(std::move(out));
}

Result<ToolResult> search_knowledge(const Call& c) {
  FORGE_TRY(c.in.only({"words"}));
  FORGE_TRY_ASSIGN(const std::string words, c.in.text("words", true, 400));
  Json rows = Json::array();
  for (const Entry& e : c.bench.search(words)) {
    const EntryState state = state_on(e, c.bench.machine().device_class);
    if (state == EntryState::retired) continue;
    rows.push_back({{"id", e.id}, {"title", e.title}, {"state_here", name(state)}});
    if (rows.size() == 12) break;
  }
  const std::string verdict = rows.empty() ? "nothing found" : fmt::format("{} found", rows.size());
  return tool_result({{"verdict", verdict}, {"entries", rows}});
}

Result<ToolResult> read_knowledge(const Call& c) {
  FORGE_TRY(c.in.only({"id"}));
  FORGE_TRY_ASSIGN(const std::string id, c.in.text("id", true, 200));
  for (const Entry& e : c.bench.search(id)) {
    if (e.id != id || e.retired) continue;
    Json out{{"verdict", "entry"},
             {"id", e.id},
             {"title", e.title},
             {"state_here", name(state_on(e, c.bench.machine().device_class))},
             {"mechanism", e.mechanism}};
    for (const Certification& k : e.evidence)
      if (k.device_class == c.bench.machine().device_class && k.applicable) out["effect_here"] = k.effect.mid;
    if (!e.symptoms.empty()) out["symptoms"] = e.symptoms;
    if (!e.limitations.empty()) out["limitations"] = e.limitations;
    for (const Advice& a : e.advice)
      out["advice"].push_back({{"decision", a.decision}, {"value", a.value}, {"when", a.when.text}, {"because", a.because}});
    out["origin"] = e.origin;
    return tool_result(std::move(out));
  }
  return refusal({.code = Code::not_found, .message = "no entry has this id", .fix = "search_knowledge lists ids"});
}

Result<ToolResult> propose_finding(const Call& c) {
  FORGE_TRY(c.in.only({"text", "decision", "value"}));
  FORGE_TRY(c.in.text("text", true));
  FORGE_TRY(c.in.text("decision", false, 200));
  FORGE_TRY(c.in.text("value", false, 200));
  return tool_result({{"verdict", "recorded"}, {"detail", "the finding is in the run's record"}});
}

Result<ToolResult> give_up(const Call& c) {
  FORGE_TRY(c.in.only({"why"}));
  FORGE_TRY_ASSIGN(const std::string why, c.in.text("why", true, 2000));
  if (!c.bench.may_go_on()) return over(c);
  c.bench.give_up(why);
  return tool_result({{"verdict", "given up"}, {"milestone_over", true}});
}

using Tool = Result<ToolResult> (*)(const Call&);
const std::vector<std::pair<std::string, Tool>> kTools{{"read_milestone", read_milestone},
                                                       {"submit", submit},
                                                       {"check", check},
                                                       {"build", build},
                                                       {"time", time},
                                                       {"search_knowledge", search_knowledge},
                                                       {"read_knowledge", read_knowledge},
                                                       {"propose_finding", propose_finding},
                                                       {"give_up", give_up}};

}  // namespace

const std::vector<ToolSpec>& workbench_tools() {
  static const std::vector<ToolSpec> kSpecs = make_specs();
  return kSpecs;
}

Result<ToolResult> call_tool(Workbench& bench, const ToolCall& asked, const std::string& workspace) {
  FORGE_TRY_ASSIGN(const ToolCall call, ready_call(asked, workspace));
  std::vector<std::string> names;
  for (const auto& [name, tool] : kTools) names.push_back(name);
  for (const auto& [name, tool] : kTools) {
    if (name != call.tool) continue;
    const Result<Arguments> arguments = Arguments::read(call.arguments);
    if (!arguments) return refusal(arguments.error());
    if (arguments->has("refused"))
      return refusal({.code = Code::bad_input, .message = arguments->text("refused", false).value_or("the arguments were refused")});
    Result<ToolResult> result = tool({.bench = bench, .in = *arguments, .workspace = workspace});
    if (!result && result.error().code == Code::bad_input) return refusal(result.error());
    return result;
  }
  return refusal({.code = Code::not_found, .message = "there is no such tool", .fix = "the tools are " + join(names, ", ")});
}

}  // namespace forge
