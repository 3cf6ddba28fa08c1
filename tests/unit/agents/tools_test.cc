// SPDX-License-Identifier: Apache-2.0
// The workbench as tools: hostile arguments are answered, never obeyed; results are short, valid and keep the secrets.
#include "agents/tools.h"

#include <gtest/gtest.h>

#include <fstream>

#include "agents/disclosure.h"
#include "core/json_io.h"
#include "util/fs.h"
#include "util/text.h"

namespace forge {
namespace {

// A bench with planted secrets in everything that an agent is not to see.
struct Bench final : Workbench {
  Plan m_plan;
  Milestone m_milestone;
  Definition m_definition;
  TaskFile m_task_file;
  Machine m_machine;
  Entry entry;
  std::vector<KernelPackage> handed_in, timed;
  std::vector<std::pair<std::string, std::string>> decisions;
  std::string gave_up;
  Verdict answer = Verdict::rejected(Reason::wrong_result, "");
  Result<Evidence> seen = Evidence{};
  bool over = false;

  Bench() {
    m_definition.name = "softmax";
    m_definition.description = "softmax of rows";
    m_definition.axes = {{.name = "rows"}, {.name = "columns", .constant = true, .value = 4096}};
    m_definition.inputs = {{.name = "x", .shape = {"rows", "columns"}}};
    m_definition.outputs = {{.name = "y", .shape = {"rows", "columns"}}};
    m_task_file.timed.axes = {{"rows", 4096}};
    m_task_file.workloads = {{.name = "odd", .axes = {{"rows", 67}}}};
    m_task_file.judges = {{.output = "y", .kind = JudgeKind::relative, .tolerance = 2e-5, .source = "a paper"}};
    m_machine.target = {.name = "cpu:x86-64-avx2", .family = "cpu", .vector_bits = 256, .flags = {"-march=x86-64-v3"}};
    m_machine.device_class = "cpu:test";
    m_machine.boot_id = "SECRET-boot";
    m_machine.environment = {{"vault", "SECRET-environment"}};
    m_milestone.id = "M0";
    m_milestone.title = "structure";
    m_milestone.decisions = {
        {.id = "D0.1", .name = "store", .choice = "nontemporal", .evidence = {{true, "the output is large"}}, .cites = {"nt-store"}}};
    m_milestone.acceptance.mechanism.all = {{.mnemonic = "vmovnt*"}};
    entry.id = "nt-store";
    entry.title = "stores";
    entry.mechanism = "whole lines";
    entry.folder = "/SECRET/vault/folder";
    entry.evidence = {{.device_class = "other", .device = "SECRET-device", .compiler = "SECRET-compiler"}};
  }
  const Plan& plan() const override { return m_plan; }
  const Milestone& milestone() const override { return m_milestone; }
  const Definition& definition() const override { return m_definition; }
  const Machine& machine() const override { return m_machine; }
  const TaskFile& task_file() const override { return m_task_file; }
  double noise_floor() const override { return 0.004; }
  std::optional<KernelPackage> branch_best() const override { return std::nullopt; }
  std::vector<std::pair<std::string, std::string>> branch_decisions() const override { return {}; }
  std::uint64_t seed() const override { return 777000777; }  // planted
  Result<Verdict> submit(const KernelPackage& p, const std::vector<std::pair<std::string, std::string>>& d) override {
    handed_in.push_back(p);
    decisions = d;
    return answer;
  }
  Result<Verdict> check(const KernelPackage& p) override {
    handed_in.push_back(p);
    return answer;
  }
  Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>& packages) override {
    timed = packages;
    std::vector<Diagnostic> out(packages.size(), Diagnostic{.label = "SECRET-label", .ran = true, .seconds = 1e-3});
    if (out.size() > 1) out[1] = {.ran = false, .problem = "crashed: rows=911, heavy_tailed: signal 11"};
    return out;
  }
  Result<Evidence> examine(const KernelPackage&) override { return seen; }
  EntryList search(const std::string& words) const override {
    return words.find("store") == std::string::npos ? EntryList{} : EntryList({entry});
  }
  bool may_go_on() const override { return !over && gave_up.empty(); }
  BudgetLeft left() const override { return {.hand_ins = 9, .gate_seconds = 100, .wall_seconds = 1000}; }
  void give_up(const std::string& why) override { gave_up = why; }
};

const std::vector<std::string> kSecrets{"SECRET", "777000777", "911"};

ToolResult ask(Bench& bench, const std::string& tool, const std::string& arguments, const std::string& workspace = "") {
  const auto result = call_tool(bench, {.id = "1", .tool = tool, .arguments = arguments}, workspace);
  EXPECT_TRUE(result) << (result ? "" : result.error().text());
  EXPECT_LT(result->text.size(), 8192u);
  EXPECT_EQ(utf8_prefix(result->text), result->text.size());
  const Json j = Json::parse(result->text, nullptr, false);
  EXPECT_TRUE(j.is_object()) << result->text;
  EXPECT_EQ(j.begin().key(), "verdict") << result->text;
  for (const std::string& secret : kSecrets) EXPECT_EQ(result->text.find(secret), std::string::npos) << result->text;
  return *result;
}

const std::string kPackage = R"("source":"int x;","plan":"format = 1")";

TEST(Tools, SchemasAreClosedObjectsAndEveryToolIsThere) {
  std::vector<std::string> names;
  for (const ToolSpec& t : workbench_tools()) {
    names.push_back(t.tool.name);
    const Json schema = Json::parse(t.tool.schema, nullptr, false);
    ASSERT_TRUE(schema.is_object()) << t.tool.schema;
    EXPECT_EQ(schema["type"], "object");
    EXPECT_EQ(schema["additionalProperties"], false);
    EXPECT_FALSE(t.title.empty());
    Bench bench;
    ask(bench, t.tool.name, "{}");  // is known
  }
  EXPECT_EQ(join(names, " "), "read_milestone submit check build time search_knowledge read_knowledge propose_finding give_up");
}

TEST(Tools, HostileArgumentsAreAnsweredWithHowToDoItRight) {
  const std::string long_text(1100000, 'a');
  struct Case {
    std::string tool, arguments, says;
  };
  const std::vector<Case> cases{
      {"submit", "", "'source' is missing"},
      {"submit", "null", "no JSON object"},
      {"submit", "[1]", "no JSON object"},
      {"submit", "{\"source\":", "no JSON"},
      {"submit", std::string(300000, '['), "no JSON"},
      {"submit", R"({"folder":)" + std::string(2000000, '[') + std::string(2000000, ']') + "}", "nested deeper"},
      {"submit", R"({"source":"x"})", "'plan' is missing"},
      {"submit", R"({"source":1,"plan":"p"})", "'source' is no string"},
      {"submit", R"({"source":"  ","plan":"p"})", "'source' is empty"},
      {"submit", R"({"sorce":"x","plan":"p"})", "did you mean 'source'"},
      {"submit", R"({"source":"a\u0000b","plan":"p"})", "NUL"},
      {"submit", "{\"source\":\"a\xff\",\"plan\":\"p\"}", "not UTF-8"},
      {"submit", "{\"source\":\"" + long_text + "\",\"plan\":\"p\"}", "at most 1048576"},
      {"submit", "{" + kPackage + R"(,"decisions":["a"]})", "'decisions' is no object"},
      {"submit", "{" + kPackage + R"(,"decisions":{"a":{"b":1}}})", "no short text"},
      {"submit", "{" + kPackage + R"(,"folder":"M0"})", "given twice"},
      {"submit", R"({"folder":"M0"})", "no workspace"},
      {"submit", R"({"source":"x","plan":"p","file":"kernel.cu"})", "kernel.cpp"},
      {"time", "{}", "'packages'"},
      {"time", R"({"packages":[]})", "'packages'"},
      {"time", R"({"packages":[1]})", "no object"},
      {"time", R"({"packages":[{},{},{},{},{},{},{}]})", "'packages'"},
      {"time", R"({"packages":[{"branch_best":true}]})", "nothing is accepted yet"},
      {"search_knowledge", R"({"words":["a"]})", "'words' is no string"},
      {"read_knowledge", R"({"id":"../../vault"})", "no entry"},
      {"give_up", "{}", "'why' is missing"},
      {"propose_finding", R"({"text":")" + std::string(5000, 'x') + R"("})", "at most 4000"},
      {"read_vault", "{}", "no such tool"},
      {std::string("a\0b", 3), "{}", "no such tool"},
      {"", "{}", "no such tool"},
  };
  Bench bench;
  for (const Case& c : cases) {
    const ToolResult r = ask(bench, c.tool, c.arguments);
    EXPECT_TRUE(r.error) << c.tool << " " << c.arguments.substr(0, 80);
    EXPECT_NE(r.text.find(c.says), std::string::npos) << c.tool << " " << c.arguments.substr(0, 80) << ": " << r.text;
  }
  EXPECT_TRUE(bench.handed_in.empty());
  EXPECT_TRUE(bench.gave_up.empty());
}

TEST(Tools, AFolderIsReadInsideTheWorkspaceOnly) {
  auto dir = TempDir::make("forge-tools");
  const fs::path space = dir->path() / "space", outside = dir->path() / "outside";
  for (const auto& folder : {space / "M0", space / "bad", outside}) {
    ASSERT_TRUE(make_dirs(folder));
    ASSERT_TRUE(write_file_atomic(folder / "kernel.cpp", folder == outside ? "SECRET" : "int good;"));
    ASSERT_TRUE(write_file_atomic(folder / "launch.toml", "format = 1"));
  }
  fs::create_directory_symlink(outside, space / "link");
  fs::remove(space / "bad" / "kernel.cpp");
  fs::create_symlink(outside / "kernel.cpp", space / "bad" / "kernel.cpp");
  ASSERT_TRUE(write_file_atomic(space / "M0" / "notes.md", "mine"));
  Bench bench;
  EXPECT_FALSE(ask(bench, "submit", R"({"folder":"M0"})", space.string()).error);
  ASSERT_EQ(bench.handed_in.size(), 1u);
  EXPECT_EQ(bench.handed_in[0].source, "int good;");
  for (const std::string folder : {"../outside", "link", "bad", "M0/../../outside", "nothing", "M0/kernel.cpp"}) {
    EXPECT_TRUE(ask(bench, "submit", dump(Json{{"folder", folder}}), space.string()).error) << folder;
    EXPECT_TRUE(ask(bench, "time", dump(Json{{"packages", Json::array({Json{{"folder", folder}}})}}), space.string()).error) << folder;
  }
  EXPECT_TRUE(ask(bench, "submit", dump(Json{{"folder", outside.string()}}), space.string()).error) << "absolute";
  EXPECT_EQ(bench.handed_in.size(), 1u);
}

TEST(Tools, AnAnswerHasTheVerdictTheReasonAndTheFigures) {
  Bench bench;
  Measurement m;
  m.seconds = 1.23e-3;
  m.floor.ratio = 0.004;
  m.pairs = {{.against = "reference", .comparison = Comparison::faster, .speedup = {1.1, 1.2, 1.3}, .pairs = 20}};
  bench.answer = Verdict::missed(Reason::too_slow, "1.2 where 1.3 is needed", {.checks = 12, .worst = 0.25}, m);
  const Json j = Json::parse(ask(bench, "submit", "{" + kPackage + R"(,"decisions":{"tile":"8","n":4}})").text);
  EXPECT_EQ(j["verdict"], "rejected");
  EXPECT_EQ(j["reason"], "too_slow");
  EXPECT_EQ(j["timing"][0]["speedup"], 1.2);
  EXPECT_EQ(j["timing"][0]["interval_95"][1], 1.3);
  EXPECT_EQ(j["left"]["hand_ins"], 9);
  EXPECT_NE(j["next"].get<std::string>().find("`time`"), std::string::npos);
  EXPECT_EQ(bench.decisions, (std::vector<std::pair<std::string, std::string>>{{"tile", "8"}, {"n", "4"}}));
}

TEST(Tools, HiddenShapesAreStruckOut) {
  Bench bench;
  for (const std::string detail : {"y[910, 5]: 0.5, expected 0.25 +- 1e-06; 911 elements hold the poison that was there before the call; "
                                   "of 3731456 elements (workload rows=911, heavy_tailed)",
                                   "rows=911, normal: a read 16 bytes past the end of x",
                                   "the outputs answer the content of 1 call(s) ago (workload rows=911, normal) (in a timed call)"}) {
    bench.answer = Verdict::rejected(Reason::wrong_result, detail);
    const std::string text = ask(bench, "submit", "{" + kPackage + "}").text;
    for (const char* number : {"910", "3731456", "911"}) EXPECT_EQ(text.find(number), std::string::npos) << text;
    EXPECT_NE(text.find("a shape that is not shown"), std::string::npos) << text;
    ask(bench, "check", "{" + kPackage + "}");
  }
  const std::string open = "y[66, 5]: 0.5, expected 0.25 (workload rows=67, normal)";
  EXPECT_EQ(disclose(open, bench.m_definition, bench.m_task_file), open);
  const std::string longer = disclose("wrong (workload rows=670, normal)", bench.m_definition, bench.m_task_file);
  EXPECT_EQ(longer.find("670"), std::string::npos) << "a public shape's label is no prefix of another's";
  ask(bench, "time", "{\"packages\":[{" + kPackage + "},{" + kPackage + "}]}");  // its second one broke on a hidden shape
}

TEST(Tools, LongLogsAreFilesAndTheAnswerStaysShort) {
  auto dir = TempDir::make("forge-tools");
  Bench bench;
  std::string log;
  for (int i = 0; i < 3000; ++i) log += "kernel.cpp:" + std::to_string(i) + ": error: \"\xc3\xa4\" is wrong\n";
  bench.seen = fail(Code::build_failed, "'ä' was not declared\n" + log);
  const ToolResult r = ask(bench, "build", "{" + kPackage + "}", dir->path().string());
  EXPECT_TRUE(r.error);
  EXPECT_NE(r.text.find("'ä' was not declared"), std::string::npos);
  const Json j = Json::parse(r.text);
  EXPECT_NE(j["build_log"]["more"].get<std::string>().find("logs/build-"), std::string::npos);
  int files = 0;
  for (const auto& f : fs::directory_iterator(dir->path() / "logs")) {
    EXPECT_EQ(*read_file(f.path()), log);
    ++files;
  }
  EXPECT_EQ(files, 1);
  // A trap where the log goes: the link is not followed, the answer is the same.
  fs::remove_all(dir->path() / "logs");
  ASSERT_TRUE(make_dirs(dir->path() / "elsewhere"));
  fs::create_directory_symlink(dir->path() / "elsewhere", dir->path() / "logs");
  EXPECT_EQ(ask(bench, "build", "{" + kPackage + "}", dir->path().string()).text, r.text);
  EXPECT_TRUE(fs::is_empty(dir->path() / "elsewhere"));
}

TEST(Tools, EverythingLongIsCutToFit) {
  Bench bench;
  Evidence e;
  for (int i = 0; i < 400; ++i) e.notes.push_back("a note of some length, number " + std::to_string(i));
  for (int i = 0; i < 400; ++i) e.metrics["metric_" + std::to_string(i) + "x"] = 1.0 / 3;
  e.mix.loops = {{.symbol = std::string(3000, 's'), .listing = std::string(50000, 'v')}};
  bench.seen = e;
  ask(bench, "build", "{" + kPackage + "}");
  bench.answer = Verdict::rejected(Reason::plan_invalid, std::string(100000, '"'));
  ask(bench, "submit", "{" + kPackage + "}");
  bench.m_milestone.decisions[0].expected_effect = std::string(9000, '\n');
  bench.m_definition.description = std::string(9000, 'd');
  const Json j = Json::parse(ask(bench, "read_milestone", "{}").text);
  ASSERT_FALSE(j["other_sections"].empty());
  ask(bench, "read_milestone", dump(Json{{"section", j["other_sections"][0]}}));
}

TEST(Tools, AMilestoneThatIsOverTakesNoMoreCalls) {
  Bench bench;
  EXPECT_FALSE(ask(bench, "give_up", R"({"why":"no registers"})").error);
  EXPECT_EQ(bench.gave_up, "no registers");
  for (const std::string tool : {"submit", "check", "build"}) EXPECT_TRUE(ask(bench, tool, "{" + kPackage + "}").error);
  EXPECT_TRUE(ask(bench, "give_up", R"({"why":"again"})").error);
  EXPECT_EQ(bench.gave_up, "no registers");
  EXPECT_TRUE(bench.handed_in.empty());
}

TEST(Tools, TheBriefTellsAStrangerAllAndNoSecret) {
  Bench bench;
  const std::string brief = brief_of(bench);
  for (const std::string needed :
       {"M0 structure", "store = nontemporal", "the output is large", "vmovnt*", "softmax of rows", "input `x`: float32 [rows, columns]",
        "columns` = 4096", "struct forge_args", "const float* x;", "extern \"C\" void softmax(const forge_args* a, const forge_block* b)",
        "[[launch]]", "rows = 4096", "rows = 67", "|out - exact| <= 0 + 2e-05 |exact|", "-march=x86-64-v3", "nt-store", "whole lines",
        "hand-ins that are left: 9"})
    EXPECT_NE(brief.find(needed), std::string::npos) << needed << "\n" << brief;
  for (const std::string& secret : kSecrets) EXPECT_EQ(brief.find(secret), std::string::npos) << brief;
  EXPECT_GT(brief.size(), 3000u);
  EXPECT_LT(brief.size(), 9000u);
}

TEST(Tools, KnowledgeIsFoundAndRead) {
  Bench bench;
  EXPECT_NE(ask(bench, "search_knowledge", R"({"words":"store"})").text.find("nt-store"), std::string::npos);
  EXPECT_NE(ask(bench, "search_knowledge", R"({"words":"zzz"})").text.find("nothing found"), std::string::npos);
  EXPECT_NE(ask(bench, "read_knowledge", R"({"id":"nt-store"})").text.find("whole lines"), std::string::npos);
}

}  // namespace
}  // namespace forge
