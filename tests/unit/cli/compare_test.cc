// SPDX-License-Identifier: Apache-2.0
#include "cli/compare.h"

#include <gtest/gtest.h>

namespace forge {
namespace {

TEST(Compare, AnArmIsItsPartsAndNothingElse) {
  const auto arm = parse_arm("no-plan+coder=openai:m@http://localhost:1/v1");
  ASSERT_TRUE(arm);
  const Task task = arm->apply(Task{});
  EXPECT_FALSE(task.plan);
  EXPECT_TRUE(task.revise);
  EXPECT_EQ(task.coder, "openai:m@http://localhost:1/v1");
  EXPECT_EQ(task.architect, "builtin");
  EXPECT_FALSE(parse_arm("no-revise")->apply(Task{}).revise);
  EXPECT_FALSE(parse_arm("no-knowledge")->apply(Task{}).knowledge);
  EXPECT_FALSE(parse_arm("no-disassembly")->apply(Task{}).disassembly);
  EXPECT_FALSE(parse_arm("no-template")->apply(Task{}).plan_template);
  for (const char* wrong : {"", "no-fun", "coder=", "no-plan+", "full+x"}) {
    const auto refused = parse_arm(wrong);
    if (std::string(wrong) == "no-plan+") {
      EXPECT_TRUE(refused);  // nothing behind the last '+'
      continue;
    }
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().fix.find("no-knowledge"), std::string::npos);
  }
}

ArmRun run_of(const std::string& arm, int seed, double speedup) {
  ArmRun r{.op = "toy", .arm = arm, .seed = seed, .run = {}, .full_against = {}, .duel = {}};
  r.run.spent.candidates = 4;
  r.run.spent.tokens = 1000;
  r.run.first_correct_seconds = 2;
  if (speedup > 0) {
    Measurement m;
    m.pairs.push_back({.against = "reference", .comparison = Comparison::faster, .speedup = {speedup, speedup, speedup}});
    r.run.confirmation = Verdict::passed(CorrectnessReport{.checks = 1, .elements = 1}, m);
    r.run.generation = Generation{};
  }
  return r;
}

TEST(Compare, GainIsTheGeometricMeanAndNoKernelIsNoGain) {
  ArmRun beaten = run_of("no-plan", 1, 0);
  beaten.duel = "only the full run made one";
  const std::string table = compare_table({run_of("full", 1, 2), run_of("full", 2, 8), beaten});
  EXPECT_NE(table.find("4.000 [2.000 8.000]"), std::string::npos) << table;
  EXPECT_NE(table.find("1.000"), std::string::npos) << table;
  EXPECT_NE(table.find("1 of 1"), std::string::npos) << table;
  EXPECT_NE(table.find("1000"), std::string::npos) << table;
}

}  // namespace
}  // namespace forge
