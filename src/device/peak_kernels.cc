// SPDX-License-Identifier: Apache-2.0
#include "device/peak_kernels.h"

#include <immintrin.h>

namespace forge {

namespace {
// Enough chains to hide a latency of 4 to 5 cycles on two or more pipes, few enough to stay in registers.
constexpr int k_chains_avx2 = 12, k_chains_avx512 = 24;
}  // namespace

__attribute__((target("avx2,fma"))) double fma_peak_avx2(std::int64_t rounds, float* sink) {
  __m256 c[k_chains_avx2];
  for (int i = 0; i < k_chains_avx2; ++i) c[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < k_chains_avx2; ++i) c[i] = _mm256_fmadd_ps(c[i], a, b);
  }
  __m256 sum = c[0];
  for (int i = 1; i < k_chains_avx2; ++i) sum = _mm256_add_ps(sum, c[i]);
  *sink = _mm256_cvtss_f32(sum);
  return static_cast<double>(rounds) * k_chains_avx2 * 8 * 2;
}

__attribute__((target("avx512f"))) double fma_peak_avx512(std::int64_t rounds, float* sink) {
  __m512 c[k_chains_avx512];
  for (int i = 0; i < k_chains_avx512; ++i) c[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (int i = 0; i < k_chains_avx512; ++i) c[i] = _mm512_fmadd_ps(c[i], a, b);
  }
  __m512 sum = c[0];
  for (int i = 1; i < k_chains_avx512; ++i) sum = _mm512_add_ps(sum, c[i]);
  *sink = _mm512_cvtss_f32(sum);
  return static_cast<double>(rounds) * k_chains_avx512 * 16 * 2;
}

__attribute__((target("avx2"))) std::uint64_t read_stream_avx2(const std::byte* p, std::size_t n) {
  __m256i s[8];
  for (auto& v : s) v = _mm256_setzero_si256();
  for (std::size_t i = 0; i + 256 <= n; i += 256) {
#pragma GCC unroll 8
    for (std::size_t j = 0; j < 8; ++j) s[j] = _mm256_xor_si256(s[j], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + i + 32 * j)));
  }
  for (int j = 1; j < 8; ++j) s[0] = _mm256_xor_si256(s[0], s[j]);
  return static_cast<std::uint64_t>(_mm256_extract_epi64(s[0], 0)) ^ static_cast<std::uint64_t>(_mm256_extract_epi64(s[0], 2));
}

__attribute__((target("avx2"))) void copy_stream_avx2(std::byte* to, const std::byte* from, std::size_t n) {
  for (std::size_t i = 0; i + 256 <= n; i += 256) {
#pragma GCC unroll 8
    for (std::size_t j = 0; j < 8; ++j)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i + 32 * j),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i + 32 * j)));
  }
  _mm_sfence();
}

}  // namespace forge
