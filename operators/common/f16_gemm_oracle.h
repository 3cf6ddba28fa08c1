// SPDX-License-Identifier: Apache-2.0
// What the oracles of C = A B^T share: the product in fp64; scale = |A| |B|^T, what the error of any order of summation is
// proportional to.
#pragma once
#include "f16_products.h"
#include "oracle_door.h"

namespace {

int32_t expected(const forge_tensor* inputs, int32_t input_count, const forge_tensor* outputs, int32_t output_count, double* const* results,
                 double* const* scale, int64_t begin, int64_t end) {
  if (input_count != 2 || output_count != 1) return 1;
  const auto* a = static_cast<const uint16_t*>(inputs[0].data);
  const auto* b = static_cast<const uint16_t*>(inputs[1].data);
  const int64_t n = outputs[0].shape[1], k = inputs[0].shape[1];
  std::vector<float> rows(static_cast<std::size_t>((end - begin) * k));
  for (int64_t i = 0; i < (end - begin) * k; i++) rows[static_cast<std::size_t>(i)] = f16_to_float(a[begin * k + i]);
  std::vector<double> panel;
  for (int64_t j0 = 0; j0 < n; j0 += kColumns) {
    make_panel(b, j0, n, k, panel);
    for (int64_t i = begin; i < end; i++) {
      double sum[kColumns] = {}, magnitude[kColumns] = {};
      add_products(rows.data() + (i - begin) * k, panel.data(), k, sum, magnitude);
      for (int64_t j = j0; j < n && j < j0 + kColumns; j++) {
        results[0][i * n + j] = sum[j - j0];
        if (scale && scale[0]) scale[0][i * n + j] = magnitude[j - j0];
      }
    }
  }
  return 0;
}

int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (input_count != 2) return 0;
  if (variant < 0) return kVariants;  // only asked how many there are
  for (int t = 0; t < 2; t++)
    fill_adversarial(static_cast<uint16_t*>(inputs[t].data), inputs[t].shape[0], inputs[t].shape[1], t, seed, variant);
  return kVariants;
}

}  // namespace
