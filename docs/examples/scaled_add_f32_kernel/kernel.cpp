// SPDX-License-Identifier: Apache-2.0
// z = s * x + y, one block of 16 rows at a time.
#include "forge_args.h"

extern "C" void scaled_add(const forge_args* a, const forge_block* b) {
  const int begin = b->index * 16, end = begin + 16 < a->rows ? begin + 16 : a->rows;
  for (long r = begin; r < end; r++) {
    const float* x = a->x + r * columns;
    const float* y = a->y + r * columns;
    float* z = a->z + r * columns;
    for (int c = 0; c < columns; c++) z[c] = a->s[c] * x[c] + y[c];
  }
}
