// SPDX-License-Identifier: Apache-2.0
// Toy operator of probes: a row over its root mean square.
#include "forge/oracle.h"

#include <cmath>

#include "forge/fill.h"

namespace {

using forge::fill::Source;

int32_t expected(const forge_tensor* inputs, int32_t, const forge_tensor* outputs, int32_t, double* const* results, double* const*,
                 int64_t begin, int64_t end) {
  const int64_t columns = outputs[0].shape[1];
  for (int64_t r = begin; r < end; r++) {
    const float* x = static_cast<const float*>(inputs[0].data) + r * columns;
    double squares = 0;
    for (int64_t c = 0; c < columns; c++) squares += static_cast<double>(x[c]) * x[c];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(columns) + 1e-6);
    for (int64_t c = 0; c < columns; c++) results[0][r * columns + c] = x[c] * scale;
  }
  return 0;
}

int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (variant < 0) return 1;
  Source source(seed);
  for (int32_t i = 0; i < input_count; i++) {
    int64_t n = 1;
    for (int32_t d = 0; d < inputs[i].rank; d++) n *= inputs[i].shape[d];
    float* x = static_cast<float*>(inputs[i].data);
    for (int64_t j = 0; j < n; j++) x[j] = static_cast<float>(source.normal() * (source.below(64) == 0 ? 16 : 1));
  }
  return 1;
}

}  // namespace

extern "C" const forge_oracle_v1* forge_oracle(void) {
  static const forge_oracle_v1 oracle{FORGE_ORACLE_VERSION, "row_scale_f32", expected, adversarial};
  return &oracle;
}
