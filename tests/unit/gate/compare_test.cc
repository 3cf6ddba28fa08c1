// SPDX-License-Identifier: Apache-2.0
// The comparator itself: it must fail closed, and count.
#include "gate/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gate/numeric.h"

namespace forge {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan_value = std::nanf("");

JudgeRule relative(double tolerance, double absolute = 0) {
  return {.output = "o", .kind = JudgeKind::relative, .tolerance = tolerance, .absolute = absolute, .source = ""};
}
JudgeRule scaled() { return {.output = "o", .kind = JudgeKind::scaled, .tolerance = 1, .absolute = 0, .source = ""}; }
JudgeRule exact() { return {.output = "o", .kind = JudgeKind::exact, .tolerance = 0, .absolute = 0, .source = ""}; }

Pattern poison() {
  Random random(1);
  return draw_poison(random);
}

// Compares at every position of a piece, in the vector part and in its tail alike.
Findings compared(const JudgeRule& rule, float got, float expected, float bound = 0) {
  Findings first;
  for (const std::size_t at : {0, 5, 7, 8, 16, 18}) {
    std::vector<float> g(19, 1.0f), e(19, 1.0f), b(19, 1.0f);
    g[at] = got, e[at] = expected, b[at] = bound;
    Findings f;
    compare_piece(rule, DType::f32,
                  {.got = reinterpret_cast<const std::byte*>(g.data()), .expected = e.data(), .bound = b.data(), .first = 0, .count = 19},
                  poison(), f);
    EXPECT_EQ(f.compared, 19);
    EXPECT_EQ(f.first_bad, f.bad() ? static_cast<std::int64_t>(at) : -1);
    if (at == 0) first = f;
    EXPECT_EQ(f.bad(), first.bad());
  }
  return first;
}

TEST(Compare, RelativeBoundIsMetOrNot) {
  EXPECT_EQ(compared(relative(0.01), 100.9f, 100).wrong, 0);
  EXPECT_EQ(compared(relative(0.01), 101.1f, 100).wrong, 1);
  EXPECT_EQ(compared(relative(0.01), -100, 100).wrong, 1);
  EXPECT_EQ(compared(relative(0.01), 0, 0).bad(), 0);
  EXPECT_EQ(compared(relative(0.01), 1e-30f, 0).wrong, 1);
  EXPECT_EQ(compared(relative(0.01, 1e-20), 1e-30f, 0).bad(), 0);
  EXPECT_NEAR(compared(relative(0.01), 100.5f, 100).worst, 0.5, 1e-3);
  EXPECT_EQ(compared(relative(0.01), 3e38f, -3e38f).wrong, 1);  // the difference overflows a float
}

TEST(Compare, ScaledBoundIsPerElement) {
  EXPECT_EQ(compared(scaled(), 5, 4, 1).bad(), 0);
  EXPECT_EQ(compared(scaled(), 5.001f, 4, 1).wrong, 1);
  EXPECT_EQ(compared(scaled(), 0, 0, 0).bad(), 0);
  EXPECT_EQ(compared(scaled(), 1e-40f, 0, 0).wrong, 1);
  EXPECT_EQ(compared(scaled(), 1, 1, nan_value).wrong, 1);  // a broken bound accepts nothing
}

TEST(Compare, NonFinitePositionsMustMatch) {
  for (const JudgeRule& rule : {relative(0.5), scaled()}) {
    for (const float got : {inf, -inf, nan_value}) EXPECT_EQ(compared(rule, got, 1, 1).non_finite, 1) << got;
    for (const float expected : {inf, -inf, nan_value}) EXPECT_EQ(compared(rule, 1, expected, inf).non_finite, 1) << expected;
    EXPECT_EQ(compared(rule, std::numeric_limits<float>::max(), inf, inf).non_finite, 1);
    EXPECT_EQ(compared(rule, inf, inf, inf).bad(), 0);
    EXPECT_EQ(compared(rule, -inf, inf, inf).non_finite, 1);
    EXPECT_EQ(compared(rule, nan_value, nan_value).bad(), 0);
    EXPECT_EQ(compared(rule, nan_value, inf).non_finite, 1);
    EXPECT_EQ(compared(rule, inf, nan_value).non_finite, 1);
  }
}

// Where the oracle has a NaN, the poison that was there before must not pass for it.
TEST(Compare, PoisonIsNeverAnAnswer) {
  const Pattern pattern = poison();
  for (const JudgeRule& rule : {relative(0.5), scaled(), exact()}) {
    std::vector<float> got(64), expected(64, nan_value), bound(64, 1.0f);
    for (std::size_t i = 0; i < 64; ++i) std::memcpy(&got[i], reinterpret_cast<const std::byte*>(pattern.data()) + i * 4 % 64, 4);
    if (rule.kind == JudgeKind::exact) expected = got;  // the very same bits
    Findings f;
    compare_piece(rule, DType::f32,
                  {.got = reinterpret_cast<const std::byte*>(got.data()),
                   .expected = expected.data(),
                   .bound = bound.data(),
                   .first = 0,
                   .count = 64},
                  pattern, f);
    EXPECT_EQ(f.not_written, 64);
  }
}

TEST(Compare, ExactWantsTheBitsButOneZero) {
  const std::vector<float> values{1.5f, -0.0f, 0.0f, -2.25f};
  std::vector<std::uint16_t> expected(4), got(4);
  encode_floats(DType::bf16, values.data(), expected.data(), 4);
  const auto bad = [&] {
    Findings f;
    compare_piece(
        exact(), DType::bf16,
        {.got = reinterpret_cast<const std::byte*>(got.data()), .expected = expected.data(), .bound = nullptr, .first = 0, .count = 4},
        poison(), f);
    EXPECT_EQ(f.compared, 4);
    return f.bad();
  };
  got = expected;
  EXPECT_EQ(bad(), 0);
  got[1] = 0x0000, got[2] = 0x8000;  // +0 and -0 are one value
  EXPECT_EQ(bad(), 0);
  got[3] ^= 1;
  EXPECT_EQ(bad(), 1);
}

TEST(Compare, ExactIntegers) {
  const std::vector<std::int64_t> expected{(std::int64_t(1) << 60) + 1, -5};
  std::vector<std::int64_t> got = expected;
  const auto bad = [&] {
    Findings f;
    compare_piece(
        exact(), DType::i64,
        {.got = reinterpret_cast<const std::byte*>(got.data()), .expected = expected.data(), .bound = nullptr, .first = 0, .count = 2},
        poison(), f);
    return f.bad();
  };
  EXPECT_EQ(bad(), 0);
  got[0] -= 1;  // one apart, beyond what a double resolves
  EXPECT_EQ(bad(), 1);
}

TEST(Compare, FindingsMerge) {
  Findings a, b;
  a.compared = 3, a.wrong = 1, a.first_bad = 9, a.worst = 2, a.worst_index = 9;
  b.compared = 4, b.non_finite = 1, b.first_bad = 5, b.worst = 7, b.worst_index = 6;
  a.merge(b);
  EXPECT_EQ(a.compared, 7);
  EXPECT_EQ(a.bad(), 2);
  EXPECT_EQ(a.first_bad, 5);
  EXPECT_EQ(a.worst_index, 6);
  EXPECT_EQ(a.worst, 7);
}

}  // namespace
}  // namespace forge
