// Dot products in register blocks of 1 row x 8 columns.
#include "forge_args.h"

#ifdef __AVX512F__
constexpr int W = 16;
#else
constexpr int W = 8;
#endif
typedef float V __attribute__((vector_size(W * 4), may_alias));

constexpr int ROWS = 1, COLUMNS = 8;

static inline float lanes(V v) {
  float total = 0;
  for (int l = 0; l < W; l++) total += v[l];
  return total;
}

extern "C" void dots(const forge_args* p, const forge_block* b) {
  const int begin = b->index * 16, end = begin + 16 < p->rows ? begin + 16 : p->rows;
  for (int r0 = begin; r0 < end; r0 += ROWS)
    for (int c0 = 0; c0 < columns; c0 += COLUMNS) {
      const float* x[ROWS];
      for (int r = 0; r < ROWS; r++) x[r] = p->x + (long)(r0 + r < end ? r0 + r : end - 1) * depth;  // a short block repeats its last row
      V sum[ROWS][COLUMNS] = {};
      for (int k = 0; k < depth; k += W) {
        V w[COLUMNS];
#pragma GCC unroll 8
        for (int c = 0; c < COLUMNS; c++) w[c] = *(const V*)(p->w + (long)(c0 + c) * depth + k);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) {
          const V a = *(const V*)(x[r] + k);
#pragma GCC unroll 8
          for (int c = 0; c < COLUMNS; c++) sum[r][c] += a * w[c];
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 8
        for (int c = 0; c < COLUMNS; c++)
          if (r0 + r < end) p->y[(long)(r0 + r) * columns + c0 + c] = lanes(sum[r][c]);
    }
}
