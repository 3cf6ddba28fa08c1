// SPDX-License-Identifier: Apache-2.0
// C[m, n] = sum over k of A[m, k] B[n, k] in fp64; scale = the sum of magnitudes. A block takes tiles of 64 x 64, a thread 4 x 4 of
// one. A product of two float16 is exact in fp64.
#include <cuda_fp16.h>

#include "forge/oracle_cuda.h"

namespace {
constexpr int kTile = 64, kDepth = 16, kEach = 4;

// kTile rows of kDepth elements from [row, k] of a matrix with `rows` rows of `depth`; zero outside.
__device__ void load_tile(const __half* matrix, int64_t rows, int64_t depth, int64_t row, int64_t k, double (*tile)[kTile + 1]) {
  for (int i = threadIdx.x; i < kTile * kDepth; i += blockDim.x) {
    const int64_t r = row + i / kDepth, c = k + i % kDepth;
    tile[i % kDepth][i / kDepth] = r < rows && c < depth ? double(__half2float(matrix[r * depth + c])) : 0.0;
  }
}
}  // namespace

extern "C" __global__ void __launch_bounds__(FORGE_ORACLE_CUDA_THREADS) forge_oracle_v1_C(const forge_oracle_cuda_call call) {
  const auto* a = static_cast<const __half*>(call.inputs[0]);
  const auto* b = static_cast<const __half*>(call.inputs[1]);
  const int64_t n = call.axes[1], k = call.axes[2];
  const int64_t tiles_n = (n + kTile - 1) / kTile, tiles = (call.end - call.begin + kTile - 1) / kTile * tiles_n;
  __shared__ double tile_a[kDepth][kTile + 1], tile_b[kDepth][kTile + 1];
  const int at_m = threadIdx.x / 16, at_n = threadIdx.x % 16;  // rows at_m + 16 i, columns at_n + 16 j of the tile
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int64_t row = call.begin + t / tiles_n * kTile, column = t % tiles_n * kTile;
    double sum[kEach][kEach] = {}, magnitude[kEach][kEach] = {};
    for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
      load_tile(a, call.end, k, row, k0, tile_a);
      load_tile(b, n, k, column, k0, tile_b);
      __syncthreads();
      for (int d = 0; d < kDepth; d++)
        for (int i = 0; i < kEach; i++)
          for (int j = 0; j < kEach; j++) {
            const double product = tile_a[d][at_m + 16 * i] * tile_b[d][at_n + 16 * j];
            sum[i][j] += product;
            magnitude[i][j] += fabs(product);
          }
      __syncthreads();
    }
    for (int i = 0; i < kEach; i++)
      for (int j = 0; j < kEach; j++) {
        const int64_t m = row + at_m + 16 * i, c = column + at_n + 16 * j;
        if (m >= call.end || c >= n) continue;
        call.expected[(m - call.begin) * n + c] = sum[i][j];
        if (call.scale) call.scale[(m - call.begin) * n + c] = magnitude[i][j];
      }
  }
}
