// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <deque>

#include "agents/builtin.h"
#include "toy_blueprint.h"

namespace forge {
namespace {

// A bench whose gate accepts everything, unless the test queued refusals.
struct ToyBench final : Workbench {
  Plan m_plan;
  Milestone m_milestone;
  Definition m_definition;
  TaskFile m_task_file;
  Machine m_machine;
  std::optional<KernelPackage> best;
  std::vector<std::pair<std::string, std::string>> base;
  std::uint64_t m_seed = 1;
  std::deque<Reason> refusals;
  std::vector<KernelPackage> handed_in;
  std::vector<std::vector<std::pair<std::string, std::string>>> recorded;
  std::vector<std::size_t> jobs;
  std::string gave_up;
  bool accepted = false, one_image = false;

  ToyBench() {
    m_definition.name = "toy";
    m_machine.target.name = "cpu:x86-64-avx2";
    m_machine.target.vector_bits = 256;
    m_machine.properties = {{"vector_bits", 256}};
    m_milestone.id = "M0";
  }
  void decide(const std::string& name, const std::string& choice, std::vector<std::string> range = {}) {
    Decision d;
    d.name = name;
    d.choice = choice;
    d.structural = range.empty();
    d.range = std::move(range);
    m_milestone.decisions.push_back(d);
  }
  const Plan& plan() const override { return m_plan; }
  const Milestone& milestone() const override { return m_milestone; }
  const Definition& definition() const override { return m_definition; }
  const Machine& machine() const override { return m_machine; }
  const TaskFile& task_file() const override { return m_task_file; }
  double noise_floor() const override { return 0.004; }
  std::optional<KernelPackage> branch_best() const override { return best; }
  std::vector<std::pair<std::string, std::string>> branch_decisions() const override { return base; }
  std::uint64_t seed() const override { return m_seed; }
  Result<Verdict> submit(const KernelPackage& p, const std::vector<std::pair<std::string, std::string>>& d) override {
    handed_in.push_back(p);
    recorded.push_back(d);
    if (!refusals.empty()) {
      const Reason r = refusals.front();
      refusals.pop_front();
      return Verdict::missed(r, "the test said so", CorrectnessReport{}, std::nullopt);
    }
    accepted = true;
    return Verdict::passed(CorrectnessReport{}, Measurement{});
  }
  Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>& packages) override {
    jobs.push_back(packages.size());
    std::vector<Diagnostic> out;
    for (const auto& p : packages)
      out.push_back({.label = p.origin,
                     .ran = true,
                     .problem = {},
                     .seconds = toy_ms(p.source),
                     .against_first = toy_ms(packages[0].source) / toy_ms(p.source),
                     .image_sha = one_image ? "the same" : ""});
    return out;
  }
  Result<Evidence> examine(const KernelPackage&) override { return Evidence{}; }
  EntryList search(const std::string&) const override { return {}; }
  bool may_go_on() const override { return !accepted && gave_up.empty() && handed_in.size() < 10; }
  void give_up(const std::string& why) override { gave_up = why; }
};

TEST(Coder, RendersTheMilestonesChoicesOverTheBranch) {
  ToyBench bench;
  bench.base = {{"tile", "8"}, {"unroll", "4"}};
  bench.decide("pass", "one");
  auto coder = make_builtin_coder(toy_blueprint());
  ASSERT_TRUE(coder->work(bench));
  ASSERT_EQ(bench.handed_in.size(), 1u);
  EXPECT_EQ(bench.handed_in[0].source, "tile=8 pass=one store=regular unroll=4");
  EXPECT_EQ(bench.recorded[0],
            (std::vector<std::pair<std::string, std::string>>{{"tile", "8"}, {"pass", "one"}, {"store", "regular"}, {"unroll", "4"}}));
  EXPECT_TRUE(bench.jobs.empty());  // nothing was left open
}

TEST(Coder, TunesWithinTheRangeBeforeItHandsIn) {
  ToyBench bench;
  bench.decide("tile", "8");
  bench.decide("unroll", "1", {"1", "2", "4"});
  ASSERT_TRUE(make_builtin_coder(toy_blueprint())->work(bench));
  EXPECT_EQ(bench.jobs, std::vector<std::size_t>{3});  // the current one and the two others
  ASSERT_EQ(bench.handed_in.size(), 1u);
  EXPECT_NE(bench.handed_in[0].source.find("unroll=2"), std::string::npos);
}

TEST(Coder, AVariantWithTheSameImageIsNoise) {
  ToyBench bench;
  bench.one_image = true;
  bench.decide("unroll", "1", {"1", "2", "4"});
  ASSERT_TRUE(make_builtin_coder(toy_blueprint())->work(bench));
  EXPECT_NE(bench.handed_in.at(0).source.find("unroll=1"), std::string::npos);
}

TEST(Coder, NeverLeavesTheRange) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    ToyBench bench;
    bench.m_seed = seed;
    bench.decide("unroll", "1", {"1", "4"});
    ASSERT_TRUE(make_builtin_coder(toy_blueprint())->work(bench));
    EXPECT_NE(bench.handed_in.at(0).source.find("unroll=1"), std::string::npos);  // 2 would be faster
  }
}

TEST(Coder, GivesUpWithTheGatesReason) {
  ToyBench bench;
  bench.decide("tile", "8");
  bench.refusals = {Reason::mechanism_missing};
  ASSERT_TRUE(make_builtin_coder(toy_blueprint())->work(bench));
  EXPECT_EQ(bench.handed_in.size(), 1u);
  EXPECT_EQ(bench.gave_up, "mechanism_missing: the test said so");
}

TEST(Coder, HandsInOnceMoreWhenTheVerdictIsAmbiguous) {
  ToyBench bench;
  bench.decide("tile", "8");
  bench.refusals = {Reason::ambiguous};
  ASSERT_TRUE(make_builtin_coder(toy_blueprint())->work(bench));
  EXPECT_EQ(bench.handed_in.size(), 2u);
  EXPECT_TRUE(bench.accepted);
}

TEST(Coder, DoesNotHandInTheBranchsBestWhereAGainIsDemanded) {
  ToyBench bench;
  bench.base = {{"unroll", "2"}};
  bench.decide("unroll", "2", {"1", "2", "4"});
  bench.m_milestone.acceptance.performance = PerformanceCondition{Against::global_best, 0};
  const Blueprint blueprint = toy_blueprint();
  Choices choices = default_choices(blueprint);
  choices["unroll"] = "2";
  bench.best = *render(blueprint, choices, bench.m_machine.target, bench.m_machine.properties);
  ASSERT_TRUE(make_builtin_coder(blueprint)->work(bench));
  EXPECT_TRUE(bench.handed_in.empty());
  EXPECT_NE(bench.gave_up.find("no variant"), std::string::npos);
}

TEST(Coder, APlanThatCannotBeBuiltIsGivenUpWithTheConstraint) {
  ToyBench bench;
  bench.decide("store", "nontemporal");
  ASSERT_TRUE(make_builtin_coder(toy_blueprint())->work(bench));
  EXPECT_NE(bench.gave_up.find("second pass"), std::string::npos) << bench.gave_up;
}

TEST(Coder, AblationsPutOneDecisionBackAtATime) {
  PlanRequest request;
  request.machine.target.name = "cpu:x86-64-avx2";
  request.machine.properties = {{"vector_bits", 256}};
  const auto ablations =
      make_builtin_coder(toy_blueprint())->ablations(request, {{"tile", "8"}, {"pass", "one"}, {"store", "nontemporal"}, {"unroll", "2"}});
  ASSERT_TRUE(ablations);
  ASSERT_EQ(ablations->size(), 2u);  // pass=two is not possible with the streaming store
  EXPECT_EQ((*ablations)[0].decision, "tile");
  EXPECT_EQ((*ablations)[0].alternative, "4");
  EXPECT_EQ((*ablations)[1].without.source, "tile=8 pass=one store=regular unroll=2");
}

}  // namespace
}  // namespace forge
