// A triangular matrix times v, the longest blocks of rows first.
#include "forge_args.h"

#ifdef __AVX512F__
constexpr int W = 16;
#else
constexpr int W = 8;
#endif
typedef float V __attribute__((vector_size(W * 4), may_alias));

constexpr int R = 4, BK = 64, VECTORS = 32 / W;  // 4 rows x 32 columns of sums in registers

extern "C" void tril(const forge_args* p, const forge_block* b) {
  const int index = b->count - 1 - b->index;
  const int first = index % 8 * 256;
  const float* v = p->v + (long)(index / 8) * keys * columns;
  const float* w = p->w + (long)(index / 8) * rows * keys;
  float* tile = (float*)b->scratch;  // [R][BK], zero behind the diagonal
  for (int r0 = first; r0 < first + 256; r0 += R) {
    V sum[columns / 32][R][VECTORS] = {};
    for (int k0 = 0; k0 < keys; k0 += BK) {
      if (k0 > r0 + R - 1) break;
      for (int r = 0; r < R; r++)
        for (int k = 0; k < BK; k++) tile[r * BK + k] = k0 + k <= r0 + r ? w[(long)(r0 + r) * keys + k0 + k] : 0.0f;
#pragma GCC unroll 2
      for (int half = 0; half < columns / 32; half++) {
        V acc[R][VECTORS] = {};
        for (int k = 0; k < BK; k++)
#pragma GCC unroll 4
          for (int c = 0; c < VECTORS; c++) {
            const V x = *(const V*)(v + (long)(k0 + k) * columns + half * 32 + c * W);
#pragma GCC unroll 4
            for (int r = 0; r < R; r++) acc[r][c] += x * tile[r * BK + k];
          }
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
#pragma GCC unroll 4
          for (int c = 0; c < VECTORS; c++) sum[half][r][c] += acc[r][c];
      }
    }
    for (int half = 0; half < columns / 32; half++)
      for (int r = 0; r < R; r++)
        for (int c = 0; c < VECTORS; c++) *(V*)(p->y + ((long)(index / 8) * rows + r0 + r) * columns + half * 32 + c * W) = sum[half][r][c];
  }
}
