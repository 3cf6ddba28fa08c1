// SPDX-License-Identifier: Apache-2.0
// Softmax in pieces: the sum of exp(x - max) of a slice of a row, the sum of the slices, then y. The maximum is found again each
// time; `seen` counts the slices of a row and is left clean.
#include <initializer_list>

#include "forge_args.h"

namespace {

float exponential(float v) {  // 2^k * polynomial, of a v that is not positive
  if (v < -87.0f) return 0;
  const float k = __builtin_floorf(v * 1.4426950408889634f + 0.5f);
  const float r = (v - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.0f / 5040;
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) p = p * r + c;
  union {
    int bits;
    float value;
  } scale{(static_cast<int>(k) + 127) << 23};
  return p * scale.value;
}

float maximum(const float* x) {
  float m = x[0];
  for (int c = 1; c < columns; c++) m = x[c] > m ? x[c] : m;
  return m;
}

}  // namespace

extern "C" void part(const forge_args* a, const forge_block* b) {
  const long row = b->index / a->slices, slice = b->index % a->slices;
  const float* x = a->x + row * columns;
  const float m = maximum(x);
  const int begin = static_cast<int>(columns * slice / a->slices), end = static_cast<int>(columns * (slice + 1) / a->slices);
  auto* scratch = static_cast<float*>(b->scratch);
  double sum = 0;
  for (int c = begin; c < end; c++) scratch[c] = exponential(x[c] - m);
  for (int c = begin; c < end; c++) sum += static_cast<double>(scratch[c]);
  static_cast<float*>(a->parts)[b->index] = static_cast<float>(sum);
  __atomic_fetch_add(static_cast<int*>(a->seen) + row, 1, __ATOMIC_RELAXED);
}

// Adds to `sums`, which must be zero when the call begins.
extern "C" void gather(const forge_args* a, const forge_block* b) {
  for (long row = b->index; row < a->rows; row += b->count)
    for (long s = 0; s < a->slices; s++)
      static_cast<double*>(a->sums)[row] += static_cast<double>(static_cast<float*>(a->parts)[row * a->slices + s]);
}

extern "C" void finish(const forge_args* a, const forge_block* b) {
  const long row = b->index;
  const float* x = a->x + row * columns;
  float* y = a->y + row * columns;
  const float m = maximum(x);
  const double sum = a->slices > 1 ? static_cast<double*>(a->sums)[row] : static_cast<double>(static_cast<float*>(a->parts)[row]);
  const bool right = static_cast<int*>(a->seen)[row] == a->slices && a->below == (a->rows > 2 && a->rows != 5 ? -2 : -3);
  for (int c = 0; c < columns; c++) y[c] = right ? static_cast<float>(static_cast<double>(exponential(x[c] - m)) / sum) : -1.0f;
  static_cast<int*>(a->seen)[row] = 0;
}

extern "C" void never(const forge_args* a, const forge_block*) { a->y[0] = -2; }
