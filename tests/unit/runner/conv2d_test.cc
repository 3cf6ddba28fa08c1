// SPDX-License-Identifier: Apache-2.0
// conv2d_f32: the oracle against a formula that scatters instead of gathering, and what its judge takes: any order of summation and
// Winograd's F(2x2, 3x3) in float32, nothing of lower precision, no filter that is shifted or flipped.
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>

#include "operator_fixture.h"

namespace forge::test {
namespace {

constexpr std::int64_t kSide = 56, kDeep = 64;  // height and width; channels and filters

float conv_tf32(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  return std::bit_cast<float>((bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu);
}
float conv_as_is(float v) { return v; }

const float* floats(const Tensor& t) { return reinterpret_cast<const float*>(t.data); }
// Pixel [y, x] of the only image, or zeros outside of it.
const float* conv_pixel(const Bench& b, std::int64_t y, std::int64_t x) {
  static const std::array<float, kDeep> zeros{};
  if (y < 0 || y >= kSide || x < 0 || x >= kSide) return zeros.data();
  return floats(b.inputs[0]) + (y * kSide + x) * kDeep;
}

// Rows that are worked out: the edges and two in the middle. The others get the right answer, for the sake of time.
bool conv_worked_out(Bench& b, std::int64_t p) {
  if (p < 2 || p >= kSide - 2 || p / 2 == kSide / 4) return true;
  for (std::int64_t i = p * kSide * kDeep; i < (p + 1) * kSide * kDeep; ++i)
    b.outputs[0].set(i, b.outputs[0].expected[static_cast<std::size_t>(i)]);
  return false;
}

// One accumulator for all 576 products of a result. `tap` says which tap of W stands in for tap r, s.
template <class Tap>
void chain_conv(Bench& b, float (*round)(float), const Tap& tap) {
  for (std::int64_t p = 0; p < kSide; ++p)
    for (std::int64_t q = 0; q < (conv_worked_out(b, p) ? kSide : 0); ++q)
      for (std::int64_t f = 0; f < kDeep; ++f) {
        float sum = 0;
        for (std::int64_t r = 0; r < 3; ++r)
          for (std::int64_t s = 0; s < 3; ++s) {
            const float* x = conv_pixel(b, p + r - 1, q + s - 1);
            const float* w = floats(b.inputs[1]) + (f * 9 + tap(r, s)) * kDeep;
            for (std::int64_t c = 0; c < kDeep; ++c) sum += round(x[c]) * round(w[c]);
          }
        b.outputs[0].set((p * kSide + q) * kDeep + f, static_cast<double>(sum));
      }
}
std::int64_t conv_in_place(std::int64_t r, std::int64_t s) { return r * 3 + s; }

// F(2x2, 3x3), all in float32.
void winograd_conv(Bench& b) {
  const auto forward = [](const std::array<float, 4>& d) { return std::array{d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]}; };
  const auto weight = [](float a, float c, float e) { return std::array{a, (a + c + e) / 2, (a - c + e) / 2, e}; };
  const auto back = [](const std::array<float, 4>& m) { return std::array{m[0] + m[1] + m[2], m[1] - m[2] - m[3]}; };
  std::vector<std::array<std::array<float, 4>, 4>> u(kDeep * kDeep), v(kDeep);
  for (std::int64_t f = 0; f < kDeep; ++f)
    for (std::int64_t c = 0; c < kDeep; ++c) {
      const auto w = [&](std::int64_t t) { return floats(b.inputs[1])[(f * 9 + t) * kDeep + c]; };
      std::array<std::array<float, 4>, 3> half;
      for (std::size_t s = 0; s < 3; ++s) half[s] = weight(w(0 + std::int64_t(s)), w(3 + std::int64_t(s)), w(6 + std::int64_t(s)));
      for (std::size_t k = 0; k < 4; ++k) u[static_cast<std::size_t>(f * kDeep + c)][k] = weight(half[0][k], half[1][k], half[2][k]);
    }
  for (std::int64_t p = 0; p < kSide; p += 2)
    for (std::int64_t q = 0; q < (conv_worked_out(b, p) & conv_worked_out(b, p + 1) ? kSide : 0); q += 2) {
      for (std::int64_t c = 0; c < kDeep; ++c) {
        std::array<std::array<float, 4>, 4> half;  // [column][position]
        for (std::int64_t x = 0; x < 4; ++x) {
          std::array<float, 4> d;
          for (std::int64_t y = 0; y < 4; ++y) d[static_cast<std::size_t>(y)] = conv_pixel(b, p + y - 1, q + x - 1)[c];
          half[static_cast<std::size_t>(x)] = forward(d);
        }
        for (std::size_t k = 0; k < 4; ++k) v[static_cast<std::size_t>(c)][k] = forward({half[0][k], half[1][k], half[2][k], half[3][k]});
      }
      for (std::int64_t f = 0; f < kDeep; ++f) {
        std::array<std::array<float, 4>, 4> m{};
        for (std::size_t k = 0; k < 4; ++k)
          for (std::size_t i = 0; i < 4; ++i)
            for (std::size_t c = 0; c < kDeep; ++c) m[i][k] += v[c][k][i] * u[static_cast<std::size_t>(f) * kDeep + c][k][i];
        std::array<std::array<float, 2>, 4> half;  // [column][row]
        for (std::size_t i = 0; i < 4; ++i) half[i] = back(m[i]);
        for (std::size_t y = 0; y < 2; ++y) {
          const auto row = back({half[0][y], half[1][y], half[2][y], half[3][y]});
          for (std::size_t x = 0; x < 2; ++x)
            b.outputs[0].set(((p + std::int64_t(y)) * kSide + q + std::int64_t(x)) * kDeep + f, static_cast<double>(row[x]));
        }
      }
    }
}

TEST(Oracles, Conv2dScatters) {
  Bench b("conv2d_f32", 2);
  b.fill_normal(14);
  b.compute_expected();
  std::vector<long double> y(static_cast<std::size_t>(b.outputs[0].count));
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t row = 0; row < kSide; ++row)
      for (std::int64_t column = 0; column < kSide; ++column)
        for (std::int64_t tap = 0; tap < 9; ++tap) {
          const std::int64_t p = row + 1 - tap / 3, q = column + 1 - tap % 3;
          if (p < 0 || p >= kSide || q < 0 || q >= kSide) continue;
          for (std::int64_t f = 0; f < kDeep; f += 21)
            for (std::int64_t c = 0; c < kDeep; ++c)
              y[static_cast<std::size_t>(((n * kSide + p) * kSide + q) * kDeep + f)] +=
                  static_cast<long double>(b.inputs[0].at(((n * kSide + row) * kSide + column) * kDeep + c)) *
                  b.inputs[1].at((f * 9 + tap) * kDeep + c);
        }
  for (std::int64_t i = 0; i < b.outputs[0].count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i % kDeep % 21 == 0) {
      ASSERT_NEAR(b.outputs[0].expected[at], static_cast<double>(y[at]), 1e-11) << i;
    }
    ASSERT_GT(b.outputs[0].scale[at], 0) << i;
  }
}

TEST(Tolerances, Conv2dTakesAnyFloatAlgorithmAndNoLowerPrecision) {
  Bench b("conv2d_f32", 1);
  for (int variant = -2; variant < b.variants(); ++variant) {
    if (variant == -2)
      b.fill_heavy_tailed(24);
    else if (variant < 0)
      b.fill_normal(24);
    else
      b.fill_adversarial(5, variant);
    b.compute_expected();
    chain_conv(b, conv_as_is, conv_in_place);
    const double chain = b.worst(0);
    EXPECT_LT(chain, 0.5) << variant;
    winograd_conv(b);
    const double winograd = b.worst(0);
    EXPECT_LT(winograd, 0.5) << variant;
    chain_conv(b, conv_tf32, conv_in_place);
    const double tf32 = b.worst(0);
    EXPECT_GT(tf32, 1) << variant;
    if (std::getenv("FORGE_TEST_FIGURES"))
      std::printf("variant %d: chain %.3g, Winograd %.3g, tf32 %.3g\n", variant, chain, winograd, tf32);
  }
  b.fill_adversarial(5, 6);
  b.compute_expected();
  chain_conv(b, conv_as_is, [](std::int64_t r, std::int64_t s) { return s * 3 + r; });
  EXPECT_GT(b.worst(0), 1000);
  chain_conv(b, conv_as_is, [](std::int64_t r, std::int64_t s) { return 8 - r * 3 - s; });
  EXPECT_GT(b.worst(0), 1000);
}

}  // namespace
}  // namespace forge::test
