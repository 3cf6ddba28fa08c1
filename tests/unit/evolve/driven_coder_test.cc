// SPDX-License-Identifier: Apache-2.0
// A coder that a driver speaks for, in the real flow on a fake gate: what goes on record, resume after any step, replay, budgets.
#include <gtest/gtest.h>

#include <fstream>

#include "agents/scripted_driver.h"
#include "evolve/start.h"
#include "flow_world.h"
#include "util/progress.h"

namespace forge {
namespace {

const PerformanceCondition kHolds{Against::branch_best, -0.008};

std::deque<Result<Turn>> script() {
  Turn talks = calls("read_milestone", "{}");
  talks.calls.push_back({.id = "2", .tool = "search_knowledge", .arguments = R"({"words":"store"})"});
  talks.use = {.input = 100, .cache_read = 20, .cache_write = 3, .output = 7, .dollars = 0.25};
  talks.said = R"({"role":"assistant","note":"\u00e4"})";
  return {talks,
          submits("x"),
          calls("nonsense", "not json"),
          submits("a"),
          calls("propose_finding", R"({"text":"eight is enough","decision":"tile"})"),
          calls("time", R"({"packages":[{"branch_best":true},{"source":"b","plan":"format = 1\n"}]})"),
          submits("b")};
}

struct Driven {
  World world;
  ScriptedArchitect architect{
      {plan_of({milestone(0, {decision("D0.1", "tile", "8")}), milestone(1, {decision("D1.1", "store", "plain")}, kHolds)})}};
  Meter meter;
  ScriptedDriver* driver = nullptr;
  std::unique_ptr<CodingAgent> coder;
  Driven() {
    world.ms = {{"a", 0.9}, {"b", 0.8}};
    world.refused = {{"x", Reason::wrong_result}};
    world.task.revise = false;
    world.task.budget.tokens = 1000;
  }
  Result<RunResult> go(Journal& journal, std::deque<Result<Turn>> turns, bool tokens = false) {
    auto made = std::make_unique<ScriptedDriver>(std::move(turns), tokens);
    driver = made.get();
    world.meter = &meter;
    coder = make_driven_coder(std::move(made), journal, meter, world.task.budget, "");
    return world.go(architect, *coder, journal);
  }
};

std::vector<std::string> lines(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

int count(const Journal& journal, const std::string& type) {
  int n = 0;
  for (const Event& e : journal.events()) n += e.type == type;
  return n;
}

TEST(DrivenCoder, DrivesAPlanToItsEndAndRecordsEveryTurn) {
  Driven d;
  auto journal = Journal::open({}, Journal::Mode::memory);
  const auto result = d.go(*journal, script());
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_TRUE(result->sealed);
  ASSERT_EQ(result->branches.size(), 1u);
  EXPECT_EQ(result->branches[0].hand_ins.size(), 3u);
  EXPECT_EQ(count(*journal, "agent.turn"), 7);
  EXPECT_EQ(count(*journal, "agent.brief"), 2);
  EXPECT_EQ(count(*journal, "agent.tool"), 2);
  EXPECT_EQ(count(*journal, "agent.finding"), 1);
  EXPECT_EQ(d.meter.used.total(), 130);
  EXPECT_DOUBLE_EQ(d.meter.used.dollars, 0.25);
  EXPECT_EQ(d.driver->left, 2);
  ASSERT_EQ(d.driver->asked.size(), 7u);
  EXPECT_EQ(d.driver->asked[0].attempt, 0);
  EXPECT_EQ(d.driver->asked[0].milestone, "M0");
  EXPECT_NE(d.driver->asked[0].brief.find("tile = 8"), std::string::npos);
  EXPECT_FALSE(d.driver->asked[0].starter.empty());
  EXPECT_EQ(d.driver->seen[3].back().results.at(0).error, true);
  EXPECT_EQ(d.driver->seen[2].back().results.at(0).text.rfind(R"({"verdict":"rejected","reason":"wrong_result")", 0), 0u)
      << d.driver->seen[2].back().results.at(0).text;
  EXPECT_EQ(d.driver->seen[1].back().turn.said, script().front()->said) << "what a driver said comes back as it was";
}

TEST(DrivenCoder, ResumesAfterAnyStepWithoutAskingAgain) {
  auto dir = TempDir::make("forge-driven");
  const fs::path whole = dir->path() / "whole.jsonl";
  Driven first;
  std::string wanted;
  {
    auto journal = Journal::open(whole, Journal::Mode::create);
    const auto result = first.go(*journal, script());
    ASSERT_TRUE(result) << result.error().text();
    wanted = result->generation->id;
  }
  const auto all = lines(whole);
  for (std::size_t kept = 1; kept <= all.size(); ++kept) {
    const fs::path file = dir->path() / ("cut" + std::to_string(kept) + ".jsonl");
    std::size_t turns = 0;
    {
      std::ofstream out(file);
      for (std::size_t i = 0; i < kept; ++i) {
        out << all[i] << "\n";
        turns += all[i].find(R"("type":"agent.turn")") != std::string::npos;
      }
    }
    Driven again;
    auto left = script();
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(turns));
    auto journal = Journal::open(file, Journal::Mode::resume);
    ASSERT_TRUE(journal);
    const auto result = again.go(*journal, left);
    ASSERT_TRUE(result) << kept << ": " << result.error().text();
    EXPECT_EQ(result->generation->id, wanted) << kept;
    EXPECT_EQ(again.driver->asked.size() + turns, 7u) << "a turn was asked for twice, or not at all, after " << kept << " events";
    EXPECT_EQ(again.meter.used.total(), 130) << "tokens of recorded turns count too";
    EXPECT_EQ(lines(file).size(), all.size());
  }
}

TEST(DrivenCoder, AReplayAsksNobody) {
  auto dir = TempDir::make("forge-driven");
  const fs::path file = dir->path() / "run.jsonl";
  {
    Driven d;
    auto journal = Journal::open(file, Journal::Mode::create);
    ASSERT_TRUE(d.go(*journal, script()));
  }
  Driven d;
  auto journal = Journal::open(file, Journal::Mode::replay);
  const auto result = d.go(*journal, {});
  const auto concluded = conclude_replay(*journal, result);
  ASSERT_TRUE(concluded);
  EXPECT_TRUE(concluded->same) << concluded->difference;
  EXPECT_EQ(concluded->steps, static_cast<int>(lines(file).size()));
  EXPECT_TRUE(d.driver->asked.empty());
  EXPECT_EQ(d.driver->left, 0) << "a driver that was not called is not left";
  EXPECT_EQ(d.world.asked(), 0);
}

TEST(DrivenCoder, AnErrorOfTheDriverEndsTheMilestoneNotTheRun) {
  Driven d;
  auto journal = Journal::open({}, Journal::Mode::memory);
  const auto result = d.go(*journal, {submits("a"), fail(Code::timeout, "the server never answered")});
  ASSERT_TRUE(result) << result.error().text();
  ASSERT_EQ(result->branches[0].milestones.size(), 2u);
  EXPECT_EQ(result->branches[0].milestones[1].end, MilestoneEnd::gave_up);
  EXPECT_NE(result->branches[0].milestones[1].why.find("the server never answered"), std::string::npos);
  EXPECT_TRUE(result->sealed) << "what was accepted before is confirmed and sealed";
}

TEST(DrivenCoder, InterruptedLeavesNothingOnRecordAndIsResumed) {
  auto dir = TempDir::make("forge-driven");
  const fs::path file = dir->path() / "run.jsonl";
  {
    Driven d;
    auto journal = Journal::open(file, Journal::Mode::create);
    const auto result = d.go(*journal, {submits("a"), fail(Code::interrupted, "nobody is there")});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->stop, Stop::user);
    EXPECT_EQ(count(*journal, "agent.turn"), 1);
    EXPECT_EQ(d.driver->left, 1) << "M0 is over, M1 is not";
  }
  Driven d;
  auto journal = Journal::open(file, Journal::Mode::resume);
  const auto result = d.go(*journal, {submits("b")});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->sealed);
}

TEST(DrivenCoder, ATurnWithoutEndIsEndedAfterFortyIdleOnes) {
  Driven d;
  auto journal = Journal::open({}, Journal::Mode::memory);
  std::deque<Result<Turn>> turns;
  for (int i = 0; i < 60; ++i) turns.push_back(calls("read_milestone", "{}"));
  const auto result = d.go(*journal, turns);
  ASSERT_TRUE(result);
  EXPECT_EQ(d.driver->asked.size(), 40u);
  EXPECT_EQ(result->branches[0].milestones[0].why, "40 turns without a hand-in");
}

TEST(DrivenCoder, TokensThatAreNotGrantedAreNotUsed) {
  Driven d;
  d.world.task.budget.tokens = 0;
  auto journal = Journal::open({}, Journal::Mode::memory);
  ASSERT_TRUE(d.go(*journal, script(), true));
  EXPECT_TRUE(d.driver->asked.empty());

  Driven some;
  some.world.task.budget.tokens = 100;
  auto second = Journal::open({}, Journal::Mode::memory);
  ASSERT_TRUE(some.go(*second, script(), true));
  EXPECT_EQ(some.driver->asked.size(), 1u) << "the first turn used 130";
  EXPECT_EQ(some.driver->asked[0].tokens_left, 100);
}

TEST(DrivenCoder, FinishEndsTheRunWithTheBestThatItHas) {
  Driven d;
  d.world.task.revise = true;
  auto journal = Journal::open({}, Journal::Mode::memory);
  Turn enough = ends("good enough");
  enough.finish = true;
  const auto result = d.go(*journal, {submits("a"), enough});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->stop, Stop::enough);
  EXPECT_TRUE(result->sealed);
  EXPECT_TRUE(d.architect.asked_to_revise.empty());
}

// What the gate refuses to answer because of the kernel is on record too: a replay needs no gate for it.
TEST(DrivenCoder, ErrorsThatAKernelCausesReplay) {
  auto dir = TempDir::make("forge-driven");
  const fs::path file = dir->path() / "run.jsonl";
  const std::deque<Result<Turn>> turns{calls("time", R"({"packages":[{"source":"a","plan":"grid = 0"}]})"),
                                       calls("build", R"({"source":"a","plan":"p"})"), submits("a"), submits("b")};
  {
    Driven d;
    d.world.gate.fail["time"].push_back({.code = Code::bad_input, .message = "launch[0].grid: a negative right"});
    d.world.gate.fail["examine"].push_back({.code = Code::build_failed, .message = "no such name\nkernel.cpp:1: error"});
    auto journal = Journal::open(file, Journal::Mode::create);
    const auto result = d.go(*journal, turns);
    ASSERT_TRUE(result) << result.error().text();
    EXPECT_NE(d.driver->seen[1].back().results[0].text.find("a negative right"), std::string::npos);
    EXPECT_NE(d.driver->seen[2].back().results[0].text.find("kernel.cpp:1: error"), std::string::npos);
    EXPECT_TRUE(result->sealed);
  }
  Driven d;
  auto journal = Journal::open(file, Journal::Mode::replay);
  const auto result = d.go(*journal, {});
  const auto concluded = conclude_replay(*journal, result);
  ASSERT_TRUE(concluded);
  EXPECT_TRUE(concluded->same) << concluded->difference;
}

}  // namespace
}  // namespace forge
