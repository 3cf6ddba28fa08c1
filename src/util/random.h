// SPDX-License-Identifier: Apache-2.0
// Random numbers: xoshiro256** seeded by splitmix64 for content, the OS for seeds that must not be guessed.
#pragma once
#include <cstdint>

namespace forge {

std::uint64_t os_entropy();  // 64 bits from getrandom(2)

class Random {
 public:
  explicit Random(std::uint64_t seed);
  std::uint64_t next();
  double uniform();                      // [0, 1)
  double normal();                       // N(0, 1), Box-Muller
  std::uint64_t below(std::uint64_t n);  // [0, n), unbiased; n > 0
  Random split();                        // an independent stream

 private:
  std::uint64_t m_state[4];
};

}  // namespace forge
