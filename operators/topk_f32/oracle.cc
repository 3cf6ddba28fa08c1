// SPDX-License-Identifier: Apache-2.0
// The k largest of each row by a sort: descending, equal values by ascending index. Rows hold no NaN.
#include "forge/oracle.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "forge/fill.h"

namespace {

using forge::fill::Source;

int32_t expected(const forge_tensor* inputs, int32_t input_count, const forge_tensor* outputs, int32_t output_count, double* const* results,
                 double* const*, int64_t begin, int64_t end) {
  if (input_count != 1 || output_count != 2) return 1;
  const int64_t columns = inputs[0].shape[1], k = outputs[0].shape[1];
  if (k > columns) return 1;
  std::vector<int32_t> order(static_cast<std::size_t>(columns));
  for (int64_t r = begin; r < end; r++) {
    const float* x = static_cast<const float*>(inputs[0].data) + r * columns;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(),
                      [x](int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); });
    for (int64_t i = 0; i < k; i++) {
      results[0][r * k + i] = x[order[static_cast<std::size_t>(i)]];
      results[1][r * k + i] = order[static_cast<std::size_t>(i)];
    }
  }
  return 0;
}

// 0: all equal, at a different height in every row     1: ascending (odd rows descending)
// 2: eight different values only                       3: fewer than k finite values, the rest -infinity
// 4: equal in the leading 20 bits of the float          5: k - 1 large values, everything else one and the same
// 6: all negative, over 60 binary orders of magnitude   7: the largest stand side by side, at the end of the row
constexpr int32_t kVariants = 8;

int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (input_count != 1) return 0;
  if (variant < 0) return kVariants;  // only asked how many there are
  Source source(seed);
  const int64_t rows = inputs[0].shape[0], columns = inputs[0].shape[1];
  constexpr int64_t k = 1024;  // content only: a task with another k is still right
  for (int64_t r = 0; r < rows; r++) {
    float* x = static_cast<float*>(inputs[0].data) + r * columns;
    const bool odd = r % 2;
    const double height = source.normal() * 20;
    int64_t left = k - 1;  // of the chosen few, in variants 3 and 5
    for (int64_t c = 0; c < columns; c++) {
      double value = source.normal();
      const bool chosen = left > 0 && source.below(columns - c) < left;
      left -= chosen;
      switch (variant % kVariants) {
        case 0:
          value = height;
          break;
        case 1:
          value = static_cast<double>(odd ? columns - c : c) / 64;
          break;
        case 2:
          value = static_cast<double>(source.below(8)) - 4;
          break;
        case 3:
          if (!chosen || c % 2) value = -std::numeric_limits<double>::infinity();
          break;
        case 4:
          value = 1 + static_cast<double>(source.below(8)) * 0x1p-23;
          break;
        case 5:
          value = chosen ? 2 + value / 16 : 1;
          break;
        case 6:
          value = -std::ldexp(1 + source.uniform(), static_cast<int>(source.below(60)) - 30);
          break;
        default:
          value += c >= columns - k ? 100 : 0;
      }
      x[c] = static_cast<float>(value);
    }
  }
  return kVariants;
}

}  // namespace

extern "C" const forge_oracle_v1* forge_oracle(void) {
  static const forge_oracle_v1 oracle{FORGE_ORACLE_VERSION, "topk_f32", expected, adversarial};
  return &oracle;
}
