// SPDX-License-Identifier: Apache-2.0
#include "gate/numeric.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "util/random.h"

namespace forge {
namespace {

std::uint16_t encoded16(DType type, double value) {
  std::uint16_t result = 0;
  encode(type, value, &result);
  return result;
}

// Every half and bfloat16 decodes and encodes to itself; the middle between two neighbours goes to the even one, and a hair more or
// less than the middle, as only a double can hold it, to the nearer: one rounding, not two.
TEST(Numeric, SixteenBitFloatsRoundOnceToNearestEven) {
  for (const DType type : {DType::bf16, DType::f16})
    for (std::uint32_t bits = 0; bits < 0x8000; ++bits) {
      const auto low = static_cast<std::uint16_t>(bits), high = static_cast<std::uint16_t>(bits + 1);
      const double a = decode(type, &low), b = decode(type, &high);
      if (std::isnan(a)) {
        ASSERT_TRUE(std::isnan(a));
        continue;
      }
      ASSERT_EQ(encoded16(type, a), low);
      ASSERT_EQ(encoded16(type, -a), low | 0x8000);
      if (!std::isfinite(b)) continue;
      const double middle = (a + b) / 2;
      ASSERT_EQ(encoded16(type, middle), low % 2 ? high : low) << bits;
      ASSERT_EQ(encoded16(type, std::nextafter(middle, 1e300)), high) << bits;
      ASSERT_EQ(encoded16(type, std::nextafter(middle, -1e300)), low) << bits;
    }
}

TEST(Numeric, OverflowAndNaN) {
  EXPECT_TRUE(std::isinf(decode(DType::bf16, std::vector<std::uint16_t>{encoded16(DType::bf16, 1e39)}.data())));
  EXPECT_TRUE(std::isinf(decode(DType::f16, std::vector<std::uint16_t>{encoded16(DType::f16, -65520)}.data())));
  EXPECT_EQ(encoded16(DType::f16, 65519), 0x7bff);
  for (const DType type : {DType::bf16, DType::f16}) {
    const std::uint16_t nan = encoded16(type, std::nan(""));
    EXPECT_TRUE(std::isnan(decode(type, &nan)));
    // A NaN whose payload is all in the low half of a float must stay one.
    const float thin = std::bit_cast<float>(0x7f800001u);
    std::uint16_t out = 0;
    encode_floats(type, &thin, &out, 1);
    EXPECT_TRUE(std::isnan(decode(type, &out)));
  }
}

TEST(Numeric, IntegersSaturate) {
  std::int8_t small = 0;
  encode(DType::i8, 1000, &small);
  EXPECT_EQ(small, 127);
  encode(DType::i8, -1000, &small);
  EXPECT_EQ(small, -128);
  encode(DType::i8, -2.6, &small);
  EXPECT_EQ(small, -3);
  std::int64_t large = 0;
  encode(DType::i64, 1e30, &large);
  EXPECT_EQ(large, std::numeric_limits<std::int64_t>::max());
  std::uint8_t byte = 9;
  encode(DType::boolean, 0.5, &byte);
  EXPECT_EQ(byte, 1);
}

TEST(Numeric, BulkAgreesWithSingle) {
  Random random(3);
  std::vector<float> values;
  for (int i = 0; i < 1003; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.next())));
  for (const DType type : {DType::bf16, DType::f16}) {
    std::vector<std::uint16_t> bulk(values.size());
    encode_floats(type, values.data(), bulk.data(), static_cast<std::int64_t>(values.size()));
    std::vector<float> back(values.size());
    decode_floats(type, bulk.data(), back.data(), static_cast<std::int64_t>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        EXPECT_TRUE(std::isnan(back[i]));
        continue;
      }
      EXPECT_EQ(bulk[i], encoded16(type, values[i])) << values[i];
      EXPECT_EQ(back[i], decode(type, &bulk[i]));
    }
  }
}

TEST(Numeric, RoundMantissa) {
  EXPECT_EQ(round_mantissa(1.0f + 0x1p-11f, 10), 1.0f);  // a tie, to even
  EXPECT_EQ(round_mantissa(1.0f + 0x1p-10f + 0x1p-11f, 10), 1.0f + 0x1p-9f);
  EXPECT_EQ(round_mantissa(-1.999999f, 7), -2.0f);
  EXPECT_EQ(round_mantissa(1.2345678f, 23), 1.2345678f);
  EXPECT_TRUE(std::isinf(round_mantissa(std::numeric_limits<float>::infinity(), 7)));
}

}  // namespace
}  // namespace forge
