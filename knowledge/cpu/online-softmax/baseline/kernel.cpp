// Sum of exp(x - max) in two sweeps over a row.
#include "forge_args.h"

#ifdef __AVX512F__
constexpr int W = 16;
#else
constexpr int W = 8;
#endif
typedef float V __attribute__((vector_size(W * 4), may_alias));
typedef unsigned U __attribute__((vector_size(W * 4)));

// exp(x) = 2^n e^r with n = round(x / ln 2), r = x - n ln 2 in two parts, e^r by its degree-6 Taylor polynomial on |r| <= 0.35.
template <class F, class I>
static inline F exp_of(F x) {
  const F shift = F{} + 12582912.0f, low = F{} - 87.0f;
  x = x < low ? low : x;
  const F t = x * 1.44269504f + shift, n = t - shift;
  const F r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  F e = r * (1.0f / 720) + 1.0f / 120;
  e = e * r + 1.0f / 24;
  e = e * r + 1.0f / 6;
  e = e * r + 0.5f;
  e = e * r + 1.0f;
  e = e * r + 1.0f;
  return e * __builtin_bit_cast(F, (__builtin_bit_cast(I, t) + (I{} + 127)) << 23);
}

extern "C" void exp_sum(const forge_args* p, const forge_block* b) {
  const int begin = b->index * 8, end = begin + 8 < p->rows ? begin + 8 : p->rows;
  for (int r = begin; r < end; r++) {
    const float* x = p->x + (long)r * columns;
    V top = *(const V*)x;
    for (int c = W; c < columns; c += W) {
      const V v = *(const V*)(x + c);
      top = v > top ? v : top;
    }
    float m = top[0];
    for (int l = 1; l < W; l++) m = top[l] > m ? top[l] : m;
    V sums = {};
    for (int c = 0; c < columns; c += W) sums += exp_of<V, U>(*(const V*)(x + c) - m);
    float sum = 0;
    for (int l = 0; l < W; l++) sum += sums[l];
    p->s[r] = sum;
  }
}
