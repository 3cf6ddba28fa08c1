// SPDX-License-Identifier: Apache-2.0
// Y[n, p, q, f] = sum over r, s, c of X[n, p + r - R/2, q + s - S/2, c] W[f, r, s, c] in fp64, zero outside of X; scale = the sum of
// magnitudes. One thread an element of Y, neighbours along f. A product of two float16 is exact in fp64.
#include <cuda_fp16.h>

#include "forge/oracle_cuda.h"

extern "C" __global__ void __launch_bounds__(FORGE_ORACLE_CUDA_THREADS) forge_oracle_v1_Y(const forge_oracle_cuda_call call) {
  const auto* x = static_cast<const __half*>(call.inputs[0]);
  const auto* w = static_cast<const __half*>(call.inputs[1]);
  const int64_t height = call.axes[1], width = call.axes[2], channels = call.axes[3], filters = call.axes[4];
  const int64_t taps_r = call.axes[5], taps_s = call.axes[6];
  const int64_t count = (call.end - call.begin) * height * width * filters;
  for (int64_t e = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; e < count; e += int64_t(gridDim.x) * blockDim.x) {
    const int64_t f = e % filters, q = e / filters % width, p = e / filters / width % height;
    const int64_t n = call.begin + e / filters / width / height;
    double sum = 0, magnitude = 0;
    for (int64_t r = 0; r < taps_r; r++)
      for (int64_t s = 0; s < taps_s; s++) {
        const int64_t y_at = p + r - taps_r / 2, x_at = q + s - taps_s / 2;
        if (y_at < 0 || y_at >= height || x_at < 0 || x_at >= width) continue;
        const __half* pixel = x + ((n * height + y_at) * width + x_at) * channels;
        const __half* tap = w + ((f * taps_r + r) * taps_s + s) * channels;
        for (int64_t c = 0; c < channels; c++) {
          const double product = double(__half2float(pixel[c])) * double(__half2float(tap[c]));
          sum += product;
          magnitude += fabs(product);
        }
      }
    call.expected[e] = sum;
    if (call.scale) call.scale[e] = magnitude;
  }
}
