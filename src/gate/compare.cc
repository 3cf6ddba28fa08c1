// SPDX-License-Identifier: Apache-2.0
#include "gate/compare.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gate/numeric.h"

namespace forge {
namespace {

constexpr double k_infinity = std::numeric_limits<double>::infinity();

// Fast path: true when every element is finite and within its bound. Anything else, infinities that match included, is left to
// the element-wise judgement below, so this can only be too strict.
template <bool Scaled>
__attribute__((target("avx2,fma"))) bool all_within(const float* got, const float* expected, const float* bound, float absolute,
                                                    float tolerance, std::int64_t count, float& worst) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  const __m256 smallest = _mm256_set1_ps(std::numeric_limits<float>::min());
  const __m256 largest = _mm256_set1_ps(std::numeric_limits<float>::max());  // an infinite expected value has an infinite bound
  const __m256 absolutes = _mm256_set1_ps(absolute), tolerances = _mm256_set1_ps(tolerance);
  __m256 ok = _mm256_castsi256_ps(_mm256_set1_epi32(-1)), most = _mm256_setzero_ps();
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 e = _mm256_loadu_ps(expected + i);
    const __m256 error = _mm256_and_ps(magnitude, _mm256_sub_ps(_mm256_loadu_ps(got + i), e));
    __m256 b;
    if constexpr (Scaled)
      b = _mm256_loadu_ps(bound + i);
    else
      b = _mm256_fmadd_ps(tolerances, _mm256_and_ps(magnitude, e), absolutes);
    // min() yields its second operand when one is a NaN: a NaN bound accepts nothing.
    ok = _mm256_and_ps(ok, _mm256_cmp_ps(error, _mm256_min_ps(largest, b), _CMP_LE_OQ));
    most = _mm256_max_ps(_mm256_div_ps(error, _mm256_max_ps(b, smallest)), most);  // a NaN in the first operand yields the second
  }
  bool good = _mm256_movemask_ps(ok) == 0xff;
  float lanes[8];
  _mm256_storeu_ps(lanes, most);
  for (const float lane : lanes) worst = std::max(worst, lane);
  for (; i < count; ++i) {
    const float error = std::fabs(got[i] - expected[i]);
    const float b = Scaled ? bound[i] : std::fma(tolerance, std::fabs(expected[i]), absolute);
    good &= error <= std::min(b, std::numeric_limits<float>::max());
    worst = std::max(worst, error / std::max(b, std::numeric_limits<float>::min()));
  }
  return good;
}

bool is_poison(const std::byte* element, std::size_t size, std::int64_t index, const Pattern& poison) {
  const std::size_t at = static_cast<std::size_t>(index) * size % sizeof poison;
  return std::memcmp(element, reinterpret_cast<const std::byte*>(poison.data()) + at, size) == 0;
}

void note_bad(Findings& f, std::int64_t index, double ratio) {
  if (f.first_bad < 0 || index < f.first_bad) f.first_bad = index;
  if (f.worst_index < 0 || ratio > f.worst) f.worst_index = index;
  f.worst = std::max(f.worst, ratio);
}

// The judgement of one element. The fast paths accept nothing that this refuses, but for the bound's rounding to float.
void judge_element(const JudgeRule& rule, DType type, const Piece& piece, std::int64_t i, const Pattern& poison, Findings& f) {
  const std::size_t size = bytes_of(type);
  const std::byte* element = piece.got + static_cast<std::size_t>(i) * size;
  const std::int64_t index = piece.first + i;
  const double got = decode(type, element);
  const bool exact = rule.kind == JudgeKind::exact;
  const auto* expected_bits = static_cast<const std::byte*>(piece.expected) + static_cast<std::size_t>(i) * size;
  const double expected = exact ? decode(type, expected_bits) : static_cast<const float*>(piece.expected)[i];
  const bool same_bits = exact && std::memcmp(element, expected_bits, size) == 0;
  // An integer has no NaN: there poison is just a value, and may happen to be the right one.
  if (is_poison(element, size, index, poison) && !(same_bits && !is_float(type))) {
    ++f.not_written;
    return note_bad(f, index, k_infinity);
  }
  if (std::isnan(got) || std::isnan(expected) || std::isinf(got) || std::isinf(expected)) {
    if ((std::isnan(got) && std::isnan(expected)) || got == expected) return;
    ++f.non_finite;
    return note_bad(f, index, k_infinity);
  }
  if (exact) {
    if (same_bits || (got == expected && is_float(type))) return;  // +0 and -0 are one value
    ++f.wrong;
    return note_bad(f, index, k_infinity);
  }
  const double error = std::fabs(got - expected);
  const double allowed = allowed_error(rule, static_cast<float>(expected), piece.bound ? piece.bound[i] : 0);
  const double ratio = allowed > 0 ? error / allowed : (error > 0 ? k_infinity : 0);
  if (error <= allowed) {
    f.worst = std::max(f.worst, ratio);
    return;
  }
  ++f.wrong;
  note_bad(f, index, ratio);
}

}  // namespace

void Findings::merge(const Findings& o) {
  compared += o.compared;
  not_written += o.not_written;
  non_finite += o.non_finite;
  wrong += o.wrong;
  if (o.first_bad >= 0 && (first_bad < 0 || o.first_bad < first_bad)) first_bad = o.first_bad;
  if (o.worst_index >= 0 && (worst_index < 0 || o.worst > worst)) worst_index = o.worst_index;
  worst = std::max(worst, o.worst);
}

double allowed_error(const JudgeRule& rule, float expected, float bound) {
  if (rule.kind == JudgeKind::exact) return 0;
  return rule.kind == JudgeKind::scaled ? bound : rule.absolute + rule.tolerance * std::fabs(static_cast<double>(expected));
}

void compare_piece(const JudgeRule& rule, DType type, const Piece& piece, const Pattern& poison, Findings& findings) {
  findings.compared += piece.count;
  if (rule.kind == JudgeKind::exact) {
    const std::size_t bytes = static_cast<std::size_t>(piece.count) * bytes_of(type);
    // Equal bits without a NaN in the expected ones: poison is a NaN, so it cannot hide here.
    if (std::memcmp(piece.got, piece.expected, bytes) == 0) {
      bool has_nan = false;
      if (is_float(type)) {
        alignas(64) float values[k_piece];
        decode_floats(type, piece.expected, values, piece.count);
        for (std::int64_t i = 0; i < piece.count; ++i) has_nan |= std::isnan(values[i]);
      }
      if (!has_nan) return;
    }
  } else {
    alignas(64) float values[k_piece];
    const float* got = reinterpret_cast<const float*>(piece.got);
    if (type != DType::f32) {
      decode_floats(type, piece.got, values, piece.count);
      got = values;
    }
    const auto* expected = static_cast<const float*>(piece.expected);
    float worst = 0;
    const bool good = rule.kind == JudgeKind::scaled ? all_within<true>(got, expected, piece.bound, 0, 0, piece.count, worst)
                                                     : all_within<false>(got, expected, nullptr, static_cast<float>(rule.absolute),
                                                                         static_cast<float>(rule.tolerance), piece.count, worst);
    if (good) {
      findings.worst = std::max(findings.worst, static_cast<double>(worst));
      return;
    }
  }
  for (std::int64_t i = 0; i < piece.count; ++i) judge_element(rule, type, piece, i, poison, findings);
}

}  // namespace forge
