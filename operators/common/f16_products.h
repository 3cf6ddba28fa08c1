// SPDX-License-Identifier: Apache-2.0
// What the oracles of float16 products (GEMM, convolution) share: a panel of dot products in fp64, and adversarial operands.
// The product of two float16 values has 22 bits, so it is exact in fp64 and only the additions round: 2^-53 each.
#pragma once
#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "forge/fill.h"
#include "forge/oracle.h"

namespace {

using forge::fill::f16_to_float;
using forge::fill::float_to_f16;
using forge::fill::Source;

// Rows of the second operand that are worked on together: transposed into fp64 once, then the inner loop runs over them.
constexpr int kColumns = 16;

// panel[p][j] = b[first + j][p], zero beyond `rows`.
inline void make_panel(const uint16_t* b, int64_t first, int64_t rows, int64_t k, std::vector<double>& panel) {
  panel.assign(static_cast<std::size_t>(k) * kColumns, 0.0);
  for (int64_t j = first; j < rows && j < first + kColumns; j++)
    for (int64_t p = 0; p < k; p++) panel[static_cast<std::size_t>(p * kColumns + j - first)] = f16_to_float(b[j * k + p]);
}

// Adds the dot products of x[0, count) with `count` rows of the panel, and those of the magnitudes.
inline void add_products(const float* x, const double* panel, int64_t count, double* sum, double* magnitude) {
  for (int64_t p = 0; p < count; p++) {
    const double value = x[p];
    for (int j = 0; j < kColumns; j++) {
      const double product = value * panel[p * kColumns + j];
      sum[j] += product;
      magnitude[j] += std::fabs(product);
    }
  }
}

// Content for an operand of `rows` rows of k values; `second` is 0 for the first operand, 1 for the second.
// 0: neighbours in k cancel almost wholly   1: one product a row, so nothing averages a rounding of the inputs out
// 2: all positive                           3: values differ by 2^+-6 along k, undone by the other operand: a wrong pairing is blown up
// 4: only the first and the last of k count, where tails go wrong
// 5: results in float16's subnormal range
constexpr int32_t kVariants = 6;

inline void fill_adversarial_rows(uint16_t* data, int64_t begin, int64_t end, int64_t k, int second, uint64_t seed, int32_t variant) {
  for (int64_t i = begin; i < end; i++) {
    Source source(Source(seed * 2 + static_cast<uint64_t>(second)).next() + static_cast<uint64_t>(i));
    uint16_t* row = data + i * k;
    const int64_t only = i % 3 == 0 ? k - 1 : source.below(k);
    for (int64_t p = 0; p < k; p++) {
      double value = source.normal();
      switch (variant % kVariants) {
        case 0:
          if (p % 2) value = f16_to_float(row[p - 1]) * (second ? 1 : -(1 + value * 0x1p-9));
          break;
        case 1:
          if (!second && p != only) value = 0;
          break;
        case 2:
          value = 1 + source.uniform();
          break;
        case 3:
          value = std::ldexp(value, p % 2 == second ? 6 : -6);
          break;
        case 4:
          if (p != 0 && p != k - 1) value = 0;
          break;
        default:
          value = std::ldexp(value, -12);
      }
      row[p] = float_to_f16(static_cast<float>(value));
    }
  }
}

// On all cores: 2^26 elements take one of them most of a second.
inline void fill_adversarial(uint16_t* data, int64_t rows, int64_t k, int second, uint64_t seed, int32_t variant) {
  const int64_t workers = std::clamp<int64_t>(rows * k >> 18, 1, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> others;
  for (int64_t w = 1; w < workers; w++)
    others.emplace_back([=] { fill_adversarial_rows(data, rows * w / workers, rows * (w + 1) / workers, k, second, seed, variant); });
  fill_adversarial_rows(data, 0, rows / workers, k, second, seed, variant);
  for (std::thread& other : others) other.join();
}

}  // namespace
