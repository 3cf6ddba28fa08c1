// SPDX-License-Identifier: Apache-2.0
#include "store/journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "util/hash.h"

namespace forge {
namespace {

class JournalTest : public testing::Test {
 protected:
  TempDir dir = std::move(*TempDir::make("journal"));
  fs::path file = dir.path() / "run" / "journal.jsonl";

  void write_three() {
    Journal j = std::move(*Journal::open(file, Journal::Mode::create));
    for (int i = 1; i <= 3; ++i) {
      auto r = j.step("gate.submit", R"({"n":)" + std::to_string(i) + "}",
                      [&] { return Result<std::string>(R"({"t":0.1,"n":)" + std::to_string(i) + "}"); });
      ASSERT_TRUE(r) << r.error().text();
    }
  }
  std::string text() { return *read_file(file); }
  void set_text(const std::string& t) { std::ofstream(file, std::ios::binary | std::ios::trunc) << t; }
};

Result<std::string> never() {
  ADD_FAILURE() << "asked for work that was recorded";
  return std::string("null");
}

TEST_F(JournalTest, ResumeHandsBackWhatIsRecordedThenGoesOn) {
  write_three();
  Journal j = std::move(*Journal::open(file, Journal::Mode::resume));
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(j.replaying());
    auto r = j.step("gate.submit", R"({ "n": )" + std::to_string(i) + " }", never);  // other white space, same request
    ASSERT_TRUE(r);
    EXPECT_EQ(*r, R"({"t":0.1,"n":)" + std::to_string(i) + "}");
  }
  EXPECT_FALSE(j.replaying());
  ASSERT_TRUE(j.decide("run.end", R"({"stop":"exhausted"})"));
  EXPECT_EQ(read_journal(file)->size(), 4u);
}

TEST_F(JournalTest, EveryPrefixOfBytesResumesWithoutLosingAWholeEvent) {
  write_three();
  const std::string whole = text();
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    set_text(whole.substr(0, cut));
    const auto lines = std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut), '\n');
    auto j = Journal::open(file, Journal::Mode::resume);
    ASSERT_TRUE(j) << "cut at " << cut << ": " << j.error().text();
    ASSERT_EQ(static_cast<long>(j->events().size()), lines) << "cut at " << cut;
    for (long i = 1; i <= lines; ++i) ASSERT_TRUE(j->step("gate.submit", R"({"n":)" + std::to_string(i) + "}", never));
    ASSERT_TRUE(j->decide("after", "{}"));  // the torn rest is gone: the next line is whole
    ASSERT_EQ(static_cast<long>(read_journal(file)->size()), lines + 1);
  }
}

TEST_F(JournalTest, AChangedLineIsNoticedAndNamed) {
  write_three();
  std::string t = text();
  t.replace(t.find(R"("n":2)"), 5, R"("n":7)");
  set_text(t);
  auto r = read_journal(file);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().line, 2);
  EXPECT_NE(r.error().message.find("hash chain"), std::string::npos);
}

TEST_F(JournalTest, PartsAreCutOutOfALineAsTheyWentIn) {
  const std::vector<std::string> values = {R"({"a":"},\"response\":null,{","b":[[],{}]})",
                                           R"("\\")",
                                           R"("a \"quoted\\\" one")",
                                           "[]",
                                           "{}",
                                           "null",
                                           "-1.5e-07",
                                           "true",
                                           R"([{"x":[1,[2,[3]]]},"]"])",
                                           R"("\u0001 ü")",
                                           "0",
                                           R"({"response":{"x":1,"response":2},"seconds":3})",
                                           R"([{"a":"\",","response":null},{"b":0,"seconds":4}])",
                                           "\"" + std::string(3 << 20, 'x') + "\""};  // longer than what is read at once
  // One long value beside a short one is enough.
  const auto wanted = [](const std::string& a, const std::string& b) { return a.size() + b.size() < (3 << 20) + 4; };
  {
    Journal j = std::move(*Journal::open(file, Journal::Mode::create));
    for (const std::string& request : values)
      for (const std::string& response : values) {
        if (!wanted(request, response)) continue;
        ASSERT_TRUE(j.step("a \"type\"", request, [&] { return Result<std::string>(response); }));
      }
  }
  const auto events = read_journal(file);
  ASSERT_TRUE(events) << events.error().text();
  std::size_t at = 0;
  for (const std::string& request : values)
    for (const std::string& response : values) {
      if (!wanted(request, response)) continue;
      const Event& e = (*events)[at++];
      ASSERT_EQ(e.seq, static_cast<std::int64_t>(at));
      ASSERT_EQ(e.type, "a \"type\"");
      ASSERT_TRUE(e.request == request) << e.request.substr(0, 80);
      ASSERT_TRUE(e.response == response) << e.response.substr(0, 80);
    }
  EXPECT_EQ(at, events->size());
}

TEST_F(JournalTest, ALineThatWasFormattedAnewIsStillThatLine) {
  write_three();
  std::string t = text();
  const std::string before = R"("request":{"n":2})";
  t.replace(t.find(before), before.size(), R"( "request" : { "n" : 2 } )");
  set_text(t);
  const auto events = read_journal(file);
  ASSERT_TRUE(events) << events.error().text();
  EXPECT_EQ((*events)[1].request, R"({"n":2})");
}

TEST_F(JournalTest, AScanGoesOnFromItsMark) {
  write_three();
  JournalMark mark;
  std::vector<std::string> seen;
  const auto take = [&](const Event& e) { seen.push_back(e.request); };
  ASSERT_TRUE(scan_journal(file, mark, take));
  EXPECT_EQ(mark.lines, 3);
  EXPECT_EQ(mark.good_bytes, text().size());
  EXPECT_TRUE(stands_in(mark, file));
  ASSERT_TRUE(Journal::open(file, Journal::Mode::resume)) << "nothing is written";
  const std::string three = text();
  set_text(three + "{\"seq\":4,\"ti");  // in mid-write
  ASSERT_TRUE(scan_journal(file, mark, take));
  EXPECT_EQ(seen.size(), 3u);
  set_text(three + "{\"seq\":4}\n" + "{}\n");
  EXPECT_EQ(scan_journal(file, mark, take).error().line, 4);
  set_text(three.substr(0, three.size() - 40));
  EXPECT_FALSE(stands_in(mark, file));
}

TEST_F(JournalTest, ALineThatIsNestedDeeperThanAStackIsRefused) {
  fs::create_directories(file.parent_path());
  const auto read_with = [&](const std::string& request) {
    const std::string body = R"({"seq":1,"time":"t","type":"x","request":)" + request + R"(,"response":{},"seconds":0,"prev":"")";
    set_text(body + R"(,"hash":")" + sha256_hex(body + "}").substr(0, 16) + "\"}\n");
    return read_journal(file);
  };
  const auto deep = read_with(std::string(200000, '[') + std::string(200000, ']'));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().line, 1);
  EXPECT_NE(deep.error().message.find("nested deeper"), std::string::npos);
  std::string wide = "[[]";
  for (int i = 0; i < 3000; ++i) wide += ",[]";
  EXPECT_TRUE(read_with(wide + "]"));
  EXPECT_TRUE(read_with("\"\\\"" + std::string(3000, '[') + "\"")) << "brackets in a text are no levels";
}

TEST_F(JournalTest, AMissingLineIsNoticed) {
  write_three();
  std::string t = text();
  t.erase(0, t.find('\n') + 1);
  set_text(t);
  EXPECT_FALSE(read_journal(file));
}

TEST_F(JournalTest, AnotherRequestThanTheRecordedOneDiverges) {
  write_three();
  Journal j = std::move(*Journal::open(file, Journal::Mode::replay));
  auto r = j.step("gate.submit", R"({"n":2})", never);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Code::diverged);
  EXPECT_EQ(r.error().line, 1);
}

TEST_F(JournalTest, ReplayNeverGoesBeyondTheRecord) {
  write_three();
  Journal j = std::move(*Journal::open(file, Journal::Mode::replay));
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(j.step("gate.submit", R"({"n":)" + std::to_string(i) + "}", never));
  EXPECT_EQ(j.decide("run.end", "{}").error().code, Code::diverged);
}

TEST_F(JournalTest, FailedWorkIsNotRecorded) {
  Journal j = std::move(*Journal::open(file, Journal::Mode::create));
  EXPECT_FALSE(j.step("gate.submit", "{}", [] { return Result<std::string>(fail(Code::interrupted, "stop")); }));
  EXPECT_TRUE(j.events().empty());
}

TEST_F(JournalTest, TwoWritersAreRefused) {
  Journal first = std::move(*Journal::open(file, Journal::Mode::create));
  auto second = Journal::open(file, Journal::Mode::resume);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another forge"), std::string::npos);
}

TEST_F(JournalTest, ElapsedCountsReplayedSteps) {
  write_three();
  Journal j = std::move(*Journal::open(file, Journal::Mode::resume));
  double sum = 0;
  for (const Event& e : j.events()) sum += e.seconds;
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(j.step("gate.submit", R"({"n":)" + std::to_string(i) + "}", never));
  EXPECT_DOUBLE_EQ(j.elapsed_seconds(), sum);
}

TEST_F(JournalTest, MissingFileIsNotFound) {
  EXPECT_EQ(Journal::open(dir.path() / "no", Journal::Mode::resume).error().code, Code::not_found);
}

}  // namespace
}  // namespace forge
