// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <gtest/gtest.h>

#include "report/page.h"

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

TEST(Report, AnEmptyJournalIsAnError) { EXPECT_EQ(render_report({}, "").error().code, Code::bad_input); }

}  // namespace
}  // namespace forge
