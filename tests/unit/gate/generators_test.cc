// SPDX-License-Identifier: Apache-2.0
#include "gate/generators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "gate/numeric.h"

namespace forge {
namespace {

ThreadTeam& team() {
  static ThreadTeam t({0, 0});
  return t;
}

std::vector<double> drawn(GeneratorRule rule, DType type, std::int64_t count, std::uint64_t seed = 1) {
  std::vector<std::byte> data(static_cast<std::size_t>(count) * bytes_of(type));
  fill_tensor(rule, "x", type, seed, data.data(), count, team());
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(decode(type, data.data() + static_cast<std::size_t>(i) * bytes_of(type)));
  return values;
}

double share(const std::vector<double>& values, double beyond) {
  return static_cast<double>(std::count_if(values.begin(), values.end(), [&](double v) { return std::fabs(v) > beyond; })) /
         static_cast<double>(values.size());
}

TEST(Generators, NormalHasTheNormalsMomentsAndTails) {
  const auto values = drawn({.name = "n", .kind = GeneratorKind::normal, .scale = 1, .offset = {}}, DType::f32, 2'000'000);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (const double v : values) m1 += v, m2 += v * v, m3 += v * v * v, m4 += v * v * v * v;
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(m1 / n, 0, 0.004);
  EXPECT_NEAR(m2 / n, 1, 0.006);
  EXPECT_NEAR(m3 / n, 0, 0.015);
  EXPECT_NEAR(m4 / n, 3, 0.04);
  // Also where the ziggurat's base layer hands over to its tail, at 3.654.
  for (const double x : {0.1, 0.5, 1.0, 2.0, 3.0, 3.5, 3.66, 4.0}) {
    const double p = std::erfc(x / std::sqrt(2.0));
    EXPECT_NEAR(share(values, x), p, 5 * std::sqrt(p / n)) << x;
  }
}

TEST(Generators, ScaleAndOffset) {
  GeneratorRule rule{.name = "n", .kind = GeneratorKind::normal, .scale = 0.25, .offset = {{"x", 10}, {"other", 99}}};
  const auto values = drawn(rule, DType::f32, 200'000);
  double mean = 0, square = 0;
  for (const double v : values) mean += v / 200'000, square += (v - 10) * (v - 10) / 200'000;
  EXPECT_NEAR(mean, 10, 0.01);
  EXPECT_NEAR(std::sqrt(square), 0.25, 0.005);
  EXPECT_EQ(draw_scalar(rule, "x", 1), 10);
  EXPECT_NE(draw_scalar(rule, "y", 1), draw_scalar(rule, "y", 2));
}

TEST(Generators, HeavyTailsReachFarAndStayFinite) {
  const GeneratorRule rule{.name = "h", .kind = GeneratorKind::heavy_tailed, .scale = 1, .offset = {}};
  const auto values = drawn(rule, DType::f32, 1'000'000);
  for (const double x : {1.0, 10.0, 100.0}) {  // Student's t, 2 degrees: P(|t| > x) = 1 - x / sqrt(2 + x^2)
    const double p = 1 - x / std::sqrt(2 + x * x);
    EXPECT_NEAR(share(values, x), p, 5 * std::sqrt(p / 1e6)) << x;
  }
  for (const DType type : {DType::f16, DType::bf16}) {
    GeneratorRule large = rule;
    large.scale = type == DType::f16 ? 1e4 : 1e38;
    for (const double v : drawn(large, type, 100'000)) ASSERT_TRUE(std::isfinite(v));
  }
}

TEST(Generators, SmallIntegersAreExactAndCoverTheirRange) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64}) {
    std::set<double> seen;
    for (const double v : drawn({.name = "i", .kind = GeneratorKind::small_integers, .scale = 8, .offset = {}}, type, 20'000))
      seen.insert(v);
    EXPECT_EQ(seen.size(), 17u);
    EXPECT_EQ(*seen.begin(), -8);
    EXPECT_EQ(*seen.rbegin(), 8);
  }
}

TEST(Generators, LargeMagnitudesAreMixed) {
  const auto values = drawn({.name = "l", .kind = GeneratorKind::large_magnitude, .scale = 1, .offset = {}}, DType::f32, 100'000);
  EXPECT_GT(share(values, 4096), 0.03);
  EXPECT_GT(1 - share(values, 4), 0.1);
}

TEST(Generators, TheSeedDecidesNotTheThreads) {
  const GeneratorRule rule{.name = "n", .kind = GeneratorKind::normal, .scale = 1, .offset = {}};
  const std::int64_t count = 200'001;
  std::vector<float> one(static_cast<std::size_t>(count)), two(one), other(one);
  ThreadTeam single({0});
  fill_tensor(rule, "x", DType::f32, 5, one.data(), count, single);
  fill_tensor(rule, "x", DType::f32, 5, two.data(), count, team());
  fill_tensor(rule, "x", DType::f32, 6, other.data(), count, team());
  EXPECT_EQ(one, two);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace forge
