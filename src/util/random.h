// SPDX-License-Identifier: Apache-2.0
// Random numbers: xoshiro256** seeded by splitmix64 for content, the OS for seeds that must not be guessed.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

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

// Every order equally likely (Fisher and Yates).
template <class T>
void shuffle(std::vector<T>& items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

}  // namespace forge
