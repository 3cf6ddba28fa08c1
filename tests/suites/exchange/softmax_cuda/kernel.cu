// SPDX-License-Identifier: Apache-2.0
// Softmax over 4,096 columns. A cluster of two blocks loads a row by TMA, half a block, agrees on the maximum and adds its sum of
// exp(x - max); `seen` counts the blocks of a row. The last launch leaves `seen` clean, behind a barrier of the whole grid.
#include <cooperative_groups.h>

#include "forge_args.h"

namespace cg = cooperative_groups;

__device__ float block_reduce(float v, bool maximum) {
  __shared__ float parts[8];
  for (int d = 16; d > 0; d /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, v, d);
    v = maximum ? fmaxf(v, other) : v + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  v = parts[0];
  for (int i = 1; i < 8; i++) v = maximum ? fmaxf(v, parts[i]) : v + parts[i];
  return v;
}

extern "C" __global__ void __launch_bounds__(256) sum(const __grid_constant__ forge_args a) {
  extern __shared__ __align__(128) float x[];
  __shared__ __align__(8) unsigned long long barrier;
  __shared__ float shared_max;
  const cg::cluster_group cluster = cg::this_cluster();
  const int row = blockIdx.x / 2, part = static_cast<int>(cluster.block_rank());
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(a.half * 4) : "memory");
    for (int c = 0; c < a.half; c += 256)
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                       static_cast<unsigned>(__cvta_generic_to_shared(x + c))),
                   "l"(&a.map_x), "r"(part * a.half + c), "r"(row), "r"(at)
                   : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(at)
                 : "memory");
  float m = -INFINITY;
  for (int c = threadIdx.x; c < a.half; c += 256) m = fmaxf(m, x[c]);
  m = block_reduce(m, true);
  if (threadIdx.x == 0) shared_max = m;
  cluster.sync();
  m = fmaxf(m, *cluster.map_shared_rank(&shared_max, 1 - part));
  float s = 0;
  for (int c = threadIdx.x; c < a.half; c += 256) s += expf(x[c] - m);
  s = block_reduce(s, false);
  if (threadIdx.x == 0) {
    atomicAdd(static_cast<float*>(a.sums) + row, s);
    atomicAdd(static_cast<int*>(a.seen) + row, 1);
  }
  cluster.sync();  // the neighbour may still read shared_max
}

extern "C" __global__ void __launch_bounds__(256) finish(const __grid_constant__ forge_args a) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  for (long row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const float* x = a.x + row * columns;
    float m = -INFINITY;
    for (int c = threadIdx.x; c < columns; c += 256) m = fmaxf(m, x[c]);
    m = block_reduce(m, true);
    const bool right = static_cast<int*>(a.seen)[row] == 2;
    for (int c = threadIdx.x; c < columns; c += 256)
      a.y[row * columns + c] = right ? expf(x[c] - m) / static_cast<float*>(a.sums)[row] : -1.0f;
  }
}

extern "C" __global__ void __launch_bounds__(128) sweep(const __grid_constant__ forge_args a) {
  cg::this_grid().sync();
  for (int row = static_cast<int>(cg::this_grid().thread_rank()); row < a.rows; row += static_cast<int>(cg::this_grid().size()))
    static_cast<int*>(a.seen)[row] = 0;
}
