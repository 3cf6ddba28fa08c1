// SPDX-License-Identifier: Apache-2.0
// y = softmax(x) over the last axis, a row a block: maximum, exp and sum, scale.
#include "forge_args.h"

// exp(x) for x <= 0 as 2^n 2^f: x log2(e) in two parts, a polynomial for 2^f.
static inline float exp_of(float x) {
  x = x < -87.0f ? -87.0f : x;
  const float n = __builtin_rintf(x * 1.44269504f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int bits = ((int)n + 127) << 23;
  return p * __builtin_bit_cast(float, bits);
}

extern "C" void softmax_f32(const forge_args* a, const forge_block* b) {
  const float* x = a->x + (long)b->index * columns;
  float* y = a->y + (long)b->index * columns;
  constexpr int L = 32;
  float most[L], part[L];
  for (int l = 0; l < L; l++) most[l] = x[l], part[l] = 0;
  for (int c = L; c < columns; c += L)
    for (int l = 0; l < L; l++) most[l] = x[c + l] > most[l] ? x[c + l] : most[l];
  float m = most[0];
  for (int l = 1; l < L; l++) m = most[l] > m ? most[l] : m;
  for (int c = 0; c < columns; c += L)
    for (int l = 0; l < L; l++) {
      const float e = exp_of(x[c + l] - m);
      y[c + l] = e;
      part[l] += e;
    }
  float sum = 0;
  for (int l = 0; l < L; l++) sum += part[l];
  const float scale = 1.0f / sum;
  for (int c = 0; c < columns; c++) y[c] *= scale;
}
