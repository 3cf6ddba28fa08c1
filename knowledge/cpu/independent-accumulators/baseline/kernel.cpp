// Dot products with one chain of FMAs each.
#include "forge_args.h"

#ifdef __AVX512F__
constexpr int W = 16;
#else
constexpr int W = 8;
#endif
typedef float V __attribute__((vector_size(W * 4), may_alias));

extern "C" void dots(const forge_args* p, const forge_block* b) {
  constexpr int CHAINS = 1;
  const int begin = b->index * 16, end = begin + 16 < p->rows ? begin + 16 : p->rows;
  for (int r = begin; r < end; r++)
    for (int c = 0; c < columns; c++) {
      const float* x = p->x + (long)r * depth;
      const float* w = p->w + (long)c * depth;
      V sum[CHAINS] = {};
      for (int k = 0; k < depth; k += CHAINS * W)
#pragma GCC unroll 8
        for (int j = 0; j < CHAINS; j++) sum[j] += *(const V*)(x + k + j * W) * *(const V*)(w + k + j * W);
      for (int j = 1; j < CHAINS; j++) sum[0] += sum[j];
      float total = 0;
      for (int l = 0; l < W; l++) total += sum[0][l];
      p->y[(long)r * columns + c] = total;
    }
}
