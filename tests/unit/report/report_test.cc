// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/page.h"
#include "report/story.h"

namespace forge {
namespace {

std::vector<Event> small_run() {
  return {
      {1, "", "run.start",
       R"({"run":"r1","task":{"operator":"softmax_f32","target":"cpu:x86-64-avx2","reference":"expert"},"machine":{"model":"<Test & Co>"}})",
       "{}", 0},
      {2, "", "gate.open", "{}", R"({"present":true,"id":"expert:x","description":"a library","seconds":0.01})", 1},
      {3, "", "plan",
       R"({"revision":0,"reason":"because","milestones":[{"id":"M0","decisions":[{"id":"D0.1","name":"store","choice":"nontemporal","evidence":[{"observed":true,"text":"seen"}],"cites":["nt"]}]}],"avoided":[]})",
       "null", 0},
      {4, "", "gate.submit", R"({"n":0,"revision":0,"milestone":"M0","sha":"abcdef0123456789","decisions":[["store","nontemporal"]]})",
       R"({"reason":"accepted","detail":"</script><script>alert(1)</script>","measurement":{"seconds":0.008,"pairs":[{"against":"reference","speedup":{"low":1.2,"mid":1.25,"high":1.3}}]},"times":{"total":3.0}})",
       3},
      {5, "", "gate.submit", R"({"n":1,"revision":0,"milestone":"M1","sha":"ffff"})", R"({"reason":"wrong_result","detail":"y[0]"})", 3},
  };
}

TEST(Report, ShowsHandInsPlanAndReasons) {
  const auto html = render_report(small_run(), "/* chart */");
  ASSERT_TRUE(html) << html.error().text();
  for (const char* text : {"softmax_f32", "1.250 [1.200 1.300]", "wrong_result", "store = nontemporal", "observed: seen", "not finished",
                           "/* chart */", "&lt;Test &amp; Co&gt;"})
    EXPECT_NE(html->find(text), std::string::npos) << text;
}

TEST(Report, NothingFromOutsideCanRunAsScript) {
  const auto html = render_report(small_run(), "/* chart */");
  EXPECT_EQ(html->find("<script>alert"), std::string::npos);
}

TEST(Report, NothingIsFetched) {
  const auto html = render_report(small_run(), "");
  for (const char* text : {"src=", "http://", "https://", "@import"}) EXPECT_EQ(html->find(text), std::string::npos) << text;
  EXPECT_NE(html->find("libjs-chart.js"), std::string::npos) << "a missing chart must be said";
}

TEST(Report, ALongRunIsThinnedButKeepsItsRecordsAndTheNewest) {
  Story s;
  constexpr int kHandIns = 30'000;
  for (int n = 1; n <= kHandIns; ++n) {
    const double speedup = n % 1000 == 0 ? 1 + n / 1e5 : 0.5;  // every thousandth is a new best
    Event e = small_run()[3];
    e.response = R"({"reason":"accepted","mechanism":{"ok":true,"found":[]},"measurement":{"seconds":)" + std::to_string(0.01 / speedup) +
                 R"(,"pairs":[{"against":"reference","speedup":{"mid":)" + std::to_string(speedup) + "}}]}}";
    s.add(e);
    ASSERT_LE(s.points.size(), Story::kMostPoints) << n;
    ASSERT_EQ(s.points.back().n, n);
  }
  EXPECT_EQ(s.hand_ins, kHandIns);
  EXPECT_EQ(s.reasons.at("accepted"), kHandIns);
  EXPECT_EQ(s.best()->n, kHandIns);
  int records = 0, widest = 0;
  for (std::size_t i = 0; i < s.points.size(); ++i) {
    records += s.points[i].record;
    if (i > 0) widest = std::max(widest, s.points[i].n - s.points[i - 1].n);
  }
  EXPECT_EQ(records, 31) << "the first and every thousandth";
  EXPECT_LE(widest, 64) << "the rest is an even choice";
  EXPECT_LE(s.mechanisms.size(), 2 * Story::kMostMechanisms);
  EXPECT_EQ(s.mechanisms.size() + s.mechanisms_left_out, std::size_t(kHandIns));
  const std::string table = story_sections(s, "", false)[2].second;
  EXPECT_NE(table.find(std::to_string(kHandIns - s.points.size()) + " more hand-ins"), std::string::npos);
}

TEST(Report, FromTheFileItIsTheSamePage) {
  const TempDir dir = std::move(*TempDir::make("report"));
  const fs::path file = dir.path() / "journal.jsonl";
  {
    Journal j = std::move(*Journal::open(file, Journal::Mode::create));
    for (const Event& e : small_run()) ASSERT_TRUE(j.step(e.type, e.request, [&] { return Result<std::string>(e.response); }));
  }
  const auto page = render_journal(file, "");
  ASSERT_TRUE(page) << page.error().text();
  EXPECT_EQ(*page, *render_report(*read_journal(file), ""));
}

TEST(Report, AnEmptyJournalIsAnError) { EXPECT_EQ(render_report({}, "").error().code, Code::bad_input); }

}  // namespace
}  // namespace forge
