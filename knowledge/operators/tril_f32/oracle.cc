// SPDX-License-Identifier: Apache-2.0
// Toy operator of probes: a triangular matrix times another one.
#include "forge/oracle.h"

#include <algorithm>
#include <cmath>

#include "forge/fill.h"

namespace {

using forge::fill::Source;

int32_t expected(const forge_tensor* inputs, int32_t, const forge_tensor* outputs, int32_t, double* const* results, double* const* scales,
                 int64_t begin, int64_t end) {
  const int64_t rows = outputs[0].shape[1], columns = outputs[0].shape[2], keys = inputs[0].shape[2];
  for (int64_t i = begin * rows; i < end * rows; i++) {
    const int64_t batch = i / rows, row = i % rows;
    const float* w = static_cast<const float*>(inputs[0].data) + i * keys;
    const float* v = static_cast<const float*>(inputs[1].data) + batch * keys * columns;
    double* y = results[0] + i * columns;
    double* scale = scales && scales[0] ? scales[0] + i * columns : nullptr;
    std::fill_n(y, columns, 0.0);
    if (scale) std::fill_n(scale, columns, 0.0);
    for (int64_t j = 0; j <= row; j++)
      for (int64_t c = 0; c < columns; c++) {
        const double product = static_cast<double>(w[j]) * v[j * columns + c];
        y[c] += product;
        if (scale) scale[c] += std::fabs(product);
      }
  }
  return 0;
}

// What stands behind the diagonal dwarfs what counts.
int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (variant < 0) return 1;
  if (input_count != 2) return 0;
  Source source(seed);
  const int64_t rows = inputs[0].shape[0] * inputs[0].shape[1], keys = inputs[0].shape[2];
  float* w = static_cast<float*>(inputs[0].data);
  for (int64_t i = 0; i < rows * keys; i++)
    w[i] = static_cast<float>(source.normal() * (i % keys > i / keys % inputs[0].shape[1] ? 1e6 : 1));
  float* v = static_cast<float*>(inputs[1].data);
  for (int64_t i = 0; i < inputs[1].shape[0] * keys * inputs[1].shape[2]; i++) v[i] = static_cast<float>(source.normal());
  return 1;
}

}  // namespace

extern "C" const forge_oracle_v1* forge_oracle(void) {
  static const forge_oracle_v1 oracle{FORGE_ORACLE_VERSION, "tril_f32", expected, adversarial};
  return &oracle;
}
