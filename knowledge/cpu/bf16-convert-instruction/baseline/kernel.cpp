// float32 to bfloat16 by integer arithmetic on the bits.
#include <immintrin.h>

#include "forge_args.h"

extern "C" void narrow(const forge_args* p, const forge_block* b) {
  const long begin = b->index * 8L, end = begin + 8 < p->rows ? begin + 8 : p->rows;
  const float* x = p->x + begin * columns;
  unsigned short* y = (unsigned short*)p->y + begin * columns;
  for (long i = 0; i < (end - begin) * columns; i += 16) {
    __m256i narrow;
    const __m512i v = _mm512_castps_si512(_mm512_loadu_ps(x + i));
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(v, 16), _mm512_set1_epi32(1));
    narrow = _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(v, odd), _mm512_set1_epi32(0x7fff)), 16));
    _mm256_storeu_si256((__m256i*)(y + i), narrow);
  }
}
