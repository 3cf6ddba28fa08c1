// SPDX-License-Identifier: Apache-2.0
// Not a norm: copies hidden_states to output (and residual to residual_out), the bytes that a norm must move. For timing beside one.
#include <type_traits>

#include "forge_args.h"

template <class A>
__device__ void copy_pair(const A& a, const void* from, void* to) {
  const long long count = a.rows * (long long)h / 8, base = blockIdx.x * 1024LL + threadIdx.x;
  uint4 v[4];
  for (int i = 0; i < 4; i++)
    if (base + i * 256 < count) v[i] = __ldcs(static_cast<const uint4*>(from) + base + i * 256);
  for (int i = 0; i < 4; i++)
    if (base + i * 256 < count) __stcs(static_cast<uint4*>(to) + base + i * 256, v[i]);
}

template <class A, class = void>
struct Residual {
  static __device__ void copy(const A&) {}
};
template <class A>
struct Residual<A, std::void_t<decltype(A::residual)>> {
  static __device__ void copy(const A& a) { copy_pair(a, a.residual, a.residual_out); }
};

extern "C" __global__ void __launch_bounds__(256) copy_rows(const __grid_constant__ forge_args a) {
  copy_pair(a, a.hidden_states, a.output);
  Residual<forge_args>::copy(a);
}
