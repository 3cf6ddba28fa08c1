// SPDX-License-Identifier: Apache-2.0
// The oracle of fused_add_rmsnorm_bf16*, for any width h.
// x = hidden_states + residual, output = x / sqrt(mean(x^2) + eps) * weight, residual_out = x, in fp64: the sum of two
// bfloat16 values is exact there unless their exponents differ by more than 44. Rounding to bfloat16 is the judge's.
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
  if (input_count != 3 || output_count != 2) return 1;
  const int64_t h = outputs[0].shape[1];
  const auto* weight = static_cast<const uint16_t*>(inputs[2].data);
  for (int64_t r = begin; r < end; r++) {
    const uint16_t* hidden = static_cast<const uint16_t*>(inputs[0].data) + r * h;
    const uint16_t* residual = static_cast<const uint16_t*>(inputs[1].data) + r * h;
    double* output = results[0] + r * h;
    double* x = results[1] + r * h;
    double sum = 0;
    for (int64_t c = 0; c < h; c++) {
      x[c] = static_cast<double>(bf16_to_float(hidden[c])) + bf16_to_float(residual[c]);
      sum += x[c] * x[c];
    }
    const double rms = std::sqrt(sum / static_cast<double>(h) + kEps);
    for (int64_t c = 0; c < h; c++) output[c] = x[c] / rms * bf16_to_float(weight[c]);
  }
  return 0;
}

// 0: hidden and residual cancel almost wholly      1: one value a row dwarfs the rest
// 2: so small that eps decides                     3: every other row is zero
// 4: sums exactly between two bfloat16 values (ties to even; half up, half away and truncation all differ)
// 5: magnitudes from 2^-10 to 2^10 along the row, weights the other way round
constexpr int32_t kVariants = 6;

int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (input_count != 3) return 0;
  if (variant < 0) return kVariants;  // only asked how many there are
  Source source(seed);
  variant %= kVariants;
  const int64_t rows = inputs[0].shape[0], h = inputs[0].shape[1];
  auto* weight = static_cast<uint16_t*>(inputs[2].data);
  const auto ramp = [h](int64_t c) { return static_cast<int>(c * 20 / h) - 10; };
  for (int64_t c = 0; c < h; c++)
    weight[c] = float_to_bf16(static_cast<float>(variant == 5 ? std::ldexp(source.normal(), -ramp(c)) : 1 + source.normal() / 8));
  for (int64_t r = 0; r < rows; r++) {
    uint16_t* hidden = static_cast<uint16_t*>(inputs[0].data) + r * h;
    uint16_t* residual = static_cast<uint16_t*>(inputs[1].data) + r * h;
    const int64_t chosen = source.below(h);
    for (int64_t c = 0; c < h; c++) {
      double a = source.normal(), b = source.normal();
      switch (variant) {
        case 0:
          b = -a * (1 + b / 64);
          break;
        case 1:
          a = c == chosen ? 1e4 : a;
          break;
        case 2:
          a *= 1e-4, b *= 1e-4;
          break;
        case 3:
          if (r % 2) a = b = 0;
          break;
        case 4:  // 8 significant bits hold [128, 256) in steps of 1, so a half is a tie
          a = static_cast<double>(128 + source.below(127)) * (source.below(2) ? 1 : -1);
          b = a < 0 ? -0.5 : 0.5;
          break;
        default:
          a = std::ldexp(a, ramp(c)), b = std::ldexp(b, ramp(c));
      }
      hidden[c] = float_to_bf16(static_cast<float>(a));
      residual[c] = float_to_bf16(static_cast<float>(b));
    }
  }
  return kVariants;
}

}  // namespace
