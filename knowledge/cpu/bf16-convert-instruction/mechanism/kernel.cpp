// float32 to bfloat16 by the conversion instruction.
#include <immintrin.h>

#include "forge_args.h"

extern "C" void narrow(const forge_args* p, const forge_block* b) {
  const long begin = b->index * 8L, end = begin + 8 < p->rows ? begin + 8 : p->rows;
  const float* x = p->x + begin * columns;
  unsigned short* y = (unsigned short*)p->y + begin * columns;
  for (long i = 0; i < (end - begin) * columns; i += 16) {
    __m256i narrow;
    asm("vcvtneps2bf16 %1, %0" : "=v"(narrow) : "v"(_mm512_loadu_ps(x + i)));
    _mm256_storeu_si256((__m256i*)(y + i), narrow);
  }
}
