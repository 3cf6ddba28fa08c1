// SPDX-License-Identifier: Apache-2.0
#include "gate/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "util/random.h"

namespace forge {
namespace {

TEST(Median, OddEvenEmpty) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
}

// Published tables: Student's t, the normal distribution, Wilcoxon's critical values (Hollander and Wolfe, table A.4).
TEST(Quantiles, AgreeWithTables) {
  EXPECT_NEAR(normal_quantile(0.025), 1.959964, 1e-5);
  EXPECT_NEAR(normal_quantile(0.0005), 3.290527, 1e-5);
  EXPECT_NEAR(student_t_quantile(0.0005, 4), 8.610, 1e-3);
  EXPECT_NEAR(student_t_quantile(0.025, 9), 2.262, 1e-3);
  EXPECT_NEAR(student_t_quantile(0.025, 1), 12.706, 1e-3);
  EXPECT_EQ(signed_rank_critical(10, 0.0005), 0) << "2^-10 > 0.0005";
  EXPECT_EQ(signed_rank_critical(11, 0.0005), 1) << "only T = 0: 2^-11 < 0.0005";
  EXPECT_EQ(signed_rank_critical(20, 0.025), 53) << "table: reject at T <= 52";
  EXPECT_EQ(signed_rank_critical(10, 0.025), 9) << "table: reject at T <= 8";
}

TEST(PairedRatio, MidIsTheRatioAndIgnoresAWildOutlier) {
  std::vector<double> c(21, 1.0), a(21, 1.2);
  for (int i = 0; i < 21; ++i) a[std::size_t(i)] *= 1 + 0.001 * (i - 10);
  a[3] = 50;  // the machine was taken away for a moment
  const auto r = paired_ratio(c, a);
  EXPECT_NEAR(r.mid, 1.2, 0.005);
  EXPECT_EQ(r.n, 21);
  EXPECT_EQ(compare(r, 0.01), Comparison::faster);
}

TEST(PairedRatio, ABrokenClockDecidesNothing) {
  std::vector<double> c(20, 1.0), a(20, 2.0);
  c[7] = 0;
  EXPECT_EQ(compare(paired_ratio(c, a), 0.01), Comparison::ambiguous);
  c[7] = std::nan("");
  EXPECT_EQ(compare(paired_ratio(c, a), 0.01), Comparison::ambiguous);
}

TEST(Compare, NeverFasterOnAHandfulOfPairs) {
  std::vector<double> c, a;
  for (int i = 0; i < kMinPairs - 1; ++i) {
    c.push_back(1 + 0.0001 * i);
    a.push_back(2);
  }
  EXPECT_EQ(compare(paired_ratio(c, a), 0.005), Comparison::ambiguous);
  EXPECT_EQ(compare(paired_ratio(a, c), 0.005), Comparison::slower) << "a pilot may end a hopeless job";
  c.push_back(1);
  a.push_back(2);
  EXPECT_EQ(compare(paired_ratio(c, a), 0.005), Comparison::faster);
}

TEST(Compare, Same) {
  std::vector<double> c, a;
  for (int i = 0; i < 40; ++i) {
    c.push_back(1 + 0.001 * std::sin(i));
    a.push_back(1 + 0.001 * std::sin(3 * i + 1));
  }
  EXPECT_EQ(compare(paired_ratio(c, a), 0.005), Comparison::same);
}

// A shared machine: normal jitter, slow drift, one call in sixteen hit by something of up to 50 %, one in fifty by up to 10x.
double noisy(Random& rng, double seconds, double drift) {
  double t = seconds * (1 + drift) * (1 + 0.01 * rng.normal());
  if (rng.uniform() < 0.06) t *= 1 + 0.5 * rng.uniform();
  if (rng.uniform() < 0.02) t *= 1 + 10 * rng.uniform();
  return std::max(t, 1e-9);
}
struct Job {
  std::vector<double> candidate, against;
};
Job simulate(Random& rng, int pairs, double true_speedup) {
  Job job;
  for (int i = 0; i < pairs; ++i) {
    const double drift = 0.05 * std::sin(0.3 * i);
    job.candidate.push_back(noisy(rng, 1.0, drift));
    job.against.push_back(noisy(rng, true_speedup, drift));
  }
  return job;
}

// The bound itself, floor zero: at alpha 0.0005 about 10 of 20000 A/A jobs may exceed one; 5 sigma above that is 26.
TEST(Level, LowerBoundHoldsItsLevelOnHeavyTails) {
  Random rng(20261130);
  for (int pairs : {11, 24, 60}) {
    int above = 0, below = 0;
    for (int i = 0; i < 20000 / (pairs / 11); ++i) {
      const Job job = simulate(rng, pairs, 1.0);
      const auto r = paired_ratio(job.candidate, job.against);
      above += r.lower > 1;
      below += r.upper < 1;
    }
    EXPECT_LE(above, 26) << pairs;
    EXPECT_LE(below, 26) << pairs;
  }
}

// The whole procedure: floor from A/A, planned pairs, one doubling when ambiguous. 3 % is found in at least 90 of 100 jobs.
TEST(Power, ThreePercentIsCalledAndNoneIsNot) {
  Random rng(7);
  int faster = 0, slower = 0, false_calls = 0;
  const int trials = 300;
  for (int i = 0; i < trials; ++i) {
    const Job aa = simulate(rng, 30, 1.0);
    const double sigma = paired_ratio(aa.candidate, aa.against).sigma;
    const int planned = std::min(60, pairs_needed(sigma, 0.005, 0.02));
    const double floor = floor_from(aa.candidate, aa.against, planned).ratio;
    auto call = [&](double truth) {
      Job job = simulate(rng, planned, truth);
      Comparison c = compare(paired_ratio(job.candidate, job.against), floor);
      if (c != Comparison::ambiguous) return c;
      const Job more = simulate(rng, planned, truth);
      job.candidate.insert(job.candidate.end(), more.candidate.begin(), more.candidate.end());
      job.against.insert(job.against.end(), more.against.begin(), more.against.end());
      return compare(paired_ratio(job.candidate, job.against), floor);
    };
    faster += call(1.03) == Comparison::faster;
    slower += call(1 / 1.03) == Comparison::slower;
    const auto null = call(1.0);
    false_calls += null == Comparison::faster || null == Comparison::slower;
  }
  EXPECT_GE(faster, trials * 90 / 100);
  EXPECT_GE(slower, trials * 90 / 100);
  EXPECT_EQ(false_calls, 0);
}

TEST(PairsNeeded, GrowsWithNoiseAndHasAMinimum) {
  EXPECT_EQ(pairs_needed(0.0001, 0.002, 0.02), kMinPairs);
  const int few = pairs_needed(0.01, 0.005, 0.02), many = pairs_needed(0.02, 0.005, 0.02);
  EXPECT_GT(few, kMinPairs);
  EXPECT_NEAR(double(many - 2) / (few - 2), 4, 0.3);
  EXPECT_LT(pairs_needed(0.01, 0.5, 0.02), 200) << "bounded even when the floor exceeds the effect";
}

TEST(PairsForFloor, LeaveChanceNoMoreThanWanted) {
  std::vector<double> a, b;
  Random rng(5);
  for (int i = 0; i < 400; ++i) {  // both sides 2 %: their ratio 2.8 %
    a.push_back(std::exp(0.02 * rng.normal()));
    b.push_back(std::exp(0.02 * rng.normal()));
  }
  const NoiseFloor f = floor_from(a, b, 60);
  const int pairs = pairs_for_floor(f.sigma, 0.005);
  EXPECT_NEAR(pairs, 126, 30);  // (1.96 * 1.023 * 0.028 / 0.005)^2
  EXPECT_LE(floor_from(a, b, pairs).ratio, 0.005);
  EXPECT_GT(floor_from(a, b, pairs - 1).ratio, 0.005);
  EXPECT_EQ(pairs_for_floor(1e-5, 0.005), 1);
  EXPECT_LT(pairs_for_floor(0.01, 0), 200) << "nothing is wanted below the smallest floor";
}

TEST(Floor, CoversAnOffsetBetweenProcesses) {
  std::vector<double> a, b;
  Random rng(3);
  for (int i = 0; i < 30; ++i) {
    a.push_back(1 + 0.001 * rng.normal());
    b.push_back(1.01 + 0.001 * rng.normal());
  }
  const auto f = floor_from(a, b, 30);
  EXPECT_GT(f.ratio, 0.0095);
  EXPECT_LT(f.ratio, 0.012);
  EXPECT_EQ(f.pairs, 30);
  const auto quiet = floor_from(a, a, 30);
  EXPECT_GE(quiet.ratio, 0.002) << "never below what placement alone does";
}

}  // namespace
}  // namespace forge
