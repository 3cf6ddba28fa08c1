// Dot products, 64 columns side by side in vector lanes; w is read in place, a row apart for each lane.
#include "forge_args.h"

#ifdef __AVX512F__
constexpr int W = 16;
#else
constexpr int W = 8;
#endif
typedef float V __attribute__((vector_size(W * 4), may_alias));

constexpr int VECTORS = columns / W, ROWS = 256 / columns;

extern "C" void dots(const forge_args* p, const forge_block* b) {
  const int begin = b->index * 64, end = begin + 64 < p->rows ? begin + 64 : p->rows;
  for (int r0 = begin; r0 < end; r0 += ROWS) {
    const float* x[ROWS];
    for (int r = 0; r < ROWS; r++) x[r] = p->x + (long)(r0 + r < end ? r0 + r : end - 1) * depth;
    V sum[ROWS][VECTORS] = {};
    for (int k = 0; k < depth; k++)
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; v++) {
        V w;
        for (int l = 0; l < W; l++) w[l] = p->w[(long)(v * W + l) * depth + k];
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) sum[r][v] += w * x[r][k];
      }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; v++)
        if (r0 + r < end) *(V*)(p->y + (long)(r0 + r) * columns + v * W) = sum[r][v];
  }
}
