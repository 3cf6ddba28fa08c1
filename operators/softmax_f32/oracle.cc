// SPDX-License-Identifier: Apache-2.0
// y = exp(x - max) / sum exp(x - max) over the last axis, in fp64.
#include "forge/oracle.h"

#include <algorithm>
#include <cmath>

#include "forge/fill.h"

namespace {

using forge::fill::Source;

int32_t expected(const forge_tensor* inputs, int32_t input_count, const forge_tensor* outputs, int32_t output_count, double* const* results,
                 double* const*, int64_t begin, int64_t end) {
  if (input_count != 1 || output_count != 1) return 1;
  const int64_t columns = outputs[0].shape[1];
  for (int64_t r = begin; r < end; r++) {
    const float* x = static_cast<const float*>(inputs[0].data) + r * columns;
    double* y = results[0] + r * columns;
    const double top = *std::max_element(x, x + columns);
    double sum = 0;
    for (int64_t c = 0; c < columns; c++) sum += y[c] = std::exp(x[c] - top);
    for (int64_t c = 0; c < columns; c++) y[c] /= sum;
  }
  return 0;
}

// 0: one value dwarfs the rest          1: all equal, at a different height in every row
// 2: ascending (odd rows descending): an online maximum is corrected at every step
// 3: offsets of +-10,000               4: half of the row masked with -1e30
// 5: all masked but the last column (the first in odd rows)
// 6: all negative, so that a maximum started at 0 is wrong, and far enough that exp underflows without the shift
constexpr int32_t kVariants = 7;

int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (input_count != 1) return 0;
  if (variant < 0) return kVariants;  // only asked how many there are
  Source source(seed);
  const int64_t rows = inputs[0].shape[0], columns = inputs[0].shape[1];
  for (int64_t r = 0; r < rows; r++) {
    float* x = static_cast<float*>(inputs[0].data) + r * columns;
    const bool odd = r % 2;
    const int64_t chosen = source.below(columns);
    const double height = source.normal() * 20;
    for (int64_t c = 0; c < columns; c++) {
      double value = source.normal();
      switch (variant % kVariants) {
        case 0:
          value = c == chosen ? 1e4 : value;
          break;
        case 1:
          value = height;
          break;
        case 2:
          value = static_cast<double>(odd ? columns - c : c) / 64 + value / 256;
          break;
        case 3:
          value += odd ? -1e4 : 1e4;
          break;
        case 4:
          value = c != chosen && source.below(2) ? -1e30 : value;
          break;
        case 5:
          value = c == (odd ? 0 : columns - 1) ? value : -1e30;
          break;
        default:
          value = -300 - std::fabs(height) + value;
      }
      x[c] = static_cast<float>(value);
    }
  }
  return kVariants;
}

}  // namespace

extern "C" const forge_oracle_v1* forge_oracle(void) {
  static const forge_oracle_v1 oracle{FORGE_ORACLE_VERSION, "softmax_f32", expected, adversarial};
  return &oracle;
}
