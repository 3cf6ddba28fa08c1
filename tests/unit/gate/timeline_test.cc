// SPDX-License-Identifier: Apache-2.0
#include "gate/timeline.h"

#include <gtest/gtest.h>

#include "gate/fake_gate.h"

namespace forge {
namespace {

const std::vector<BlueprintStage> kStages{{"load", "the loads"}, {"store", "the stores"}};

Diagnostic ran(double seconds, double against_first) {
  return {.label = "", .ran = true, .problem = "", .seconds = seconds, .against_first = against_first};
}

TEST(Timeline, SavingsComeFromPairedRatios) {
  // Medians of 10, 10, 9 and 5 s would say 10 % and 50 %: the pairs say otherwise, and the pairs count.
  const auto t = make_timeline(kStages, {ran(10, 1), ran(10, 1 / 0.99), ran(9, 1.25), ran(5, 2.5)});
  ASSERT_TRUE(t) << t.error().text();
  EXPECT_DOUBLE_EQ(t->seconds, 10);
  EXPECT_NEAR(t->again_share, 0.01, 1e-12);
  ASSERT_EQ(t->stages.size(), 2u);
  EXPECT_EQ(t->stages[0].name, "load");
  EXPECT_NEAR(t->stages[0].share, 0.2, 1e-12);
  EXPECT_NEAR(t->stages[0].saved_s, 2, 1e-12);
  EXPECT_NEAR(t->stages[0].without_s, 8, 1e-12);
  EXPECT_NEAR(t->stages[1].share, 0.6, 1e-12);
  EXPECT_NEAR(t->sum, 0.8, 1e-12);
  EXPECT_TRUE(t->complete());
  EXPECT_NE(describe_overlap(*t).find("80.0 % of the whole: 20.0 % belongs to no stage"), std::string::npos) << describe_overlap(*t);
}

TEST(Timeline, TheSumSaysWhetherStagesOverlap) {
  const auto said = [](double first, double second, double again = 1) {
    return describe_overlap(*make_timeline(kStages, {ran(1, 1), ran(1, again), ran(1, 1 / (1 - first)), ran(1, 1 / (1 - second))}));
  };
  EXPECT_NE(said(0.4, 0.57).find("one after the other"), std::string::npos);
  EXPECT_NE(said(0.4, 0.5).find("hide each other"), std::string::npos);
  EXPECT_NE(said(0.4, 0.54).find("hide each other"), std::string::npos);
  EXPECT_NE(said(0.4, 0.54, 1 / 0.96).find("one after the other"), std::string::npos) << "the job tells 4 % a stage, no more";
  EXPECT_NE(said(0.4, 0.5, 1 / 0.92).find("differ by 8.0 %"), std::string::npos);
  EXPECT_NE(said(0.4, 0.5, 1 / 1.08).find("differ by 8.0 %"), std::string::npos);
  EXPECT_NE(said(0.7, 0.6).find("also spares the others time"), std::string::npos);
  EXPECT_NE(said(-0.1, 0.6).find("50.0 % of the whole"), std::string::npos) << "a stage whose absence costs counts as such";
}

TEST(Timeline, AVariantThatBreaksIsNamedAndNothingIsSaidOfOverlap) {
  Diagnostic broken{.label = "", .ran = false, .problem = "timed_out: 10 s"};
  const auto t = make_timeline(kStages, {ran(1, 1), ran(1, 1), broken, ran(1, 2)});
  ASSERT_TRUE(t) << t.error().text();
  EXPECT_EQ(t->stages[0].problem, "timed_out: 10 s");
  EXPECT_FALSE(t->complete());
  EXPECT_NEAR(t->sum, 0.5, 1e-12);
  EXPECT_NE(describe_overlap(*t).find("not every stage"), std::string::npos);
  const auto whole = make_timeline(kStages, {broken, ran(1, 1), ran(1, 1), ran(1, 1)});
  ASSERT_FALSE(whole);
  EXPECT_NE(whole.error().text().find("timed_out"), std::string::npos);
  EXPECT_FALSE(make_timeline(kStages, {ran(1, 1), ran(1, 1)}));
}

TEST(Timeline, OneJobOfTheWholeTwiceAndAVariantAStage) {
  Blueprint b;
  b.operator_name = "toy";
  b.source_name = "kernel.cpp", b.plan_name = "launch.toml";
  b.source_template = "//@stage load\nload\n//@end\n//@stage store\nstore\n//@end\n";
  const TargetSpec target = *find_target("cpu:x86-64-avx2");
  FakeGate gate;
  const auto none = time_stages(gate, b, {}, target, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::unsupported);
  b.stages = kStages;
  gate.seconds = [](const KernelPackage& p) {
    return 1e-3 * ((p.source.find("load") != std::string::npos ? 5 : 0) + (p.source.find("store") != std::string::npos ? 3 : 0) + 2);
  };
  const auto t = time_stages(gate, b, {}, target, {});
  ASSERT_TRUE(t) << t.error().text();
  EXPECT_EQ(gate.calls["time"], 1);
  EXPECT_EQ(gate.calls["submit"] + gate.calls["confirm"] + gate.calls["open"], 0);
  EXPECT_NEAR(t->seconds, 10e-3, 1e-12);
  EXPECT_NEAR(t->stages[0].share, 0.5, 1e-12);
  EXPECT_NEAR(t->stages[1].share, 0.3, 1e-12);
  EXPECT_NEAR(t->sum, 0.8, 1e-12);
}

}  // namespace
}  // namespace forge
