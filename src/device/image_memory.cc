// SPDX-License-Identifier: Apache-2.0
#include "device/image_memory.h"

#include <cstdint>
#include <cstring>

// They run on a kernel's stack in an address space that sanitizers know nothing of, and must not turn into calls of themselves.
#define FORGE_PLAIN __attribute__((no_sanitize("address", "undefined"), optimize("O2", "no-tree-loop-distribute-patterns")))

namespace forge {
namespace {

using Word = std::uint64_t;
constexpr std::size_t k_string_instruction_pays = 512;  // bytes; below it, start-up costs more than a loop of words

FORGE_PLAIN __attribute__((always_inline)) inline Word load_word(const unsigned char* p) {
  Word w;
  asm volatile("mov (%1), %0" : "=r"(w) : "r"(p) : "memory");
  return w;
}
FORGE_PLAIN __attribute__((always_inline)) inline void store_word(unsigned char* p, Word w) {
  asm volatile("mov %0, (%1)" : : "r"(w), "r"(p) : "memory");
}

}  // namespace

extern "C" {

FORGE_PLAIN void* forge_image_memcpy(void* to, const void* from, std::size_t n) {
  auto* d = static_cast<unsigned char*>(to);
  const auto* s = static_cast<const unsigned char*>(from);
  if (n >= k_string_instruction_pays) {
    asm volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
    return to;
  }
  for (; n >= 8; n -= 8, d += 8, s += 8) store_word(d, load_word(s));
  for (; n > 0; --n) *d++ = *s++;
  return to;
}

FORGE_PLAIN void* forge_image_memmove(void* to, const void* from, std::size_t n) {
  auto* d = static_cast<unsigned char*>(to);
  const auto* s = static_cast<const unsigned char*>(from);
  if (static_cast<std::size_t>(d - s) >= n) return forge_image_memcpy(to, from, n);  // forward is safe
  for (; n >= 8; n -= 8) store_word(d + n - 8, load_word(s + n - 8));
  for (; n > 0; --n) d[n - 1] = s[n - 1];
  return to;
}

FORGE_PLAIN void* forge_image_memset(void* to, int value, std::size_t n) {
  auto* d = static_cast<unsigned char*>(to);
  if (n >= k_string_instruction_pays) {
    asm volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(value) : "memory");
    return to;
  }
  const Word w = 0x0101010101010101u * static_cast<unsigned char>(value);
  for (; n >= 8; n -= 8, d += 8) store_word(d, w);
  for (; n > 0; --n) *d++ = static_cast<unsigned char>(value);
  return to;
}

FORGE_PLAIN int forge_image_memcmp(const void* a, const void* b, std::size_t n) {
  const auto* p = static_cast<const unsigned char*>(a);
  const auto* q = static_cast<const unsigned char*>(b);
  for (; n >= 8 && load_word(p) == load_word(q); n -= 8) p += 8, q += 8;
  for (; n > 0; --n, ++p, ++q)
    if (*p != *q) return *p < *q ? -1 : 1;
  return 0;
}

}  // extern "C"
}  // namespace forge
