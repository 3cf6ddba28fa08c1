// SPDX-License-Identifier: Apache-2.0
// The operands of one call of gemm_f32, the same in every program that is timed here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace beside {

inline constexpr long kRows = 1024, kDepth = 1024, kColumns = 1024;  // the shape that the operator's task times

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Tensor = std::unique_ptr<float, Free>;

// Values in [-1, 1), from a linear congruential generator: neither zeros nor denormals.
inline Tensor filled(std::size_t elements, std::uint32_t seed) {
  Tensor t(static_cast<float*>(std::aligned_alloc(4096, elements * sizeof(float))));
  if (!t) std::abort();
  std::uint32_t x = seed;
  for (std::size_t i = 0; i < elements; ++i) {
    x = x * 1664525U + 1013904223U;
    t.get()[i] = static_cast<float>(static_cast<std::int32_t>(x)) * 0x1p-31F;
  }
  return t;
}

struct Operands {
  Tensor a = filled(kRows * kDepth, 1), b = filled(kColumns * kDepth, 2), c = filled(kRows * kColumns, 3);
};

}  // namespace beside
