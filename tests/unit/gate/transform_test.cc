// SPDX-License-Identifier: Apache-2.0
#include "gate/transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "gate/numeric.h"

namespace forge {
namespace {

// The definition, element by element: moved[i, j, ..] = +-base[from(i), from(j), ..].
std::vector<double> moved_plainly(const TensorSpec& spec, const AxisValues& axes, const Action& action, const std::vector<double>& base) {
  std::vector<double> result(base.size());
  for (std::size_t e = 0; e < base.size(); ++e) {
    std::size_t rest = e, source = 0, stride = 1;
    double sign = 1;
    for (std::size_t d = spec.shape.size(); d-- > 0;) {
      const auto extent = static_cast<std::size_t>(axes.at(spec.shape[d]));
      const std::size_t i = rest % extent;
      rest /= extent;
      const auto from = action.from.find(spec.shape[d]);
      source += stride * (from == action.from.end() ? i : static_cast<std::size_t>(from->second[i]));
      stride *= extent;
      for (const auto& signs : action.signs)
        if (signs.axis == spec.shape[d] && std::count(signs.tensors.begin(), signs.tensors.end(), spec.name) && signs.negative[i])
          sign = -sign;
    }
    result[e] = sign * base[source];
  }
  return result;
}

SymmetryRule permute(const std::string& axis) { return {.kind = SymmetryKind::permute, .axis = axis, .tensors = {}}; }
SymmetryRule negate(const std::string& axis) { return {.kind = SymmetryKind::negate, .axis = axis, .tensors = {"t"}}; }

TEST(Transform, MovesEveryRankTypeAndSetOfAxesAsDefined) {
  const AxisValues axes{{"a", 3}, {"b", 5}, {"c", 2}, {"d", 37}};
  const std::vector<std::vector<std::string>> shapes{
      {"d"}, {"a", "d"}, {"d", "a"}, {"a", "b", "d"}, {"a", "b", "c", "d"}, {"d", "c", "b", "a"}, {}};
  const std::vector<std::vector<SymmetryRule>> rules{
      {},
      {permute("a")},
      {permute("d")},
      {permute("a"), permute("d")},
      {negate("a")},
      {negate("d")},
      {permute("b"), negate("b"), negate("d")},
      {permute("a"), permute("b"), permute("c"), permute("d"), negate("a"), negate("b"), negate("c"), negate("d"), negate("d")}};
  Random random(11);
  for (const auto& shape : shapes)
    for (const auto& symmetries : rules)
      for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::i8, DType::i64, DType::i16}) {
        const TensorSpec spec{.name = "t", .dtype = type, .scalar = false, .shape = shape};
        TaskFile task;
        task.symmetries = symmetries;
        const Action action = draw_action(task, axes, random);
        const ElementMap map(spec, axes, action);
        const auto count = static_cast<std::size_t>(map.elements());
        std::vector<double> values(count);
        std::vector<std::byte> base(count * bytes_of(type)), out(base.size());
        for (std::size_t i = 0; i < count; ++i) {
          values[i] = static_cast<double>(static_cast<int>(i % 101) - 50);
          encode(type, values[i], base.data() + i * bytes_of(type));
        }
        const auto expected = moved_plainly(spec, axes, action, values);
        // In uneven pieces, as callers do.
        for (std::size_t at = 0; at < count;) {
          const std::size_t end = std::min(count, at + 1 + random.below(100));
          map.copy(base.data(), type, ElementMap::Sign::apply, static_cast<std::int64_t>(at), static_cast<std::int64_t>(end),
                   out.data() + at * bytes_of(type));
          at = end;
        }
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(decode(type, out.data() + i * bytes_of(type)), expected[i]) << i;
        map.copy(base.data(), type, ElementMap::Sign::ignore, 0, static_cast<std::int64_t>(count), out.data());
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(std::fabs(decode(type, out.data() + i * bytes_of(type))), std::fabs(expected[i]));
      }
}

TEST(Transform, DrawsPermutationsOfShortAndLongAxes) {
  Random random(5);
  for (const std::int64_t n : {1, 2, 1000, 65536, 65537, 200'000}) {
    TaskFile task;
    task.symmetries = {permute("a")};
    const Action first = draw_action(task, {{"a", n}}, random), second = draw_action(task, {{"a", n}}, random);
    auto sorted = first.from.at("a");
    if (n > 2) {
      EXPECT_NE(sorted, second.from.at("a"));
    }
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(sorted[static_cast<std::size_t>(i)], i);
  }
}

TEST(Transform, CountsHowManyContentsThereAre) {
  TaskFile task;
  EXPECT_EQ(action_bits(task, {}), 0);
  task.symmetries = {permute("a"), negate("b")};
  EXPECT_NEAR(action_bits(task, {{"a", 4}, {"b", 7}}), std::log2(24.0) + 7, 1e-9);
}

TEST(Transform, StreamedBytesArrive) {
  alignas(64) std::byte to[1024], from[1024];
  Random random(2);
  for (auto& b : from) b = static_cast<std::byte>(random.next());
  const Pattern pattern = draw_poison(random);
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 127, 128, 1000}) {
    std::memset(to, 0x55, sizeof to);
    stream_copy(to, from, bytes);
    finish_streaming();
    EXPECT_EQ(std::memcmp(to, from, bytes), 0);
    EXPECT_EQ(to[bytes], std::byte{0x55});
    std::memset(to, 0x55, sizeof to);
    stream_pattern(to, pattern, bytes);
    finish_streaming();
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(to[i], reinterpret_cast<const std::byte*>(pattern.data())[i % 64]);
    EXPECT_EQ(to[bytes], std::byte{0x55});
  }
}

TEST(Transform, PoisonIsAQuietNaNInEveryFloatType) {
  Random random(9);
  for (int i = 0; i < 100; ++i) {
    const Pattern pattern = draw_poison(random);
    const auto* bytes = reinterpret_cast<const std::byte*>(pattern.data());
    for (std::size_t at = 0; at < 64; at += 2) {
      EXPECT_TRUE(std::isnan(decode(DType::f16, bytes + at)));
      EXPECT_TRUE(std::isnan(decode(DType::bf16, bytes + at)));
      if (at % 4 == 0) {
        EXPECT_TRUE(std::isnan(decode(DType::f32, bytes + at)));
      }
      double d;
      if (at % 8 == 0) {
        std::memcpy(&d, bytes + at, 8);
        EXPECT_TRUE(std::isnan(d));
      }
    }
  }
}

}  // namespace
}  // namespace forge
