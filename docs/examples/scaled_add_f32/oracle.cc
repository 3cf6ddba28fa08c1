// SPDX-License-Identifier: Apache-2.0
// z = s x + y in fp64; scale = |s x| + |y|.
#include "forge/oracle.h"

#include <cmath>

#include "forge/fill.h"

namespace {

int32_t expected(const forge_tensor* inputs, int32_t input_count, const forge_tensor* outputs, int32_t output_count, double* const* results,
                 double* const* scale, int64_t begin, int64_t end) {
  if (input_count != 3 || output_count != 1) return 1;
  const auto* x = static_cast<const float*>(inputs[0].data);
  const auto* y = static_cast<const float*>(inputs[1].data);
  const auto* s = static_cast<const float*>(inputs[2].data);
  const int64_t columns = outputs[0].shape[1];
  for (int64_t i = begin * columns; i < end * columns; i++) {
    const double product = static_cast<double>(s[i % columns]) * x[i];
    results[0][i] = product + y[i];
    scale[0][i] = std::fabs(product) + std::fabs(y[i]);
  }
  return 0;
}

// 0: y all but cancels s x   1: every second s is zero   2: values from 2^-20 to 2^20
constexpr int32_t kVariants = 3;

int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (input_count != 3) return 0;
  if (variant < 0) return kVariants;  // only asked how many there are
  forge::fill::Source source(seed);
  auto* x = static_cast<float*>(inputs[0].data);
  auto* y = static_cast<float*>(inputs[1].data);
  auto* s = static_cast<float*>(inputs[2].data);
  const int64_t rows = inputs[0].shape[0], columns = inputs[0].shape[1];
  for (int64_t c = 0; c < columns; c++) s[c] = variant == 1 && c % 2 ? 0.0f : static_cast<float>(source.normal());
  for (int64_t i = 0; i < rows * columns; i++) {
    const int exponent = variant == 2 ? static_cast<int>(source.below(41)) - 20 : 0;
    x[i] = static_cast<float>(std::ldexp(source.normal(), exponent));
    y[i] = variant == 0 ? -s[i % columns] * x[i] : static_cast<float>(std::ldexp(source.normal(), -exponent));
  }
  return kVariants;
}

}  // namespace

extern "C" const forge_oracle_v1* forge_oracle(void) {
  static const forge_oracle_v1 oracle{FORGE_ORACLE_VERSION, "scaled_add_f32", expected, adversarial};
  return &oracle;
}
