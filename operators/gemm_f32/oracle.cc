// SPDX-License-Identifier: Apache-2.0
// C = A B^T in fp64. The product of two float32 values is exact in fp64, so only the 1,024 additions round: 2^-53 each.
// scale = |A| |B|^T, what the error of any order of summation is proportional to.
#include "forge/oracle.h"

#include <cmath>
#include <vector>

#include "forge/fill.h"

namespace {

using forge::fill::Source;

// Columns of C that are worked on together: their rows of B are transposed into fp64 once, then the inner loop runs over columns.
constexpr int kColumns = 16;

int32_t expected(const forge_tensor* inputs, int32_t input_count, const forge_tensor* outputs, int32_t output_count, double* const* results,
                 double* const* scale, int64_t begin, int64_t end) {
  if (input_count != 2 || output_count != 1) return 1;
  const auto* a = static_cast<const float*>(inputs[0].data);
  const auto* b = static_cast<const float*>(inputs[1].data);
  const int64_t n = outputs[0].shape[1], k = inputs[0].shape[1];
  std::vector<double> panel(static_cast<std::size_t>(k) * kColumns);
  for (int64_t j0 = 0; j0 < n; j0 += kColumns) {
    const int columns = static_cast<int>(n - j0 < kColumns ? n - j0 : kColumns);
    for (int64_t p = 0; p < k; p++)
      for (int j = 0; j < kColumns; j++) panel[p * kColumns + j] = j < columns ? b[(j0 + j) * k + p] : 0.0;
    for (int64_t i = begin; i < end; i++) {
      double sum[kColumns] = {}, magnitude[kColumns] = {};
      for (int64_t p = 0; p < k; p++) {
        const double x = a[i * k + p];
        for (int j = 0; j < kColumns; j++) {
          sum[j] += x * panel[p * kColumns + j];
          magnitude[j] += std::fabs(x * panel[p * kColumns + j]);
        }
      }
      for (int j = 0; j < columns; j++) {
        results[0][i * n + j0 + j] = sum[j];
        if (scale && scale[0]) scale[0][i * n + j0 + j] = magnitude[j];
      }
    }
  }
  return 0;
}

// 0: neighbours in K cancel almost wholly   1: one product a row, so nothing averages a rounding of the inputs out
// 2: all positive                           3: columns of K differ by 2^+-20, undone by B: a wrong pairing of k is blown up
// 4: only the first and the last of K count, where tails go wrong
constexpr int32_t kVariants = 5;

int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (input_count != 2) return 0;
  if (variant < 0) return kVariants;  // only asked how many there are
  const int64_t k = inputs[0].shape[1];
  for (int t = 0; t < 2; t++) {
    Source source(seed * 2 + t);
    auto* data = static_cast<float*>(inputs[t].data);
    for (int64_t i = 0; i < inputs[t].shape[0]; i++) {
      float* row = data + i * k;
      const int64_t only = i % 3 == 0 ? k - 1 : source.below(k);
      for (int64_t p = 0; p < k; p++) {
        double value = source.normal();
        switch (variant % kVariants) {
          case 0:
            if (p % 2) value = t ? row[p - 1] : -row[p - 1] * (1 + value * 0x1p-18);
            break;
          case 1:
            if (t == 0 && p != only) value = 0;
            break;
          case 2:
            value = 1 + source.uniform();
            break;
          case 3:
            value = std::ldexp(value, (p % 2 == t ? 20 : -20));
            break;
          default:
            if (p != 0 && p != k - 1) value = 0;
        }
        row[p] = static_cast<float>(value);
      }
    }
  }
  return kVariants;
}

}  // namespace

extern "C" const forge_oracle_v1* forge_oracle(void) {
  static const forge_oracle_v1 oracle{FORGE_ORACLE_VERSION, "gemm_f32", expected, adversarial};
  return &oracle;
}
