// SPDX-License-Identifier: Apache-2.0
// xoshiro256** and splitmix64 after Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2018).
#include "util/random.h"

#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <stdexcept>

namespace forge {

std::uint64_t os_entropy() {
  std::uint64_t value = 0;
  auto* p = reinterpret_cast<unsigned char*>(&value);
  std::size_t got = 0;
  while (got < sizeof value) {
    ssize_t n = getrandom(p + got, sizeof value - got, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw std::runtime_error("getrandom(2) failed");
    got += static_cast<std::size_t>(n);
  }
  return value;
}

Random::Random(std::uint64_t seed) {
  for (auto& word : m_state) {  // splitmix64
    seed += 0x9e3779b97f4a7c15ull;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    word = z ^ (z >> 31);
  }
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(m_state[1] * 5, 7) * 9;
  const std::uint64_t t = m_state[1] << 17;
  m_state[2] ^= m_state[0];
  m_state[3] ^= m_state[1];
  m_state[1] ^= m_state[2];
  m_state[0] ^= m_state[3];
  m_state[2] ^= t;
  m_state[3] = std::rotl(m_state[3], 45);
  return result;
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

double Random::normal() {
  double u = uniform();
  while (u <= 0) u = uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * uniform());
}

std::uint64_t Random::below(std::uint64_t n) {
  const std::uint64_t limit = -n % n;  // 2^64 mod n: values below it would favour small results
  for (;;) {
    const std::uint64_t x = next();
    if (x >= limit) return x % n;
  }
}

Random Random::split() { return Random(next()); }

}  // namespace forge
