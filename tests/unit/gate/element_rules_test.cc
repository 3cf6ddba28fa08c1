// SPDX-License-Identifier: Apache-2.0
// The rules that the CPU's judge and the card's are both compiled from, against the host's own number formats and moves.
#include "device/kernels/element_rules.cuh"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gate/compare.h"
#include "gate/numeric.h"

namespace forge {
namespace {

const std::vector<DType> types{DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i16, DType::i8, DType::u8};

std::uint64_t host_bits(DType type, double value) {
  std::uint64_t bits = 0;
  encode(type, value, &bits);
  return bits;
}
bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

TEST(ElementRules, DecodeEveryHalf) {
  for (std::uint64_t bits = 0; bits < 65536; ++bits)
    for (const DType type : {DType::f16, DType::bf16, DType::i16})
      ASSERT_TRUE(same(rules::decode(element_type(type), bits), decode(type, &bits))) << name(type) << " " << bits;
}

TEST(ElementRules, EncodeAsTheHostDoes) {
  Random random(3);
  std::vector<double> values{0.0,     -0.0,    1,         -1,       65504,    65519.999,  65520,    65536,     1e300,          -1e300,
                             0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-149, 0x1p-150, 0x1.8p-150, 2.5,      3.5,       -2.5,           127.5,
                             255.6,   1e10,    -1e10,     1e19,     -1e19,    3.5e38,     HUGE_VAL, -HUGE_VAL, 0x1.fffffefp127};
  for (int i = 0; i < 200000; ++i) values.push_back(random.normal() * std::ldexp(1.0, static_cast<int>(random.below(60)) - 30));
  // Halfway cases of both narrow types, and a hair to either side.
  for (int i = 0; i < 2000; ++i) {
    const double half = (1024 + static_cast<double>(random.below(1024)) + 0.5) * std::ldexp(1.0, static_cast<int>(random.below(40)) - 34);
    for (const double nudge : {-1e-14, 0.0, 1e-14}) values.push_back(half * (1 + nudge));
  }
  for (const double value : values)
    for (const DType type : types) {
      const std::uint64_t here = host_bits(type, value);
      ASSERT_EQ(rules::encode(element_type(type), value), here) << name(type) << " of " << value;
    }
  for (const DType type : {DType::f16, DType::bf16, DType::f32})
    EXPECT_TRUE(std::isnan(rules::decode(element_type(type), rules::encode(element_type(type), std::nan("")))));
}

TEST(ElementRules, MovesAsTheHostDoes) {
  const AxisValues axes{{"a", 3}, {"b", 5}, {"d", 37}};
  TaskFile task;
  for (const char* axis : {"a", "b", "d"}) {
    task.symmetries.push_back({.kind = SymmetryKind::permute, .axis = axis, .tensors = {}});
    task.symmetries.push_back({.kind = SymmetryKind::negate, .axis = axis, .tensors = {"t"}});
  }
  Random random(5);
  for (std::size_t rules_kept = 0; rules_kept <= task.symmetries.size(); ++rules_kept)
    for (const std::vector<std::string>& shape : std::vector<std::vector<std::string>>{{"d"}, {"a", "d"}, {"d", "a"}, {"a", "b", "d"}})
      for (const DType type : types) {
        TaskFile some;
        some.symmetries.assign(task.symmetries.begin(), task.symmetries.begin() + static_cast<std::ptrdiff_t>(rules_kept));
        const TensorSpec spec{.name = "t", .dtype = type, .scalar = false, .shape = shape};
        const Action action = draw_action(some, axes, random);
        const ElementMap map(spec, axes, action);
        const std::size_t size = bytes_of(type), bytes = static_cast<std::size_t>(map.elements()) * size;
        std::vector<std::byte> base(bytes), moved(bytes);
        for (auto& b : base) b = static_cast<std::byte>(random.next());
        map.copy(base.data(), type, ElementMap::Sign::apply, 0, map.elements(), moved.data());
        const rules::MoveMap plain = map.plain();
        const rules::Type t = element_type(type);
        ASSERT_EQ(plain.elements, map.elements());
        for (std::int64_t e = 0; e < plain.elements; ++e) {
          const rules::Source from = rules::source_of(plain, e);
          ASSERT_EQ(rules::signed_bits(t, rules::load(t, base.data(), from.index), from.negative), rules::load(t, moved.data(), e));
        }
      }
}

TEST(ElementRules, PoisonIsFoundAtEveryPlace) {
  Random random(9);
  const Pattern pattern = draw_poison(random);
  const rules::Poison poison = poison_of(pattern);
  std::vector<std::byte> memory(512);
  for (std::size_t i = 0; i < memory.size(); i += sizeof pattern) std::memcpy(memory.data() + i, pattern.data(), sizeof pattern);
  for (const DType type : types)
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(memory.size() / bytes_of(type)); ++i)
      ASSERT_EQ(rules::poison_at(poison, i, static_cast<int>(bytes_of(type))), rules::load(element_type(type), memory.data(), i));
}

TEST(ElementRules, CanariesDependOnSeedAndPlace) {
  EXPECT_NE(rules::canary_word(1, 0), rules::canary_word(2, 0));
  EXPECT_NE(rules::canary_word(1, 0), rules::canary_word(1, 1));
  EXPECT_EQ(rules::canary_byte(7, 11), static_cast<std::uint8_t>(rules::canary_word(7, 1) >> 24));
}

// Indices judged through the input: five elements, three places.
class IndexRule : public ::testing::Test {
 protected:
  Findings judged(std::vector<std::int32_t> got) {
    const IndexRow row{.got = reinterpret_cast<const std::byte*>(got.data()),
                       .values = reinterpret_cast<const std::byte*>(values.data()),
                       .of = reinterpret_cast<const std::byte*>(x.data()),
                       .type = DType::i32,
                       .of_type = DType::f32,
                       .first = 30,
                       .k = 3,
                       .n = 5};
    Findings f;
    std::vector<std::uint8_t> seen;
    compare_index_row(row, pattern, seen, f);
    EXPECT_EQ(f.compared, 3);
    return f;
  }
  std::vector<float> x{1, 7, 3, 7, 5}, values{7, 7, 5};
  Pattern pattern = [] {
    Random random(2);
    return draw_poison(random);
  }();
};

TEST_F(IndexRule, AnyOfEqualElementsIsRight) {
  EXPECT_EQ(judged({1, 3, 4}).bad(), 0);
  EXPECT_EQ(judged({3, 1, 4}).bad(), 0);
}
TEST_F(IndexRule, NoneMayBeNamedTwice) {
  const Findings f = judged({1, 1, 4});
  EXPECT_EQ(f.wrong, 1);
  EXPECT_EQ(f.first_bad, 31);
}
TEST_F(IndexRule, OtherElementsAndOtherPlacesAreWrong) {
  EXPECT_EQ(judged({1, 3, 0}).wrong, 1);
  EXPECT_EQ(judged({1, 4, 3}).wrong, 2);
  EXPECT_EQ(judged({-1, 3, 4}).wrong, 1);
  EXPECT_EQ(judged({1, 3, 5}).wrong, 1);
  EXPECT_EQ(judged({1, 3, std::numeric_limits<std::int32_t>::min()}).wrong, 1);
}
TEST_F(IndexRule, PoisonIsSaidToBePoison) {
  const auto poison = static_cast<std::int32_t>(rules::poison_at(poison_of(pattern), 32, 4));
  const Findings f = judged({1, 3, poison});
  EXPECT_EQ(f.not_written, 1);
  EXPECT_EQ(f.first_bad, 32);
}
TEST_F(IndexRule, ANaNIsNamedByANaN) {
  x[0] = values[0] = std::nanf("");
  EXPECT_EQ(judged({0, 3, 4}).bad(), 0);
  EXPECT_EQ(judged({2, 3, 4}).wrong, 1);
}

}  // namespace
}  // namespace forge
