// y = 2 x + 1 with non-temporal stores.
#include "forge_args.h"

#ifdef __AVX512F__
constexpr int W = 16;
#else
constexpr int W = 8;
#endif
typedef float V __attribute__((vector_size(W * 4), may_alias));

extern "C" void stream(const forge_args* p, const forge_block* b) {
  const long begin = b->index * 8L, end = begin + 8 < p->rows ? begin + 8 : p->rows;
  const float* x = p->x + begin * columns;
  float* y = p->y + begin * columns;
  for (long i = 0; i < (end - begin) * columns; i += W) {
    const V v = 2 * *(const V*)(x + i) + 1;
    asm volatile("vmovntps %1, %0" : "=m"(*(V*)(y + i)) : "v"(v));
  }
  asm volatile("sfence" ::: "memory");  // streaming stores are weakly ordered
}
