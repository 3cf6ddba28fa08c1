// SPDX-License-Identifier: Apache-2.0
// Y[n, p, q, f] = sum over r, s, c of X[n, p + r - 1, q + s - 1, c] W[f, r, s, c] in fp64, zero outside of X. The product of two float32
// values is exact in fp64, so only the 576 additions round: 2^-53 each.
// scale[n, p, q, f] = the larger of the sum of the products' magnitudes and sum over c of (sum of |X[., ., c]| under the window)
// (mean of |W[f, ., ., c]| over the taps): see task.toml.
#include "forge/oracle.h"

#include <cmath>
#include <vector>

#include "forge/fill.h"

namespace {

using forge::fill::Source;

// Filters that are worked on together: their weights are transposed into fp64 once, then the inner loop runs over filters.
constexpr int kColumns = 16;

int32_t expected(const forge_tensor* inputs, int32_t input_count, const forge_tensor*, int32_t output_count, double* const* results,
                 double* const* scale, int64_t begin, int64_t end) {
  if (input_count != 2 || output_count != 1) return 1;
  const auto* x = static_cast<const float*>(inputs[0].data);
  const auto* w = static_cast<const float*>(inputs[1].data);
  const int64_t height = inputs[0].shape[1], width = inputs[0].shape[2], channels = inputs[0].shape[3];
  const int64_t filters = inputs[1].shape[0], r_taps = inputs[1].shape[1], s_taps = inputs[1].shape[2], taps = r_taps * s_taps;
  std::vector<double> panel(static_cast<std::size_t>(taps * channels * kColumns)), mean(static_cast<std::size_t>(channels * kColumns));
  std::vector<double> under(static_cast<std::size_t>(channels));
  for (int64_t f0 = 0; f0 < filters; f0 += kColumns) {
    const int64_t columns = filters - f0 < kColumns ? filters - f0 : kColumns;
    for (double& m : mean) m = 0;
    for (int64_t i = 0; i < taps * channels; i++)
      for (int64_t j = 0; j < kColumns; j++) {
        panel[i * kColumns + j] = j < columns ? w[(f0 + j) * taps * channels + i] : 0.0;
        mean[i % channels * kColumns + j] += std::fabs(panel[i * kColumns + j]) / static_cast<double>(taps);
      }
    for (int64_t pixel = begin * height * width; pixel < end * height * width; pixel++) {
      const int64_t n = pixel / (height * width), p = pixel / width % height, q = pixel % width;
      double sum[kColumns] = {}, magnitude[kColumns] = {}, direct[kColumns] = {};
      for (double& u : under) u = 0;
      for (int64_t r = 0; r < r_taps; r++)
        for (int64_t s = 0; s < s_taps; s++) {
          const int64_t row = p + r - r_taps / 2, column = q + s - s_taps / 2;
          if (row < 0 || row >= height || column < 0 || column >= width) continue;
          const float* at = x + ((n * height + row) * width + column) * channels;
          const double* weights = panel.data() + (r * s_taps + s) * channels * kColumns;
          for (int64_t c = 0; c < channels; c++) {
            const double value = at[c];
            under[c] += std::fabs(value);
            for (int j = 0; j < kColumns; j++) {
              const double product = value * weights[c * kColumns + j];
              sum[j] += product;
              direct[j] += std::fabs(product);
            }
          }
        }
      for (int64_t c = 0; c < channels; c++)
        for (int j = 0; j < kColumns; j++) magnitude[j] += under[c] * mean[c * kColumns + j];
      for (int64_t j = 0; j < columns; j++) {
        results[0][pixel * filters + f0 + j] = sum[j];
        if (scale && scale[0]) scale[0][pixel * filters + f0 + j] = std::fmax(magnitude[j], direct[j]);
      }
    }
  }
  return 0;
}

// 0: neighbours among the channels cancel almost wholly   1: one channel a pixel, so that little averages a rounding of the inputs out
// 2: all positive                         3: channels differ by 2^+-20, undone by W: a wrong pairing of channels is blown up
// 4: only the first and the last channel count, where tails go wrong
// 5: only the border of the images holds anything, all of it positive, so that a wrong padding shows everywhere
// 6: one tap of each filter outweighs the others by 2^10: a filter that is flipped, shifted or transposed shows
constexpr int32_t kVariants = 7;

int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (input_count != 2) return 0;
  if (variant < 0) return kVariants;  // only asked how many there are
  variant %= kVariants;
  for (int t = 0; t < 2; t++) {
    Source source(seed * 2 + t);
    auto* data = static_cast<float*>(inputs[t].data);
    const int64_t* shape = inputs[t].shape;
    const int64_t channels = shape[3];
    for (int64_t i = 0; i < shape[0] * shape[1] * shape[2]; i++) {  // a pixel, or a tap of a filter
      float* at = data + i * channels;
      const int64_t row = i / shape[2] % shape[1], column = i % shape[2];
      const bool border = row == 0 || row == shape[1] - 1 || column == 0 || column == shape[2] - 1;
      const auto only = static_cast<int64_t>(source.below(channels));
      const bool heavy = t == 1 && i % (shape[1] * shape[2]) == i / (shape[1] * shape[2]) % (shape[1] * shape[2]);
      for (int64_t c = 0; c < channels; c++) {
        double value = source.normal();
        if (variant == 0 && c % 2) value = t ? at[c - 1] : -at[c - 1] * (1 + value * 0x1p-18);
        if (variant == 1 && t == 0 && c != only) value = 0;
        if (variant == 2 || variant == 5) value = 1 + source.uniform();
        if (variant == 3) value = std::ldexp(value, c % 2 == t ? 20 : -20);
        if (variant == 4 && c != 0 && c != channels - 1) value = 0;
        if (variant == 5 && t == 0 && !border) value = 0;
        if (variant == 6 && heavy) value *= 0x1p10;
        at[c] = static_cast<float>(value);
      }
    }
  }
  return kVariants;
}

}  // namespace

extern "C" const forge_oracle_v1* forge_oracle(void) {
  static const forge_oracle_v1 oracle{FORGE_ORACLE_VERSION, "conv2d_f32", expected, adversarial};
  return &oracle;
}
