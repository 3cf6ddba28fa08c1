// SPDX-License-Identifier: Apache-2.0
// The oracle of rmsnorm_bf16_*, for any width h: output = x / sqrt(mean(x^2) + eps) * weight in fp64. Rounding to bfloat16 is the judge's.
#pragma once
#include <cmath>

#include "forge/fill.h"
#include "oracle_door.h"

namespace {

using forge::fill::bf16_to_float;
using forge::fill::float_to_bf16;
using forge::fill::Source;

constexpr double kEps = 1e-6;

int32_t expected(const forge_tensor* inputs, int32_t input_count, const forge_tensor* outputs, int32_t output_count, double* const* results,
                 double* const*, int64_t begin, int64_t end) {
  if (input_count != 2 || output_count != 1) return 1;
  const int64_t h = outputs[0].shape[1];
  const auto* weight = static_cast<const uint16_t*>(inputs[1].data);
  for (int64_t r = begin; r < end; r++) {
    const uint16_t* x = static_cast<const uint16_t*>(inputs[0].data) + r * h;
    double sum = 0;
    for (int64_t c = 0; c < h; c++) {
      const double value = bf16_to_float(x[c]);
      sum += value * value;
    }
    const double rms = std::sqrt(sum / static_cast<double>(h) + kEps);
    for (int64_t c = 0; c < h; c++) results[0][r * h + c] = bf16_to_float(x[c]) / rms * bf16_to_float(weight[c]);
  }
  return 0;
}

// 0: one value a row dwarfs the rest           1: so small that eps decides
// 2: every other row is zero                   3: magnitudes from 2^-10 to 2^10 along the row, weights the other way round
// 4: one row in two is large, its neighbour small: a sum that mixes rows shows
constexpr int32_t kVariants = 5;

int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (input_count != 2) return 0;
  if (variant < 0) return kVariants;  // only asked how many there are
  Source source(seed);
  variant %= kVariants;
  const int64_t rows = inputs[0].shape[0], h = inputs[0].shape[1];
  auto* weight = static_cast<uint16_t*>(inputs[1].data);
  const auto ramp = [h](int64_t c) { return static_cast<int>(c * 20 / h) - 10; };
  for (int64_t c = 0; c < h; c++)
    weight[c] = float_to_bf16(static_cast<float>(variant == 3 ? std::ldexp(source.normal(), -ramp(c)) : 1 + source.normal() / 8));
  for (int64_t r = 0; r < rows; r++) {
    uint16_t* x = static_cast<uint16_t*>(inputs[0].data) + r * h;
    const int64_t chosen = source.below(h);
    for (int64_t c = 0; c < h; c++) {
      double value = source.normal();
      switch (variant) {
        case 0:
          value = c == chosen ? 1e4 : value;
          break;
        case 1:
          value *= 1e-4;
          break;
        case 2:
          if (r % 2) value = 0;
          break;
        case 3:
          value = std::ldexp(value, ramp(c));
          break;
        default:
          value *= r % 2 ? 1e3 : 1e-2;
      }
      x[c] = float_to_bf16(static_cast<float>(value));
    }
  }
  return kVariants;
}

}  // namespace
