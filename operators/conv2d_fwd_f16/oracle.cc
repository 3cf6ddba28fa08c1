// SPDX-License-Identifier: Apache-2.0
// Y[n, p, q, f] = sum over r, s, c of X[n, p + r - 1, q + s - 1, c] W[f, r, s, c] in fp64, zero outside of X; scale = the sum of
// magnitudes.
#include "../common/f16_products.h"

namespace {

int32_t expected(const forge_tensor* inputs, int32_t input_count, const forge_tensor*, int32_t output_count, double* const* results,
                 double* const* scale, int64_t begin, int64_t end) {
  if (input_count != 2 || output_count != 1) return 1;
  const auto* x = static_cast<const uint16_t*>(inputs[0].data);
  const auto* w = static_cast<const uint16_t*>(inputs[1].data);
  const int64_t height = inputs[0].shape[1], width = inputs[0].shape[2], channels = inputs[0].shape[3];
  const int64_t filters = inputs[1].shape[0], taps_r = inputs[1].shape[1], taps_s = inputs[1].shape[2];
  const int64_t image = height * width * channels, first = begin * image;
  std::vector<float> images(static_cast<std::size_t>((end - begin) * image));
  for (std::size_t i = 0; i < images.size(); i++) images[i] = f16_to_float(x[first + static_cast<int64_t>(i)]);
  std::vector<double> panel;
  for (int64_t f0 = 0; f0 < filters; f0 += kColumns) {
    make_panel(w, f0, filters, taps_r * taps_s * channels, panel);
    for (int64_t n = begin; n < end; n++)
      for (int64_t p = 0; p < height; p++)
        for (int64_t q = 0; q < width; q++) {
          double sum[kColumns] = {}, magnitude[kColumns] = {};
          for (int64_t r = 0; r < taps_r; r++)
            for (int64_t s = 0; s < taps_s; s++) {
              const int64_t y_at = p + r - taps_r / 2, x_at = q + s - taps_s / 2;
              if (y_at < 0 || y_at >= height || x_at < 0 || x_at >= width) continue;
              add_products(images.data() + (n - begin) * image + (y_at * width + x_at) * channels,
                           panel.data() + (r * taps_s + s) * channels * kColumns, channels, sum, magnitude);
            }
          const int64_t at = ((n * height + p) * width + q) * filters;
          for (int64_t f = f0; f < filters && f < f0 + kColumns; f++) {
            results[0][at + f] = sum[f - f0];
            if (scale && scale[0]) scale[0][at + f] = magnitude[f - f0];
          }
        }
  }
  return 0;
}

// The shared variants with k = a pixel's channels, and one of the convolution's own:
// 6: only the border of the images holds anything, so that a wrong padding shows everywhere
int32_t adversarial(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant) {
  if (input_count != 2) return 0;
  if (variant < 0) return kVariants + 1;  // only asked how many there are
  variant %= kVariants + 1;
  const int64_t channels = inputs[0].shape[3];
  for (int t = 0; t < 2; t++) {
    const int64_t* shape = inputs[t].shape;
    auto* data = static_cast<uint16_t*>(inputs[t].data);
    const int64_t pixels = shape[0] * shape[1] * shape[2];
    // `variant` 6 starts from plain all-positive content, the case without any cancellation.
    fill_adversarial(data, pixels, channels, t, seed, variant == kVariants ? 2 : variant);
    if (variant != kVariants || t == 1) continue;
    for (int64_t i = 0; i < pixels; i++) {
      const int64_t row = i / shape[2] % shape[1], column = i % shape[2];
      if (row == 0 || row == shape[1] - 1 || column == 0 || column == shape[2] - 1) continue;
      for (int64_t c = 0; c < channels; c++) data[i * channels + c] = 0;
    }
  }
  return kVariants + 1;
}

}  // namespace

extern "C" const forge_oracle_v1* forge_oracle(void) {
  static const forge_oracle_v1 oracle{FORGE_ORACLE_VERSION, "conv2d_fwd_f16", expected, adversarial};
  return &oracle;
}
