// SPDX-License-Identifier: Apache-2.0
// For oracles (C++): a small seeded source of numbers for adversarial content, and bfloat16 and float16 <-> float32.
// A plugin links nothing of forge, so this is all in the header.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace forge::fill {

// splitmix64. Content that is made to be awkward needs no better generator.
class Source {
 public:
  explicit Source(std::uint64_t seed) : m_state(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (m_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }                                          // [0, 1)
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }  // n > 0
  // Near enough to N(0, 1): the sum of 12 uniforms less 6. Bounded by 6, hence finite whatever it is scaled with.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; i += 2) {  // two 32-bit uniforms from each draw
      const std::uint64_t bits = next();
      sum += static_cast<double>(bits >> 32) * 0x1p-32 + static_cast<double>(bits & 0xffffffffu) * 0x1p-32;
    }
    return sum;
  }

 private:
  std::uint64_t m_state;
};

inline float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// Rounds to nearest, ties to even; for finite values.
inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Exact, without branches: the fraction is placed where float32 has it, and a power of two repairs the exponent.
inline float f16_to_float(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13, sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  return std::bit_cast<float>(sign | ((bits & 0x7c00u) == 0x7c00u ? magnitude | 0x7f800000u : finite));
}

// Rounds to nearest, ties to even, into the subnormal range and to infinity; for values that are not NaN.
inline std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // half an ulp beyond 65504
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 leaves multiples of 2^-24 in the fraction
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}

}  // namespace forge::fill
