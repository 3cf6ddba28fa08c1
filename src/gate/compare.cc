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

}  // namespace

rules::Type element_type(DType type) {
  switch (type) {
    case DType::f32:
      return rules::f32;
    case DType::f16:
      return rules::f16;
    case DType::bf16:
      return rules::bf16;
    case DType::i64:
      return rules::i64;
    case DType::i32:
      return rules::i32;
    case DType::i16:
      return rules::i16;
    case DType::i8:
      return rules::i8;
    default:
      return rules::u8;
  }
}

rules::Element element_rule(const JudgeRule& rule, DType output) {
  const rules::Kind kind = rule.kind == JudgeKind::scaled     ? rules::scaled
                           : rule.kind == JudgeKind::relative ? rules::relative
                                                              : rules::exact;
  return {
      .type = element_type(output), .kind = kind, .tolerance = rule.tolerance, .absolute = rule.absolute, .relative_part = rule.relative};
}

rules::Poison poison_of(const Pattern& pattern) {
  rules::Poison poison;
  static_assert(sizeof poison == sizeof pattern);
  std::memcpy(&poison, pattern.data(), sizeof poison);
  return poison;
}

double allowed_error(const JudgeRule& rule, float expected, float bound) {
  return rules::allowed(element_rule(rule, DType::f32), expected, bound);
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
  // The judgement of each element. The fast paths accept nothing that this refuses, but for the bound's rounding to float.
  const rules::Element element = element_rule(rule, type);
  const rules::Poison line = poison_of(poison);
  const std::int32_t stored = element.kind == rules::exact ? element.type : std::int32_t(rules::f32);
  for (std::int64_t i = 0; i < piece.count; ++i) {
    const std::int64_t index = piece.first + i;
    findings.note(index, rules::judge(element, rules::load(element.type, piece.got, i), rules::load(stored, piece.expected, i),
                                      piece.bound ? piece.bound[i] : 0, rules::poison_at(line, index, rules::size_of(element.type))));
  }
}

void compare_index_row(const IndexRow& row, const Pattern& poison, std::vector<std::uint8_t>& seen, Findings& findings) {
  const rules::Poison line = poison_of(poison);
  const rules::Type type = element_type(row.type), of = element_type(row.of_type);
  seen.assign(static_cast<std::size_t>(row.n), 0);
  findings.compared += row.k;
  for (std::int64_t i = 0; i < row.k; ++i) {
    const std::uint64_t bits = rules::load(type, row.got, i);
    const std::int64_t index = rules::index_of(type, bits);
    const bool in_range = index >= 0 && index < row.n;
    const bool names = in_range && rules::names_value(of, rules::load(of, row.of, index), rules::load(of, row.values, i));
    const bool first_use = in_range && !seen[static_cast<std::size_t>(index)];
    if (in_range) seen[static_cast<std::size_t>(index)] = 1;
    const std::int64_t at = row.first + i;
    findings.note(at, rules::judge_index(in_range, names, first_use, bits == rules::poison_at(line, at, rules::size_of(type))));
  }
}

}  // namespace forge
