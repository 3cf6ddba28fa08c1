// SPDX-License-Identifier: Apache-2.0
// What a runner does around a kernel on a GPU: random data to flush L2 with, the flush, a hold of the stream, the SM clock, and the
// scrubs of what a launch leaves behind. Entries and structs: docs/formats/runner-protocol.md, "On a GPU".
using u32 = unsigned;
using u64 = unsigned long long;

struct FillArgs {
  u64 address, bytes, seed;
};
struct FlushArgs {
  u64 address, bytes, sink;
};
struct HoldArgs {
  u64 flag, expired, nanoseconds;
};
struct ClockArgs {
  u64 out, nanoseconds;
};
struct ScrubArgs {
  u64 words, arrived;  // 256 random u32; a counter that is zero before the launch
  u32 pattern, shared_words;
};

__device__ u64 now() {
  u64 t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

// splitmix64 of the index: incompressible.
extern "C" __global__ void __launch_bounds__(256) forge_fill_random(const __grid_constant__ FillArgs a) {
  u64* out = reinterpret_cast<u64*>(a.address);
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < a.bytes / 8; i += u64(gridDim.x) * blockDim.x) {
    u64 z = a.seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    out[i] = z ^ z >> 31;
  }
}

// Reads only: a flush that writes leaves dirty lines, whose write-back the next kernel pays for.
extern "C" __global__ void __launch_bounds__(512) forge_flush(const __grid_constant__ FlushArgs a) {
  const uint4* in = reinterpret_cast<const uint4*>(a.address);
  const u64 step = u64(gridDim.x) * blockDim.x, n = a.bytes / 16;
  u32 sum = 0;
  u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    uint4 v[4];
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] = __ldcg(in + i + j * step);
#pragma unroll
    for (int j = 0; j < 4; j++) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  for (; i < n; i += step) sum += __ldcg(in + i).x;
  if (sum == 0x9e3779b9 && a.bytes == 0) *reinterpret_cast<u32*>(a.sink) = sum;  // never: bytes is not zero
}

extern "C" __global__ void forge_hold(const __grid_constant__ HoldArgs a) {
  const volatile u32* flag = reinterpret_cast<const volatile u32*>(a.flag);
  const u64 until = now() + a.nanoseconds;
  while (*flag == 0)
    if (now() > until) {
      *reinterpret_cast<volatile u32*>(a.expired) = 1;
      return;
    }
}

extern "C" __global__ void forge_clock(const __grid_constant__ ClockArgs a) {
  // Both clocks are read when the timer has just ticked: its step is 32 ns.
  const u64 before = now();
  u64 start = now(), end;
  while (start == before) start = now();
  const u64 cycles = clock64();
  do end = now();
  while (end - start < a.nanoseconds);
  u64* out = reinterpret_cast<u64*>(a.out);
  out[0] = clock64() - cycles;
  out[1] = end - start;
}

// Launched cooperatively, so that all blocks are on the card at once; none leaves before all have come, so that each SM has its own.
__device__ void meet(u64 counter) {
  __syncthreads();
  if (threadIdx.x == 0) {
    u32* c = reinterpret_cast<u32*>(counter);
    atomicAdd(c, 1);
    while (*reinterpret_cast<volatile u32*>(c) < gridDim.x) {
    }
  }
  __syncthreads();
}

// One block an SM: all of its shared memory, and the register file (256 threads of up to 255 registers).
extern "C" __global__ void __launch_bounds__(256, 1) forge_scrub_shared(const __grid_constant__ ScrubArgs a) {
  extern __shared__ u32 shared[];
  for (u32 i = threadIdx.x; i < a.shared_words; i += blockDim.x) reinterpret_cast<volatile u32*>(shared)[i] = a.pattern ^ i * 0x9e3779b9u;
  meet(a.arrived);
  const volatile u32* words = reinterpret_cast<const volatile u32*>(a.words);
  u32 r[224];
#pragma unroll
  for (int i = 0; i < 224; i++) r[i] = words[(i + threadIdx.x) & 255];
  __syncthreads();
  const u32 factor = words[threadIdx.x];  // known only now, so none of the 224 can be summed up and let go before
  u32 sum = 0;
#pragma unroll
  for (int i = 0; i < 224; i++) sum = sum * factor + r[i];
  if (sum == a.pattern && a.shared_words == 0) shared[0] = sum;  // never: keeps the registers alive
}

// Two blocks an SM: local memory of every thread that fits.
template <int kWords>
__device__ void scrub_local(const ScrubArgs& a) {
  volatile u32 frame[kWords];
#pragma unroll 8
  for (int i = 0; i < kWords; i++) frame[i] = a.pattern ^ i;
  meet(a.arrived);
  const u32 at = (a.pattern + threadIdx.x) % kWords;
  if (frame[at] == 1 && a.shared_words == 0xffffffff) *reinterpret_cast<u32*>(a.arrived) = 0;  // never
}
extern "C" __global__ void __launch_bounds__(1024, 2) forge_scrub_local_256(const __grid_constant__ ScrubArgs a) { scrub_local<64>(a); }
extern "C" __global__ void __launch_bounds__(1024, 2) forge_scrub_local_1024(const __grid_constant__ ScrubArgs a) { scrub_local<256>(a); }
extern "C" __global__ void __launch_bounds__(1024, 2) forge_scrub_local_4096(const __grid_constant__ ScrubArgs a) { scrub_local<1024>(a); }
extern "C" __global__ void __launch_bounds__(1024, 2) forge_scrub_local_16384(const __grid_constant__ ScrubArgs a) { scrub_local<4096>(a); }
