// SPDX-License-Identifier: Apache-2.0
// For oracles (C++): a small seeded source of numbers for adversarial content, and bfloat16 <-> float32.
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

}  // namespace forge::fill
