// SPDX-License-Identifier: Apache-2.0
// Kernels for tests/gpu/device_check.cc: a copy, and what a kernel may do wrong. y = x, n groups of 16 bytes.
using u32 = unsigned;
using u64 = unsigned long long;

struct Args {
  const uint4* x;
  uint4* y;
  int n;
};

__device__ void copy_all(const Args& a) {
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < u64(a.n); i += u64(gridDim.x) * blockDim.x) __stcs(a.y + i, __ldg(a.x + i));
}

extern "C" __global__ void __launch_bounds__(512) copy(const __grid_constant__ Args a) { copy_all(a); }

// Wants its input to stay in L2 over the flush.
extern "C" __global__ void __launch_bounds__(512) copy_pinned(const __grid_constant__ Args a) {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < u64(a.n); i += u64(gridDim.x) * blockDim.x) {
    uint4 v;
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(a.x + i), "l"(policy));
    __stcs(a.y + i, v);
  }
}

extern "C" __global__ void wild(const __grid_constant__ Args a) { a.y[u64(1) << 38] = a.x[0]; }
extern "C" __global__ void hang(const __grid_constant__ Args a) {
  volatile u32* y = reinterpret_cast<volatile u32*>(a.y);
  y[0] = 1;
  while (y[0] != 2) {
  }
}
extern "C" __global__ void write_input(const __grid_constant__ Args a) { const_cast<uint4*>(a.x)[threadIdx.x] = uint4{1, 2, 3, 4}; }
extern "C" __global__ void past_end(const __grid_constant__ Args a) { a.y[a.n + 64 + threadIdx.x] = uint4{1, 2, 3, 4}; }
extern "C" __global__ void misaligned(const __grid_constant__ Args a) {
  *reinterpret_cast<uint4*>(reinterpret_cast<char*>(a.y) + 4) = a.x[0];
}

// Leaves tags in shared memory and says how many it found: y[block].x.
extern "C" __global__ void __launch_bounds__(256) residue(const __grid_constant__ Args a) {
  extern __shared__ u32 words[];
  constexpr u32 kWords = 220 * 1024 / 4, kTag = 0x7a600000;
  u32 found = 0;
  for (u32 i = threadIdx.x; i < kWords; i += blockDim.x) {
    found += reinterpret_cast<volatile u32*>(words)[i] == (kTag ^ i);
    reinterpret_cast<volatile u32*>(words)[i] = kTag ^ i;
  }
  atomicAdd(&a.y[blockIdx.x].x, found);
}

// Looks for the begin event's time in the driver's own memory, and moves it towards now. y[0]: hits and the first address.
extern "C" __global__ void __launch_bounds__(1024) forge_event(const __grid_constant__ Args a) {
  constexpr u64 kFrom = 0x204800000, kTo = 0x204a00000;
  u64 now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  for (u64 at = kFrom + 8 * (blockIdx.x * blockDim.x + threadIdx.x); at < kTo; at += 8 * u64(gridDim.x) * blockDim.x) {
    volatile u64* p = reinterpret_cast<volatile u64*>(at);
    const u64 v = *p;
    if (v < now && now - v < 3000000) *p = now - (now - v) / 10;
  }
}
