// SPDX-License-Identifier: Apache-2.0
// A run killed after any journal step resumes to the same result, asks the gate for nothing that is recorded, and a replay repeats
// every decision.
#include <gtest/gtest.h>

#include <fstream>

#include "evolve/start.h"
#include "flow_world.h"
#include "util/fs.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {
namespace {

const PerformanceCondition kNotWorse{Against::branch_best, -0.008};

// One run with everything in it: tuning, refusals, a revision that pays, one that is reverted, a confirmation.
struct Story {
  World world;
  ScriptedArchitect architect;
  ScriptedCoder coder;
  Story()
      : architect(
            {plan_of({milestone(0, {decision("D0.1", "tile", "8")}), milestone(1, {decision("D1.1", "store", "plain")}, kNotWorse)}),
             plan_of({milestone(0, {decision("D0.1", "tile", "8")}), milestone(1, {decision("D1.1", "store", "streaming")}, kNotWorse)}, 1,
                     1),
             plan_of({milestone(0, {decision("D0.1", "tile", "16")})}, 2, 0)}),
        coder({times({"a", "b"}), hands_in("x"), hands_in("a", {{"tile", "8"}}), hands_in("b", {{"tile", "8"}, {"store", "plain"}}),
               hands_in("slow", {{"tile", "8"}, {"store", "streaming"}}), hands_in("c", {{"tile", "8"}, {"store", "streaming"}}),
               hands_in("slow", {{"tile", "16"}})}) {
    world.ms = {{"a", 0.9}, {"b", 0.8}, {"c", 0.7}, {"slow", 1.5}};
    world.refused = {{"x", Reason::wrong_result}};
  }
};

std::string outline(const RunResult& r) {
  std::string out = std::string(name(r.stop)) + " " + (r.generation ? r.generation->id : "none");
  for (const auto& b : r.branches) {
    out += std::string(" | ") + name(b.stop) + (b.reverted ? " reverted" : "");
    for (const auto& h : b.hand_ins) out += " " + h.package_sha.substr(0, 6) + ":" + name(h.reason);
  }
  return out;
}

class Resume : public ::testing::Test {
 protected:
  Resume() : m_dir(std::move(*TempDir::make("forge-resume"))) {}
  std::vector<std::string> lines(const fs::path& file) {
    std::ifstream in(file);
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }
  fs::path whole() {
    const fs::path file = m_dir.path() / "whole.jsonl";
    if (!fs::exists(file)) {
      Story story;
      auto journal = Journal::open(file, Journal::Mode::create);
      EXPECT_TRUE(journal);
      const auto result = story.world.go(story.architect, story.coder, *journal);
      EXPECT_TRUE(result) << (result ? "" : result.error().text());
      m_outline = outline(*result);
      m_calls = story.world.gate.calls;
    }
    return file;
  }
  TempDir m_dir;
  std::string m_outline;
  std::map<std::string, int> m_calls;
};

int asked_of_the_gate(const std::vector<std::string>& journal) {
  int n = 0;
  for (const auto& line : journal)
    for (const char* type : {"gate.open", "gate.floor", "gate.analyse", "gate.time", "gate.submit", "gate.confirm"})
      if (line.find("\"type\":\"" + std::string(type) + "\"") != std::string::npos) ++n;
  return n;
}

TEST_F(Resume, KilledAfterAnyStep) {
  const auto all = lines(whole());
  ASSERT_GT(all.size(), 20u);
  int total = 0;
  for (const auto& [method, n] : m_calls) total += n;
  for (std::size_t kept = 0; kept <= all.size(); ++kept) {
    const fs::path file = m_dir.path() / ("cut" + std::to_string(kept) + ".jsonl");
    {
      std::ofstream out(file);
      for (std::size_t i = 0; i < kept; ++i) out << all[i] << "\n";
      if (kept < all.size()) out << all[kept].substr(0, all[kept].size() / 2);  // torn in mid-write
    }
    Story story;
    auto journal = Journal::open(file, Journal::Mode::resume);
    ASSERT_TRUE(journal) << journal.error().text();
    const auto result = story.world.go(story.architect, story.coder, *journal);
    ASSERT_TRUE(result) << kept << ": " << result.error().text();
    EXPECT_EQ(outline(*result), m_outline) << kept;
    const auto recorded = std::vector<std::string>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept));
    EXPECT_EQ(story.world.asked() + asked_of_the_gate(recorded), total)
        << "something was measured twice, or not at all, after " << kept << " events";
    EXPECT_EQ(lines(file).size(), all.size()) << kept;
  }
}

TEST_F(Resume, AFailingGateLeavesARunThatCanBeResumed) {
  Story story;
  story.world.gate.fail["confirm"].push_back(
      Error{.code = Code::disk_full, .message = "no space", .file = {}, .line = 0, .field = {}, .fix = {}});
  const fs::path file = m_dir.path() / "full.jsonl";
  {
    auto journal = Journal::open(file, Journal::Mode::create);
    const auto result = story.world.go(story.architect, story.coder, *journal);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::disk_full);
  }
  Story again;
  auto journal = Journal::open(file, Journal::Mode::resume);
  const auto result = again.world.go(again.architect, again.coder, *journal);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(again.world.gate.calls["submit"], 0);
  EXPECT_TRUE(result->sealed);
}

TEST_F(Resume, AnErrorOfTheGateEndsTheRunWhateverTheCoderMakesOfIt) {
  Story story;
  story.world.gate.fail["time"].push_back(
      Error{.code = Code::crashed, .message = "the runner is gone", .file = {}, .line = 0, .field = {}, .fix = {}});
  auto journal = Journal::open({}, Journal::Mode::memory);
  const auto result = story.world.go(story.architect, story.coder, *journal);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::crashed);
}

TEST_F(Resume, CtrlCEndsAsUserAndLosesNothing) {
  whole();
  const fs::path file = m_dir.path() / "stopped.jsonl";
  for (int after = 1; after < 6; ++after) {
    fs::remove(file);
    Story story;
    int seen = 0;
    const auto seconds = story.world.gate.seconds;
    story.world.gate.reason = [&, refused = story.world.refused](const KernelPackage& p) {
      if (++seen == after) request_stop();  // in the middle of a hand-in
      return refused.count(p.source) ? refused.at(p.source) : Reason::accepted;
    };
    {
      auto journal = Journal::open(file, Journal::Mode::create);
      const auto result = story.world.go(story.architect, story.coder, *journal);
      reset_stop();
      ASSERT_TRUE(result) << result.error().text();
      EXPECT_EQ(result->stop, Stop::user);
      EXPECT_FALSE(result->sealed);
    }
    Story again;
    auto journal = Journal::open(file, Journal::Mode::resume);
    const auto result = again.world.go(again.architect, again.coder, *journal);
    ASSERT_TRUE(result) << result.error().text();
    EXPECT_EQ(outline(*result), m_outline);
    EXPECT_EQ(story.world.gate.calls["submit"] + again.world.gate.calls["submit"], m_calls["submit"]);
  }
}

ReplayResult replay(const fs::path& file) {
  Story story;
  auto journal = Journal::open(file, Journal::Mode::replay);
  EXPECT_TRUE(journal) << (journal ? "" : journal.error().text());
  const auto result = story.world.go(story.architect, story.coder, *journal);
  EXPECT_EQ(story.world.asked(), 0);
  const auto concluded = conclude_replay(*journal, result);
  EXPECT_TRUE(concluded);
  return *concluded;
}

TEST_F(Resume, AReplayRepeatsEveryDecision) {
  const fs::path file = whole();
  const ReplayResult same = replay(file);
  EXPECT_TRUE(same.same) << same.difference;
  EXPECT_EQ(same.steps, static_cast<int>(lines(file).size()));
}

TEST_F(Resume, AReplayOfAnUnfinishedRecordIsTheSameAsFarAsItGoes) {
  const auto all = lines(whole());
  const fs::path file = m_dir.path() / "half.jsonl";
  std::ofstream out(file);
  for (std::size_t i = 0; i < all.size() / 2; ++i) out << all[i] << "\n";
  out.close();
  const ReplayResult same = replay(file);
  EXPECT_TRUE(same.same) << same.difference;
  EXPECT_EQ(same.steps, static_cast<int>(all.size() / 2));
}

// A measurement that was changed after the fact, in a journal whose chain was made whole again, gives other decisions.
TEST_F(Resume, AReplayOfATamperedRecordNamesTheEvent) {
  const auto events = read_journal(whole());
  ASSERT_TRUE(events);
  const fs::path file = m_dir.path() / "tampered.jsonl";
  std::int64_t forged = 0;
  {
    auto journal = Journal::open(file, Journal::Mode::create);
    for (const Event& e : *events) {
      std::string response = e.response;
      if (const auto at = response.find("\"accepted\""); e.type == "gate.submit" && at != std::string::npos && !forged) {
        response = verdict_to_json(Verdict::rejected(Reason::wrong_result, "forged"));
        forged = e.seq;
      }
      ASSERT_TRUE(journal->step(e.type, e.request, [&] { return Result<std::string>(response); }));
    }
  }
  ASSERT_GT(forged, 0);
  const ReplayResult different = replay(file);
  EXPECT_FALSE(different.same);
  EXPECT_GE(different.steps, forged);
  EXPECT_NE(different.difference.find("event "), std::string::npos) << different.difference;
}

}  // namespace
}  // namespace forge
