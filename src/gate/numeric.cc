// SPDX-License-Identifier: Apache-2.0
#include "gate/numeric.h"

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <limits>

namespace forge {
namespace {

// bfloat16 is the upper half of a float. Adding 0x7fff plus the lowest kept bit rounds to nearest even; NaNs would
// wrap, so they are made quiet instead.
inline std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}
inline float from_bf16(std::uint16_t value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }

__attribute__((target("f16c"))) std::uint16_t f16_of(float value) {
  return static_cast<std::uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
__attribute__((target("f16c"))) float from_f16(std::uint16_t value) { return _cvtsh_ss(value); }

// A double as a float rounded to odd: a second rounding to fewer bits then gives what one rounding would have given.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !std::isfinite(value)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::isinf(nearest)) return std::copysign(std::numeric_limits<float>::max(), nearest);  // its last bit is odd
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;                     // now truncated towards zero
  return std::bit_cast<float>(bits | 1u);
}

template <class T>
void encode_integer(double value, void* to) {
  T result = 0;
  if (!std::isnan(value)) {
    const double rounded = std::nearbyint(value);
    if (rounded >= static_cast<double>(std::numeric_limits<T>::max()))
      result = std::numeric_limits<T>::max();
    else if (rounded <= static_cast<double>(std::numeric_limits<T>::min()))
      result = std::numeric_limits<T>::min();
    else
      result = static_cast<T>(rounded);
  }
  std::memcpy(to, &result, sizeof result);
}
template <class T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

__attribute__((target("avx2"))) void bf16_from_floats(const float* from, std::uint16_t* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = bf16_of(from[i]);
}
__attribute__((target("avx2"))) void floats_from_bf16(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_bf16(from[i]);
}
__attribute__((target("avx2,f16c"))) void f16_from_floats(const float* from, std::uint16_t* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  for (; i < count; ++i) to[i] = f16_of(from[i]);
}
__attribute__((target("avx2,f16c"))) void floats_from_f16(const std::uint16_t* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  for (; i < count; ++i) to[i] = from_f16(from[i]);
}

}  // namespace

bool is_float(DType type) { return type == DType::f32 || type == DType::f16 || type == DType::bf16; }

bool judge_supports(DType type) {
  switch (type) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return true;
    default:
      return false;
  }
}

std::size_t bytes_of(DType type) { return static_cast<std::size_t>(bits(type)) / 8; }

void encode(DType type, double value, void* to) {
  switch (type) {
    case DType::f32: {
      const float f = static_cast<float>(value);
      std::memcpy(to, &f, 4);
      return;
    }
    case DType::bf16: {
      const std::uint16_t b = bf16_of(round_to_odd(value));
      std::memcpy(to, &b, 2);
      return;
    }
    case DType::f16: {
      const std::uint16_t h = f16_of(round_to_odd(value));
      std::memcpy(to, &h, 2);
      return;
    }
    case DType::i64:
      return encode_integer<std::int64_t>(value, to);
    case DType::i32:
      return encode_integer<std::int32_t>(value, to);
    case DType::i16:
      return encode_integer<std::int16_t>(value, to);
    case DType::i8:
      return encode_integer<std::int8_t>(value, to);
    case DType::u8:
      return encode_integer<std::uint8_t>(value, to);
    case DType::boolean: {
      const std::uint8_t b = value != 0;
      std::memcpy(to, &b, 1);
      return;
    }
    default:
      return;
  }
}

double decode(DType type, const void* from) {
  switch (type) {
    case DType::f32:
      return load<float>(from);
    case DType::bf16:
      return from_bf16(load<std::uint16_t>(from));
    case DType::f16:
      return from_f16(load<std::uint16_t>(from));
    case DType::i64:
      return static_cast<double>(load<std::int64_t>(from));
    case DType::i32:
      return load<std::int32_t>(from);
    case DType::i16:
      return load<std::int16_t>(from);
    case DType::i8:
      return load<std::int8_t>(from);
    case DType::u8:
    case DType::boolean:
      return load<std::uint8_t>(from);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

void encode_floats(DType type, const float* from, void* to, std::int64_t count) {
  if (type == DType::f32)
    std::memcpy(to, from, static_cast<std::size_t>(count) * 4);
  else if (type == DType::bf16)
    bf16_from_floats(from, static_cast<std::uint16_t*>(to), count);
  else
    f16_from_floats(from, static_cast<std::uint16_t*>(to), count);
}

void decode_floats(DType type, const void* from, float* to, std::int64_t count) {
  switch (type) {
    case DType::f32:
      std::memcpy(to, from, static_cast<std::size_t>(count) * 4);
      return;
    case DType::bf16:
      return floats_from_bf16(static_cast<const std::uint16_t*>(from), to, count);
    case DType::f16:
      return floats_from_f16(static_cast<const std::uint16_t*>(from), to, count);
    default:
      for (std::int64_t i = 0; i < count; ++i)
        to[i] = static_cast<float>(decode(type, static_cast<const std::byte*>(from) + static_cast<std::size_t>(i) * bytes_of(type)));
  }
}

float round_mantissa(float value, int mantissa_bits) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const int drop = 23 - mantissa_bits;
  if (drop <= 0 || !std::isfinite(value)) return value;
  const std::uint32_t half = (1u << (drop - 1)) - 1u;
  return std::bit_cast<float>((bits + half + ((bits >> drop) & 1u)) & ~((1u << drop) - 1u));
}

}  // namespace forge
