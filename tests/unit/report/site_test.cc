// SPDX-License-Identifier: Apache-2.0
// The handlers against a state folder with a recorded run, without a socket.
#include "report/site.h"

#include <gtest/gtest.h>

#include <optional>

#include "core/json_io.h"
#include "core/package.h"
#include "knowledge/knowledge.h"
#include "store/journal.h"
#include "vault/vault.h"

namespace forge {
namespace {

class SiteTest : public ::testing::Test {
 protected:
  TempDir m_home = TempDir::make("forge-site").value();
  std::optional<Journal> m_journal;  // of run r1, still open: it is running

  fs::path run_folder(const std::string& id) { return m_home.path() / "runs" / id; }
  void step(const std::string& type, const std::string& request, const std::string& response) {
    ASSERT_TRUE(m_journal->step(type, request, [&] { return Result<std::string>(response); }));
  }
  void SetUp() override {
    m_journal = Journal::open(run_folder("r1") / "journal.jsonl", Journal::Mode::create).value();
    step(
        "run.start",
        R"({"run":"r1","task":{"operator":"softmax_f32","target":"cpu:x86-64-avx2","reference":"expert","budget":{"candidates":24},"seed":7},"machine":{"model":"<Test & Co>"}})",
        R"({"format":1})");
    step("gate.open", "{}", R"({"present":true,"id":"expert:x","description":"a library","seconds":0.01})");
    step("gate.analyse", "{}", R"({"metrics":{"roofline_seconds":0.005}})");
    step("knowledge.retrieve", "{}",
         R"([{"id":"nt-stores","state":"certified","effect":1.2},{"id":"unused","state":"proposed","effect":1}])");
    step("plan", R"({"revision":0,"milestones":[{"id":"M0","decisions":[{"id":"D","name":"store","choice":"nt","cites":["nt-stores"]}]}]})",
         "null");
    step("branch.start", R"({"revision":0})", "null");
    step("milestone.start", R"({"revision":0,"milestone":"M0","title":"structure"})", "null");
    submit("accepted", "", 0.008, 1.25);
  }
  void submit(const std::string& reason, const std::string& detail, double seconds, double speedup) {
    Json request = {{"revision", 0}, {"milestone", "M0"}, {"sha", "abcdef0123456789"}, {"package", {{"source", "SECRET SOURCE"}}}};
    request["decisions"] = Json::array({Json::array({"store", "nt"})});
    Json response = {{"reason", reason}, {"detail", detail}};
    if (seconds > 0) {
      const Json pair = {{"against", "reference"}, {"speedup", {{"low", speedup - .01}, {"mid", speedup}, {"high", speedup + .01}}}};
      response["measurement"] = {{"seconds", seconds}, {"pairs", Json::array({pair})}};
    }
    step("gate.submit", dump(request), dump(response));
  }
  Site open() { return Site::open(Paths{.data = FORGE_SOURCE_DIR, .plugins = {}, .home = m_home.path()}).value(); }
  static WebReply get(Site& site, const std::string& path) { return site.answer({.path = path, .if_none_match = {}}); }
  static Json json(Site& site, const std::string& path) {
    const WebReply r = get(site, path);
    EXPECT_EQ(r.status, 200) << path << ": " << r.body;
    return Json::parse(r.body, nullptr, false);
  }
};

TEST_F(SiteTest, ARunTellsItsVersionsReferenceMilestoneReasonsAndKnowledge) {
  Site site = open();
  const Json j = json(site, "/api/run/r1");
  EXPECT_EQ(j["state"], "running");
  EXPECT_EQ(j["reference"]["seconds"], 0.01);
  EXPECT_EQ(j["milestone"], "M0");
  EXPECT_EQ(j["milestone_title"], "structure");
  EXPECT_EQ(j["reasons"]["accepted"], 1);
  ASSERT_EQ(j["versions"].size(), 1u);
  EXPECT_EQ(j["versions"][0]["speedup"]["mid"], 1.25);
  EXPECT_EQ(j["best"]["seconds"], 0.008);
  ASSERT_EQ(j["knowledge"].size(), 2u);
  EXPECT_TRUE(j["knowledge"][0]["cited"].get<bool>());
  EXPECT_FALSE(j["knowledge"][1]["cited"].get<bool>());
  EXPECT_EQ(j["chart"]["ceiling_ms"], 5.0);
  EXPECT_EQ(j["chart"]["points"][0]["ms"], 8.0);
}

TEST_F(SiteTest, ARunningRunIsFollowed) {
  Site site = open();
  const std::string before = json(site, "/api/run/last")["version"];
  EXPECT_EQ(json(site, "/api/run/last")["version"], before) << "nothing happened";
  submit("wrong_result", "y[0] <b>off</b>", 0, 0);
  Json j = json(site, "/api/run/last");
  EXPECT_NE(j["version"], before);
  EXPECT_EQ(j["versions"].size(), 2u);
  EXPECT_EQ(j["reasons"]["wrong_result"], 1);
  EXPECT_NE(dump(j["sections"]).find("&lt;b&gt;off"), std::string::npos) << "HTML from the gate's text is escaped";
  m_journal.reset();
  EXPECT_EQ(json(site, "/api/run/r1")["state"], "interrupted");
  m_journal = Journal::open(run_folder("r1") / "journal.jsonl", Journal::Mode::resume).value();
  EXPECT_EQ(json(site, "/api/run/r1")["state"], "running");
}

TEST_F(SiteTest, AFinishedRunSaysHowItEnded) {
  step("run.end", R"({"stop":"exhausted","verdict":"faster","speedup":1.25})", "null");
  Site site = open();
  const Json j = json(site, "/api/run/r1");
  EXPECT_EQ(j["state"], "finished");
  EXPECT_EQ(j["stop"], "exhausted");
}

TEST_F(SiteTest, NoSourceAndNoSeedIsTold) {
  Site site = open();
  for (const char* path : {"/", "/run/r1", "/api/run/r1", "/api/runs", "/lineages", "/api/lineages", "/knowledge", "/api/knowledge"}) {
    const WebReply r = get(site, path);
    EXPECT_EQ(r.status, 200) << path;
    EXPECT_EQ(r.body.find("SECRET"), std::string::npos) << path;
    EXPECT_EQ(r.body.find("\"seed\""), std::string::npos) << path;
  }
}

TEST_F(SiteTest, PagesCarryTheirSectionsAndNoInlineScript) {
  Site site = open();
  const WebReply page = get(site, "/run/r1");
  EXPECT_EQ(page.type, "text/html; charset=utf-8");
  for (const char* text : {"&lt;Test &amp; Co&gt;", "Hand-ins", "nt-stores", "1.250", "data-source=\"/api/run/r1\"", "src=/live.js"})
    EXPECT_NE(page.body.find(text), std::string::npos) << text;
  for (const char* text : {"<script>", " style=", " onclick", "<Test"}) EXPECT_EQ(page.body.find(text), std::string::npos) << text;
  EXPECT_NE(get(site, "/chart.js").body.find("function forgeChart"), std::string::npos);
  EXPECT_FALSE(get(site, "/style.css").body.empty());
}

TEST_F(SiteTest, NothingOutsideTheRunsIsReached) {
  Site site = open();
  ASSERT_TRUE(write_file_atomic(m_home.path() / "journal.jsonl", read_file(run_folder("r1") / "journal.jsonl").value()));
  for (const char* path :
       {"/run/..", "/run/../../etc/passwd", "/run/%2e%2e", "/run/.", "/run/", "/api/run/", "/api/run/..", "/run/r1/../r1", "//", "/run/r1/",
        "/vault", "/index.sqlite", "", "/api", "/run/nobody", "/api/run/r1/run/r1 ", "/style.css/"})
    EXPECT_EQ(get(site, path).status, 404) << path;
  EXPECT_TRUE(Json::parse(get(site, "/api/nothing").body, nullptr, false)["error"].is_string()) << "an error of the JSON is JSON";
}

TEST_F(SiteTest, ADamagedJournalIsSaidAndTheOtherRunsStay) {
  std::string text = read_file(run_folder("r1") / "journal.jsonl").value();
  text.replace(text.find("softmax_f32"), 7, "SOFTMAX");
  ASSERT_TRUE(make_dirs(run_folder("bad")));
  ASSERT_TRUE(write_file_atomic(run_folder("bad") / "journal.jsonl", text));
  Site site = open();
  const WebReply r = get(site, "/api/run/bad");
  EXPECT_EQ(r.status, 409);
  EXPECT_NE(r.body.find("damaged"), std::string::npos) << r.body;
  const Json all = json(site, "/api/runs");
  ASSERT_EQ(all["runs"].size(), 2u);
  EXPECT_EQ(all["runs"][0]["id"], "r1");
  EXPECT_EQ(all["runs"][0]["state"], "running");
  EXPECT_EQ(all["runs"][1]["id"], "bad");
  EXPECT_EQ(all["runs"][1]["state"], "unreadable");
}

TEST_F(SiteTest, AJournalThatIsAFolderIsSaidAndTheOtherRunsStay) {
  ASSERT_TRUE(make_dirs(run_folder("bad") / "journal.jsonl"));
  Site site = open();
  const Json all = json(site, "/api/runs");
  ASSERT_EQ(all["runs"].size(), 2u);
  EXPECT_EQ(all["runs"][1]["state"], "unreadable");
  EXPECT_NE(all["runs"][1]["unreadable"].get<std::string>().find("cannot read"), std::string::npos);
  EXPECT_NE(get(site, "/").body.find("unreadable"), std::string::npos);
}

TEST_F(SiteTest, ADamagedKernelIsSaidAndTheOthersStay) {
  Vault vault = Vault::open(m_home.path()).value();
  Generation g;
  g.operator_name = "softmax_f32", g.target = "cpu:x86-64-avx2", g.run_id = "r1", g.parent = "expert:x";
  g.verdict = Verdict::passed(CorrectnessReport{}, Measurement{});
  std::vector<std::string> ids;
  for (const char* source : {"int one;\n", "int two;\n"}) {
    g.package = {.source_name = "kernel.cpp", .source = source, .plan_text = "format = 1\n", .origin = "a test"};
    g.id = package_hash(g.package);
    ASSERT_TRUE(vault.seal(g));
    ids.push_back(g.id);
  }
  const fs::path file = m_home.path() / "vault/softmax_f32/cpu-x86-64-avx2" / ids[0] / "record.json";
  ASSERT_TRUE(write_file_atomic(file, "{\"format\": <b>"));
  Site site = open();
  const Json j = json(site, "/api/lineages");
  ASSERT_EQ(j["generations"].size(), 1u);
  EXPECT_EQ(j["generations"][0]["id"], ids[1]);
  ASSERT_EQ(j["damaged"].size(), 1u);
  EXPECT_EQ(j["damaged"][0]["id"], ids[0]);
  EXPECT_NE(j["damaged"][0]["problem"].get<std::string>().find(file.string()), std::string::npos);
  const std::string page = get(site, "/lineages").body;
  for (const std::string& text : {file.string(), ids[1].substr(0, 12)}) EXPECT_NE(page.find(text), std::string::npos) << text;
}

TEST_F(SiteTest, ADamagedEntryIsSaidAndTheOthersStay) {
  const TempDir data = TempDir::make().value();
  fs::copy(fs::path(FORGE_SOURCE_DIR) / "knowledge", data.path() / "knowledge", fs::copy_options::recursive);
  const fs::path file = data.path() / "knowledge/cpu/nontemporal-store/entry.toml";
  ASSERT_TRUE(write_file_atomic(file, "format = 1\n<x-y> = 1"));
  auto site = Site::open(Paths{.data = data.path(), .plugins = {}, .home = m_home.path()});
  ASSERT_TRUE(site) << site.error().text();
  const Json j = json(*site, "/api/knowledge");
  ASSERT_EQ(j["damaged"].size(), 1u);
  EXPECT_EQ(j["damaged"][0]["id"], "nontemporal-store");
  const std::string page = get(*site, "/knowledge").body;
  for (const std::string& text : {file.string(), std::string("row-resident")}) EXPECT_NE(page.find(text), std::string::npos) << text;
  EXPECT_EQ(page.find("<x-y>"), std::string::npos);
}

TEST_F(SiteTest, LookingMakesNothing) {
  Site site = open();
  fs::remove_all(m_home.path() / "vault");
  EXPECT_EQ(get(site, "/lineages").status, 200);
  EXPECT_FALSE(fs::exists(m_home.path() / "vault"));
}

TEST_F(SiteTest, AStateFolderThatWentAwayIsSaidAndComesBack) {
  Site site = open();
  const fs::path away = m_home.path().string() + ".away";
  fs::rename(m_home.path(), away);
  for (const char* path : {"/", "/api/runs", "/lineages", "/api/knowledge", "/api/run/r1"}) {
    const WebReply r = get(site, path);
    EXPECT_EQ(r.status, 503) << path;
    EXPECT_NE(r.body.find((m_home.path() / "runs").string()), std::string::npos) << path << ": " << r.body;
  }
  EXPECT_FALSE(fs::exists(m_home.path()));
  fs::rename(away, m_home.path());
  EXPECT_EQ(json(site, "/api/runs")["runs"].size(), 1u);
}

TEST_F(SiteTest, ARunKilledAtOnceIsListedByItsName) {
  ASSERT_TRUE(Journal::open(run_folder("gemm_f32-20261130-014405-3f2a") / "journal.jsonl", Journal::Mode::create));
  ASSERT_TRUE(Journal::open(run_folder("odd") / "journal.jsonl", Journal::Mode::create));
  Site site = open();
  const std::string page = get(site, "/").body;
  EXPECT_NE(page.find(">gemm_f32</td>"), std::string::npos);
  EXPECT_NE(page.find("<a href=\"/run/gemm_f32-20261130-014405-3f2a\">20261130-014405-3f2a</a>"), std::string::npos);
  EXPECT_NE(page.find("<a href=\"/run/odd\">odd</a>"), std::string::npos);
  EXPECT_EQ(get(site, "/run/odd").status, 200) << "a run without an event yet";
}

TEST_F(SiteTest, TheMatrixCountsEveryKindOfUse) {
  ASSERT_TRUE(record_uses(m_home.path(), {{"nt-stores", "softmax_f32", "r1", "", Use::retrieved},
                                          {"nt-stores", "softmax_f32", "r2", "", Use::retrieved},
                                          {"nt-stores", "softmax_f32", "r1", "g", Use::adopted},
                                          {"nt-stores", "gemm_f32", "r3", "", Use::cited}}));
  Site site = open();
  const Json j = json(site, "/api/knowledge");
  EXPECT_EQ(j["operators"], Json::array({"gemm_f32", "softmax_f32"}));
  ASSERT_EQ(j["entries"].size(), 1u);
  EXPECT_EQ(j["entries"][0]["uses"]["softmax_f32"]["retrieved"], 2);
  EXPECT_EQ(j["entries"][0]["uses"]["softmax_f32"]["adopted"], 1);
  EXPECT_EQ(j["entries"][0]["uses"]["gemm_f32"]["cited"], 1);
  EXPECT_NE(get(site, "/knowledge").body.find("<td class=adopted>retrieved 2<br>adopted 1</td>"), std::string::npos);
}

}  // namespace
}  // namespace forge
