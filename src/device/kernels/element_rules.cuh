// SPDX-License-Identifier: Apache-2.0
// The judge's rules for one element, compiled by the host compiler for the CPU's judge and by nvcc for the card's, so that the two
// cannot drift: how an element is decoded, moved by a symmetry, told from poison, and accepted. C++17, no library beyond <cstdint>.
// A product and a sum are never contracted here: both machines round both.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define FORGE_BOTH __host__ __device__
#else
#define FORGE_BOTH
#endif

namespace forge::rules {

enum Type : std::int32_t { f32, f16, bf16, i64, i32, i16, i8, u8 };
enum Kind : std::int32_t { scaled, relative, exact };

FORGE_BOTH inline int size_of(std::int32_t type) {
  return type == i64 ? 8 : type == f32 || type == i32 ? 4 : type == f16 || type == bf16 || type == i16 ? 2 : 1;
}
FORGE_BOTH inline bool is_float(std::int32_t type) { return type <= bf16; }

// ---- bits and numbers ----

FORGE_BOTH inline float float_of(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
FORGE_BOTH inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
FORGE_BOTH inline bool not_finite(double value) { return !(fabs(value) <= 1.7976931348623157e308); }
FORGE_BOTH inline bool not_a_number(double value) { return value != value; }

FORGE_BOTH inline std::uint64_t load(std::int32_t type, const void* base, std::int64_t index) {
  switch (size_of(type)) {
    case 8:
      return static_cast<const std::uint64_t*>(base)[index];
    case 4:
      return static_cast<const std::uint32_t*>(base)[index];
    case 2:
      return static_cast<const std::uint16_t*>(base)[index];
    default:
      return static_cast<const std::uint8_t*>(base)[index];
  }
}

FORGE_BOTH inline float float_from_half(std::uint32_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31u, mantissa = half & 0x3ffu;
  if (exponent == 31) return float_of(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24: subnormals are multiples of it
    return sign ? -value : value;
  }
  return float_of(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

FORGE_BOTH inline double decode(std::int32_t type, std::uint64_t bits) {
  switch (type) {
    case f32:
      return float_of(static_cast<std::uint32_t>(bits));
    case f16:
      return float_from_half(static_cast<std::uint32_t>(bits));
    case bf16:
      return float_of(static_cast<std::uint32_t>(bits) << 16);
    case i64:
      return static_cast<double>(static_cast<std::int64_t>(bits));
    case i32:
      return static_cast<std::int32_t>(bits);
    case i16:
      return static_cast<std::int16_t>(bits);
    case i8:
      return static_cast<std::int8_t>(bits);
    default:
      return static_cast<double>(bits & 0xff);
  }
}

// A double as a float rounded to odd, so that a second rounding to fewer bits gives what one rounding would have given.
FORGE_BOTH inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || not_finite(value)) return nearest;
  std::uint32_t bits = bits_of(nearest);
  if ((bits & 0x7fffffffu) == 0x7f800000u) return float_of((bits & 0x80000000u) | 0x7f7fffffu);  // the largest float is odd
  if (fabs(static_cast<double>(nearest)) > fabs(value)) --bits;                                  // now truncated towards zero
  return float_of(bits | 1u);
}
FORGE_BOTH inline std::uint32_t half_of(float value) {
  const std::uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu);  // quiet NaN
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;                                // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {                                                      // below 2^-14: subnormal
    // Adding 0.5 puts the last bit of a subnormal half (2^-24) in the last place of the float, rounded to nearest even.
    return sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u);
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}
FORGE_BOTH inline std::uint32_t bfloat_of(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return ((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16) & 0xffffu;
}
FORGE_BOTH inline std::uint64_t encode_integer(double value, int bits, bool with_sign) {
  if (not_a_number(value)) return 0;
  const double rounded = nearbyint(value);
  const double most = with_sign ? ldexp(1.0, bits - 1) : ldexp(1.0, bits), least = with_sign ? -most : 0;
  const std::uint64_t mask = bits == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << bits) - 1;
  if (rounded >= most) return with_sign ? mask >> 1 : mask;
  if (rounded <= least) return with_sign ? (std::uint64_t(1) << (bits - 1)) : 0;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(rounded)) & mask;
}
// Rounded once, to nearest even; integers saturate.
FORGE_BOTH inline std::uint64_t encode(std::int32_t type, double value) {
  switch (type) {
    case f32:
      return bits_of(static_cast<float>(value));
    case f16:
      return half_of(round_to_odd(value));
    case bf16:
      return bfloat_of(round_to_odd(value));
    case i64:
      return encode_integer(value, 64, true);
    case i32:
      return encode_integer(value, 32, true);
    case i16:
      return encode_integer(value, 16, true);
    case i8:
      return encode_integer(value, 8, true);
    default:
      return encode_integer(value, 8, false);
  }
}

FORGE_BOTH inline double product(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
FORGE_BOTH inline double sum(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

// ---- what a task's rule allows ----

struct Element {
  std::int32_t type = f32;  // of the output
  std::int32_t kind = relative;
  double tolerance = 0, absolute = 0, relative_part = 0;
};

// What a base keeps of the oracle's answer: a float, infinite where the output's type overflows; its own bits when exact.
FORGE_BOTH inline std::uint64_t stored_bits(const Element& rule, double expected) {
  if (rule.kind == exact) return encode(rule.type, expected);
  float value = static_cast<float>(expected);
  if (rule.type != f32) {
    const double rounded = decode(rule.type, encode(rule.type, expected));
    if (is_float(rule.type) && not_finite(rounded) && !not_a_number(rounded)) value = static_cast<float>(rounded);
  }
  return bits_of(value);
}
// The bound of a `scaled` or `relative` element, from its stored value.
FORGE_BOTH inline double bound_of(const Element& rule, float value, double scale) {
  const double magnitude = fabs(static_cast<double>(value));
  if (rule.kind == scaled) return sum(sum(rule.absolute, product(rule.relative_part, magnitude)), product(rule.tolerance, scale));
  return sum(rule.absolute, product(rule.tolerance, magnitude));
}
// An infinite or NaN bound on a finite value would accept anything, or nothing.
FORGE_BOTH inline bool unusable(float value, double bound) {
  const float kept = static_cast<float>(bound);
  return !not_finite(value) && !(kept >= 0 && !not_finite(kept));
}
FORGE_BOTH inline double allowed(const Element& rule, float expected, float bound) {
  if (rule.kind == exact) return 0;
  return rule.kind == scaled ? static_cast<double>(bound) : bound_of(rule, expected, 0);
}

// ---- judgement ----

struct Poison {
  std::uint64_t line[8];  // 64 bytes, repeated from the tensor's start
};
FORGE_BOTH inline std::uint64_t poison_at(const Poison& poison, std::int64_t index, int size) {
  const int at = static_cast<int>(index * size % 64);
  const std::uint64_t word = poison.line[at / 8] >> (8 * (at % 8));
  return size == 8 ? word : word & ((std::uint64_t(1) << (8 * size)) - 1);
}

enum Found : std::int32_t { right, not_written, non_finite, wrong };
struct Judgement {
  std::int32_t found;
  double ratio;  // error over bound
};

// The judgement of one element, bits as the types hold them; `expected` is a float's bits unless the rule is exact. Accepts only if
// `error <= allowed` is true, or both are the same non-finite value.
FORGE_BOTH inline Judgement judge(const Element& rule, std::uint64_t got_bits, std::uint64_t expected_bits, float bound,
                                  std::uint64_t poison) {
  const double infinity = static_cast<double>(float_of(0x7f800000u));
  const bool is_exact = rule.kind == exact, same_bits = is_exact && got_bits == expected_bits;
  const double got = decode(rule.type, got_bits), expected = decode(is_exact ? rule.type : std::int32_t(f32), expected_bits);
  // An integer has no NaN: there poison is just a value, and may happen to be the right one.
  if (got_bits == poison && !(same_bits && !is_float(rule.type))) return {not_written, infinity};
  if (not_finite(got) || not_finite(expected)) {
    if ((not_a_number(got) && not_a_number(expected)) || got == expected) return {right, 0};
    return {non_finite, infinity};
  }
  if (is_exact) {
    if (same_bits || (got == expected && is_float(rule.type))) return {right, 0};  // +0 and -0 are one value
    return {wrong, infinity};
  }
  const double error = fabs(got - expected), most = allowed(rule, static_cast<float>(expected), bound);
  const double ratio = most > 0 ? error / most : (error > 0 ? infinity : 0);
  if (error <= most) return {right, ratio};
  return {wrong, ratio};
}
// An index names the value asked for when the element there equals it.
FORGE_BOTH inline bool names_value(std::int32_t type, std::uint64_t element, std::uint64_t value) {
  if (element == value) return true;
  if (!is_float(type)) return false;
  const double a = decode(type, element), b = decode(type, value);
  return a == b || (not_a_number(a) && not_a_number(b));
}

FORGE_BOTH inline std::int64_t index_of(std::int32_t type, std::uint64_t bits) {
  return type == i64 ? static_cast<std::int64_t>(bits) : static_cast<std::int32_t>(bits);
}
// The judgement of one index of a row. Of several equal indices the first is right.
FORGE_BOTH inline Judgement judge_index(bool in_range, bool names, bool first_use, bool is_poison) {
  if (in_range && names && first_use) return {right, 0};
  return {is_poison ? not_written : wrong, static_cast<double>(float_of(0x7f800000u))};
}

// What was found, over any number of elements. Counters of bad elements are disjoint.
struct Findings {
  std::int64_t compared = 0;
  std::int64_t not_written = 0, non_finite = 0, wrong = 0;
  std::int64_t first_bad = -1;    // lowest index of a bad element
  double worst = 0;               // largest error as a fraction of its bound, over all elements
  std::int64_t worst_index = -1;  // of the worst bad element
  FORGE_BOTH std::int64_t bad() const { return not_written + non_finite + wrong; }
  FORGE_BOTH void note(std::int64_t index, const Judgement& j) {
    if (j.found == right) {
      if (j.ratio > worst) worst = j.ratio;
      return;
    }
    if (j.found == rules::not_written)
      ++not_written;
    else if (j.found == rules::non_finite)
      ++non_finite;
    else
      ++wrong;
    if (first_bad < 0 || index < first_bad) first_bad = index;
    if (worst_index < 0 || j.ratio > worst) worst_index = index;
    if (j.ratio > worst) worst = j.ratio;
  }
  FORGE_BOTH void merge(const Findings& o) {
    compared += o.compared;
    not_written += o.not_written;
    non_finite += o.non_finite;
    wrong += o.wrong;
    if (o.first_bad >= 0 && (first_bad < 0 || o.first_bad < first_bad)) first_bad = o.first_bad;
    if (o.worst_index >= 0 && (worst_index < 0 || o.worst > worst)) worst_index = o.worst_index;
    if (o.worst > worst) worst = o.worst;
  }
};

// ---- moving by a symmetry ----

// Element [i, j, ..] of a moved tensor is +-[from(i), from(j), ..] of the base. Rows of `inner` elements are contiguous in both, or
// gathered within one row.
inline constexpr int kMaxOuter = 8;
struct MoveMap {
  std::int32_t outer = 0;
  std::int64_t extent[kMaxOuter] = {}, stride[kMaxOuter] = {};  // outermost first
  const std::int32_t* from[kMaxOuter] = {};
  const std::uint8_t* negative[kMaxOuter] = {};
  std::int64_t inner = 1, elements = 1;
  const std::int32_t* inner_from = nullptr;
  const std::uint8_t* inner_negative = nullptr;
};
struct Source {
  std::int64_t index;
  bool negative;
};
FORGE_BOTH inline Source source_of_row(const MoveMap& map, std::int64_t row) {
  Source source{0, false};
  for (int d = map.outer - 1; d >= 0; --d) {
    const std::int64_t i = row % map.extent[d];
    row /= map.extent[d];
    source.index += map.stride[d] * (map.from[d] ? map.from[d][i] : i);
    if (map.negative[d]) source.negative ^= map.negative[d][i] != 0;
  }
  return source;
}
FORGE_BOTH inline Source within_row(const MoveMap& map, Source row, std::int64_t j) {
  row.index += map.inner_from ? map.inner_from[j] : j;
  if (map.inner_negative) row.negative ^= map.inner_negative[j] != 0;
  return row;
}
FORGE_BOTH inline Source source_of(const MoveMap& map, std::int64_t element) {
  return within_row(map, source_of_row(map, element / map.inner), element % map.inner);
}
FORGE_BOTH inline std::uint64_t signed_bits(std::int32_t type, std::uint64_t bits, bool negative) {
  if (!negative) return bits;
  const int width = 8 * size_of(type);
  if (is_float(type)) return bits ^ (std::uint64_t(1) << (width - 1));
  const std::uint64_t mask = width == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << width) - 1;
  return (~bits + 1) & mask;
}

// ---- canaries ----

// Word `i` of the random bytes around a tensor (splitmix64).
FORGE_BOTH inline std::uint64_t canary_word(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
FORGE_BOTH inline std::uint8_t canary_byte(std::uint64_t seed, std::uint64_t at) {
  return static_cast<std::uint8_t>(canary_word(seed, at / 8) >> (8 * (at % 8)));
}

}  // namespace forge::rules
