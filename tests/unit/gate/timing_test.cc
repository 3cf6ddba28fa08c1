// SPDX-License-Identifier: Apache-2.0
#include "gate/timing.h"

#include <gtest/gtest.h>

#include <ctime>

#include "fakes.h"
#include "gate/decide.h"
#include "util/progress.h"

namespace forge {
namespace {

using fakes::Behaviour;
using fakes::FakeRunner;
using fakes::FakeStage;
using fakes::World;

struct TimingTest : testing::Test {
  World world;
  FakeStage stage{world, "timed"};
  Random random{1};
  Result<JobResult> job(const JobPlan& plan, Checking second = Checking::every_call) {
    FakeRunner a(world, "a"), b(world, "b");
    sides = {{"candidate", &a, Checking::every_call, 2}, {"reference", &b, second, 2}};
    return run_job(plan, sides, stage, random, "test");
  }
  std::vector<JobSide> sides;
};

TEST_F(TimingTest, FreshContentBeforeEveryCallAndACheckAfter) {
  world.kernels = {{"a", {}}, {"b", {}}};
  const auto r = job({.pairs = 12, .may_extend = false});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->calls[0].size(), 12u);
  EXPECT_EQ(world.refreshes, 26) << "12 pairs and one for warming up";
  EXPECT_EQ(world.checks, 26);
  EXPECT_EQ(world.scrubs, 26);
  EXPECT_FALSE(world.content_too_early) << "whoever has the content runs on the clock only";
  EXPECT_EQ(r->checks.checks, 13) << "the candidate's";
  EXPECT_EQ(r->checks.elements, 1300);
  EXPECT_EQ(r->planned, 12);
}

TEST_F(TimingTest, OrderIsDrawnAnewAndSidesAlternate) {
  world.kernels = {{"a", {}}, {"b", {}}};
  ASSERT_TRUE(job({.pairs = 60, .may_extend = false, .warm_up = 0}));
  int a_first = 0;
  for (std::size_t i = 0; i < world.order.size(); i += 2) {
    ASSERT_NE(world.order[i], world.order[i + 1]);
    a_first += world.order[i] == "a";
  }
  EXPECT_GT(a_first, 15);
  EXPECT_LT(a_first, 45);
}

TEST_F(TimingTest, ExpertsAreCheckedOnAThirdOfTheCalls) {
  world.kernels = {{"a", {}}, {"b", {}}};
  ASSERT_TRUE(job({.pairs = 90, .may_extend = false, .warm_up = 0}, Checking::random_third));
  EXPECT_GT(world.checks, 90 + 12);
  EXPECT_LT(world.checks, 90 + 50);
}

TEST_F(TimingTest, AWrongResultInAnyTimedCallEndsTheJob) {
  world.kernels = {{"a", {.result = Reason::stale_result, .fail_after = 7}}, {"b", {}}};
  const auto r = job({.pairs = 20});
  ASSERT_TRUE(r && r->failure);
  EXPECT_EQ(r->failure->side, 0);
  EXPECT_EQ(r->failure->reason, Reason::stale_result);
  world.kernels = {{"a", {}}, {"b", {.call = RunnerFailure{Reason::crashed, "signal 11"}, .fail_after = 3}}};
  const auto s = job({.pairs = 20});
  ASSERT_TRUE(s && s->failure);
  EXPECT_EQ(s->failure->side, 1);
  EXPECT_EQ(s->failure->reason, Reason::crashed);
}

TEST_F(TimingTest, OneExtensionWhenAmbiguousAndNoneWhenClear) {
  world.sigma = 0.02;
  world.kernels = {{"a", {.seconds = 1e-3}}, {"b", {.seconds = 1.012e-3}}};  // too close to call at this noise
  const auto r = job({.pairs = 12, .floor = 0.005, .watch = {{1, 1.005, true}}});
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->extended);
  EXPECT_EQ(r->calls[0].size(), 24u);
  world.kernels["b"].seconds = 1.5e-3;
  const auto s = job({.pairs = 12, .floor = 0.005, .watch = {{1, 1.005, true}}});
  EXPECT_FALSE(s->extended);
  EXPECT_EQ(s->calls[0].size(), 12u);
}

TEST_F(TimingTest, ThePilotEndsOnlyTheHopeless) {
  world.kernels = {{"a", {.seconds = 2e-3}}, {"b", {.seconds = 1e-3}}};
  const auto slow = job({.pairs = 30, .floor = 0.005, .watch = {{1, 1.005, true}}});
  EXPECT_TRUE(slow->stopped_early);
  EXPECT_EQ(slow->calls[0].size(), std::size_t(kPilotPairs));
  EXPECT_EQ(make_pairing(*slow, sides, 0, 1, 0.005).comparison, Comparison::slower);
  std::swap(world.kernels["a"].seconds, world.kernels["b"].seconds);
  const auto fast = job({.pairs = 30, .floor = 0.005, .watch = {{1, 1.005, true}}});
  EXPECT_FALSE(fast->stopped_early);
  EXPECT_EQ(fast->calls[0].size(), 30u);
}

TEST_F(TimingTest, AForgedInsideClockIsSeenByTheOutsideOne) {
  world.kernels = {{"a", {.inside_factor = 0.9}}, {"b", {}}};
  const auto r = job({.pairs = 20, .may_extend = false});
  ASSERT_TRUE(r);
  Measurement m;
  m.floor.ratio = 0.005;
  m.pairs = {make_pairing(*r, sides, 0, 1, 0.005)};
  EXPECT_EQ(m.pairs[0].comparison, Comparison::faster) << "by the inside clock alone";
  EXPECT_FALSE(clocks_agree(m.pairs[0]));
  EXPECT_EQ(decide_performance(PerformanceCondition{}, m).reason, Reason::clocks_disagree);
  world.kernels["a"] = {.seconds = 0.9e-3};
  const auto honest = job({.pairs = 20, .may_extend = false});
  m.pairs = {make_pairing(*honest, sides, 0, 1, 0.005)};
  EXPECT_TRUE(clocks_agree(m.pairs[0]));
  EXPECT_EQ(decide_performance(PerformanceCondition{}, m).reason, Reason::accepted);
}

TEST_F(TimingTest, AnOutsideClockTooCoarseForTheGainProvesNothing) {
  PairedTiming p{
      .against = "reference", .comparison = Comparison::faster, .speedup = {1.02, 1.03, 1.04}, .lower_bound = 1.02, .upper_bound = 1.04};
  p.outside_speedup = {0.97, 1.01, 1.05};
  p.outside_resolution = 0.05;
  Measurement m;
  m.floor.ratio = 0.005;
  m.pairs = {p};
  EXPECT_EQ(decide_performance(PerformanceCondition{}, m).reason, Reason::ambiguous);
  EXPECT_EQ(settled(p), Comparison::ambiguous);
  p.outside_speedup = {};
  EXPECT_EQ(settled(p), Comparison::ambiguous) << "nobody asked the outside clock";
  p.outside_speedup = {1.01, 1.02, 1.03};
  EXPECT_EQ(settled(p), Comparison::faster);
  p.comparison = Comparison::slower, p.outside_speedup = {0.9, 1.1, 1.3};
  EXPECT_EQ(settled(p), Comparison::slower) << "a loss needs no witness";
}

TEST(CpuTime, WorkByOthersShows) {
  EXPECT_EQ(cpu_time_problem({{.inside_s = 0.1, .outside_s = 0.1, .cpu_s = 0.2}}, 2), "");
  EXPECT_NE(cpu_time_problem({{.inside_s = 0.1, .outside_s = 0.1, .cpu_s = 0.3}}, 2), "");
  EXPECT_NE(cpu_time_problem({{.inside_s = 0.2, .outside_s = 0.1, .cpu_s = 0.1}}, 2), "") << "an inside longer than the outside";
}

TEST_F(TimingTest, CtrlCStopsBetweenPairs) {
  world.kernels = {{"a", {}}, {"b", {}}};
  world.on_call = [this] {
    if (world.calls == 9) request_stop();
  };
  const auto r = job({.pairs = 30, .may_extend = false});
  reset_stop();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Code::interrupted);
  EXPECT_LE(world.calls, 10);
}

TEST(Decide, Conditions) {
  PairedTiming p{
      .against = "reference", .comparison = Comparison::faster, .speedup = {1.09, 1.1, 1.11}, .lower_bound = 1.08, .upper_bound = 1.12};
  p.outside_speedup = p.speedup;
  p.outside_resolution = 0.02;
  Measurement m;
  m.floor.ratio = 0.01;
  m.pairs = {p};
  auto reason = [&](double gain) { return decide_performance(PerformanceCondition{Against::reference, gain}, m).reason; };
  EXPECT_EQ(reason(0), Reason::accepted);
  EXPECT_EQ(reason(0.05), Reason::accepted);
  EXPECT_EQ(reason(0.10), Reason::ambiguous);
  EXPECT_EQ(reason(0.15), Reason::too_slow);
  EXPECT_EQ(decide_performance(PerformanceCondition{Against::branch_best, 0}, m).reason, Reason::ambiguous) << "that side was not there";
  m.pairs[0].speedup = m.pairs[0].outside_speedup = {0.995, 1, 1.005};
  m.pairs[0].lower_bound = 0.99;
  m.pairs[0].upper_bound = 1.012;
  m.pairs[0].comparison = Comparison::same;
  EXPECT_EQ(reason(0), Reason::too_slow) << "same is no gain";
  EXPECT_EQ(reason(-0.05), Reason::accepted) << "a structural restart may lose a little";
  EXPECT_EQ(decide_performance(std::nullopt, m).reason, Reason::accepted);
  m.pairs[0].comparison = Comparison::faster;
  m.pairs[0].speedup = {9, 10, 11};
  EXPECT_EQ(decide_performance(std::nullopt, m).reason, Reason::clocks_disagree) << "a figure is a claim, even where none is asked";
}

TEST(ForeignLoadTest, OwnWorkIsNotForeign) {
  const LoadSample before = sample_load();
  ASSERT_GT(before.cores, 0);
  volatile double x = 1;
  // Until the process has had CPU time of its own, however busy the machine is: that is what must be counted as own.
  const auto own = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  for (const double start = own(); own() - start < 0.2;) x = x * 1.0001;
  const LoadSample after = sample_load();
  EXPECT_GT(after.own_s - before.own_s, 0.05);
  EXPECT_TRUE(foreign_load(before, after).known);
  const ForeignLoad made_up = foreign_load({.busy_s = 10, .steal_s = 1, .own_s = 5, .wall_s = 0, .cores = 2},
                                           {.busy_s = 13, .steal_s = 1.2, .own_s = 7, .wall_s = 2, .cores = 2});
  EXPECT_NEAR(made_up.foreign_percent, 25, 1e-9);
  EXPECT_NEAR(made_up.steal_percent, 5, 1e-9);
}

}  // namespace
}  // namespace forge
