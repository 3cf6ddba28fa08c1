// SPDX-License-Identifier: Apache-2.0
// The k largest of every row in descending order, and where they stand; equal values by ascending index. A block holds a row in its
// registers, so x is read once. Values become integers of the same order ("keys"); a "pair" is a key above the inverted index, so all
// pairs of a row differ and a larger pair comes first.
// threads=1024 load=bulk select=maxima sort=counting collect=registers groups=2048 refill=block candidates=2048
#include "forge_args.h"

namespace {

typedef unsigned u32;
typedef unsigned long long u64;

constexpr int kThreads = 1024, kWarps = kThreads / 32;
constexpr int kHeld = columns / kThreads;        // elements of a row that a thread holds
constexpr int kRow = columns * 4;                // bytes
constexpr int kSpace = 2048;           // elements that the fast way can sort
constexpr int kCoarse = 2048, kFine = 4096;      // counters
constexpr int kCrowd = 128;                      // equal or nearly equal elements that are still put in order one by one
static_assert(columns == 32768 && k == 1024 && kSpace >= 2 * k && kSpace % kThreads == 0, "sizes of tables");

struct Shared {
#if 1
  alignas(128) unsigned char row[kRow];  // the next row
#endif
  alignas(16) u64 sorted[kSpace];
  uint2 list[kSpace];                    // candidates: bits of the value, index
  alignas(16) u32 coarse[kCoarse];       // zero between uses
  alignas(16) u32 fine[kFine + 4];       // zero between uses
  u32 least[kWarps], most[kWarps], sums[kWarps];
  u32 count[2], threshold, digit, above, inside, last, top;
  u64 full[kWarps];
};

__device__ u32 shared(const void* p) { return u32(__cvta_generic_to_shared(p)); }
__device__ u32 key_of(u32 bits) { return bits ^ (u32(int(bits) >> 31) | 0x80000000u); }
__device__ u32 bits_of(u32 key) { return key ^ (u32(~int(key) >> 31) | 0x80000000u); }
__device__ u64 pair_of(u32 bits, u32 index) { return u64(key_of(bits)) << 32 | u32(~index); }
// Element e of this thread: runs of 4, spread over the row, so that any part of the row is shared by all threads.
__device__ int index_of(int e) { return e / 4 * (kThreads * 4) + int(threadIdx.x) * 4 + e % 4; }

// n counters side by side, as one access where that can be.
template <int n>
__device__ void read(u32 (&to)[n], const u32* from) {
  if constexpr (n % 4 == 0) {
#pragma unroll
    for (int i = 0; i < n; i += 4) {
      const uint4 four = *reinterpret_cast<const uint4*>(from + i);
      to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < n; i += 2) {
      const uint2 two = *reinterpret_cast<const uint2*>(from + i);
      to[i] = two.x, to[i + 1] = two.y;
    }
  }
}
template <int n>
__device__ void write(u32* to, const u32 (&from)[n]) {
  if constexpr (n % 4 == 0) {
#pragma unroll
    for (int i = 0; i < n; i += 4) *reinterpret_cast<uint4*>(to + i) = make_uint4(from[i], from[i + 1], from[i + 2], from[i + 3]);
  } else {
#pragma unroll
    for (int i = 0; i < n; i += 2) *reinterpret_cast<uint2*>(to + i) = make_uint2(from[i], from[i + 1]);
  }
}

// The sum over all threads before this one. One barrier; `sums` may be reused after the caller's next one.
__device__ u32 sum_before(u32 mine, Shared& s) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  u32 to = mine;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    const u32 other = __shfl_up_sync(~0u, to, o);
    if (lane >= o) to += other;
  }
  if (lane == 31) s.sums[warp] = to;
  __syncthreads();
  return to - mine + __reduce_add_sync(~0u, lane < warp ? s.sums[lane] : 0);
}

// Counters stand in descending order of what they count. Finds the one in which the wanted-th element lies: digit, the elements
// above it and inside it. Leaves the counters zero. Ends in a barrier.
__device__ void find(u32 wanted, Shared& s) {
  constexpr int n = kCoarse / kThreads;
  const u32 nothing[n] = {};
  u32 count[n], mine = 0;
  read(count, s.coarse + threadIdx.x * n);
  write(s.coarse + threadIdx.x * n, nothing);
#pragma unroll
  for (int i = 0; i < n; i++) mine += count[i];
  u32 before = sum_before(mine, s);
#pragma unroll
  for (int i = 0; i < n; i++) {
    if (before < wanted && wanted <= before + count[i]) s.digit = kCoarse - 1 - (threadIdx.x * n + i), s.above = before, s.inside = count[i];
    before += count[i];
  }
  __syncthreads();
}

// The k-th largest pair of the elements that `each` enumerates, by digits of its 47 used bits: 11, 11 and 10 of the key, then 11 and 4 of
// the index. All pairs from the result up are exactly k. For any content.
template <class Each>
__device__ u64 kth_pair(Each&& each, Shared& s) {
  u64 prefix = 0;
  u32 wanted = k;
  int shift = 47;
#pragma unroll 1
  for (int round = 0; round < 5; round++) {
    const int bits = round == 2 ? 10 : round == 4 ? 4 : 11, above = shift;
    shift -= bits;
    each([&](u32 value, u32 index) {
      const u64 pair = u64(key_of(value)) << 15 | (columns - 1 - index);
      if (pair >> above == prefix) atomicAdd(&s.coarse[kCoarse - 1 - (u32(pair >> shift) & ((1u << bits) - 1))], 1u);
    });
    __syncthreads();
    find(wanted, s);
    prefix = prefix << bits | s.digit;
    wanted -= s.above;
    if (wanted == s.inside) break;
  }
  prefix <<= shift;
  return (prefix >> 15) << 32 | (~0u << 15) | u32(prefix & 32767);  // as pair_of: the index inverted in all 32 bits
}

// The place of this thread's `count` elements in an array that all threads append to.
__device__ u32 append(u32 count, u32& total) {
  const int lane = threadIdx.x % 32;
  u32 to = count;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    const u32 other = __shfl_up_sync(~0u, to, o);
    if (lane >= o) to += other;
  }
  u32 base = 0;
  if (lane == 31) base = atomicAdd(&total, to);
  return __shfl_sync(~0u, base, 31) + to - count;
}

// The k largest pairs into sorted, in no order; top becomes the largest key's upper bound. Ends in a barrier.
template <class Each>
__device__ u32 select_exactly(Each&& each, Shared& s) {
  const u64 least = kth_pair(each, s);
  u32 count = 0, most = 0;
  each([&](u32 value, u32 index) {
    if (pair_of(value, index) >= least) count++, most = max(most, key_of(value));
  });
  u32 at = append(count, s.count[1]);
  each([&](u32 value, u32 index) {
    const u64 pair = pair_of(value, index);
    if (pair >= least) s.sorted[at++] = pair;
  });
  most = __reduce_max_sync(~0u, most);
  if (threadIdx.x % 32 == 0) atomicMax(&s.top, most);
  __syncthreads();
  return u32(least >> 32);
}

// Bitonic sort of sorted[0, k), descending. A warp's 32 exchanges stay in its own 64 elements while the distance is at most 32.
__device__ void sort_pairs(Shared& s) {
  constexpr int n = k / 2;  // exchanges of a step
  for (int size = 2; size <= k; size *= 2)
    for (int distance = size / 2; distance; distance /= 2) {
      for (int i = threadIdx.x; i < n; i += kThreads) {
        const int a = i / distance * 2 * distance + i % distance, b = a + distance;
        const u64 x = s.sorted[a], y = s.sorted[b];
        if ((x < y) == ((a & size) == 0)) s.sorted[a] = y, s.sorted[b] = x;
      }
      if (distance > 32 || (distance == 1 && size >= 64))
        __syncthreads();
      else
        __syncwarp();
    }
}

template <class A>
__device__ void write(const A& p, int row, u32 place, u64 pair) {
  p.values[(long long)row * k + place] = __uint_as_float(bits_of(u32(pair >> 32)));
  p.indices[(long long)row * k + place] = int(~u32(pair));
}

template <class A>
__device__ void write_sorted(const A& p, int row, Shared& s) {
  for (int i = threadIdx.x; i < k; i += kThreads) write(p, row, i, s.sorted[i]);
}

// Counting sort of n candidates with keys in [low, high] by key >> shift, then by comparing inside a counter. `candidate(i)` is a pair;
// `out` has space for all of them. False, with nothing written, if too many share a counter. Leaves `fine` in use until the next row.
template <class A, class Candidate>
__device__ bool sort_by_counting(const A& p, int row, u32 n, u32 low, u32 high, Candidate&& candidate, u64* out, Shared& s) {
  const int shift = max(0, 20 - __clz(high - low));  // 12 bits are left
  const auto counter = [&](u64 pair) { return kFine - 1 - ((u32(pair >> 32) - low) >> shift); };
  u64 pairs[kSpace / kThreads];
  u32 slots[kSpace / kThreads];
#pragma unroll
  for (int j = 0; j < kSpace / kThreads; j++) {
    const u32 i = threadIdx.x + j * kThreads;
    if (i < n) {
      pairs[j] = candidate(i);
      slots[j] = atomicAdd(&s.fine[counter(pairs[j])], 1u);
    }
  }
  __syncthreads();
  constexpr int m = kFine / kThreads;
  u32 count[m], mine = 0;
  bool crowded = false;
  read(count, s.fine + threadIdx.x * m);
#pragma unroll
  for (int i = 0; i < m; i++) {
    mine += count[i];
    crowded |= count[i] > kCrowd;
  }
  u32 before = sum_before(mine, s);
#pragma unroll
  for (int i = 0; i < m; i++) {
    const u32 after = before + count[i];
    if (before < k && k <= after) s.last = after;
    count[i] = before;  // elements above this counter
    before = after;
  }
  write(s.fine + threadIdx.x * m, count);
  if (threadIdx.x == 0) s.fine[kFine] = n;
  if (__syncthreads_or(crowded)) return false;
#pragma unroll
  for (int j = 0; j < kSpace / kThreads; j++)
    if (threadIdx.x + j * kThreads < n) {
      const u32 base = s.fine[counter(pairs[j])];
      if (base < k) out[base + slots[j]] = pairs[j];
    }
  __syncthreads();
  for (u32 i = threadIdx.x; i < s.last; i += kThreads) {
    const u64 pair = out[i];
    const u32 c = counter(pair), begin = s.fine[c], end = s.fine[c + 1];
    u32 place = begin;
    for (u32 j = begin; j < end; j++) place += out[j] > pair;
    if (place < k) write(p, row, place, pair);
  }
  return true;
}

#if 1
__device__ void wait(u64* barrier, u32 phase) {
  asm volatile("{ .reg .pred done;\nW: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra W; }" ::"r"(shared(barrier)), "r"(phase)
               : "memory");
}
__device__ void expect(u64* barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(barrier)), "r"(bytes) : "memory");
}
__device__ void bulk(void* to, const void* from, u32 bytes, u64* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared(to)), "l"(from), "r"(bytes),
               "r"(shared(barrier))
               : "memory");
}
// Asks for a row: all of it by the first thread, or by every warp what it will read.
template <class A>
__device__ void fetch(const A& p, int row, Shared& s) {
  const unsigned char* from = reinterpret_cast<const unsigned char*>(p.x + (long long)row * columns);
#if 1
  if (threadIdx.x >= 32) return;
  if (threadIdx.x == 0) expect(&s.full[0], kRow);
  __syncwarp();
  if (threadIdx.x < 8) bulk(s.row + threadIdx.x * (kRow / 8), from + threadIdx.x * (kRow / 8), kRow / 8, &s.full[0]);
#else
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) expect(&s.full[warp], kHeld * 128);
  __syncwarp();
  if (lane < kHeld / 4) bulk(s.row + lane * (kThreads * 16) + warp * 512, from + lane * (kThreads * 16) + warp * 512, 512, &s.full[warp]);
#endif
}
#endif

template <class A>
__device__ void rows_of(const A& p, Shared& s) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = threadIdx.x; i < kCoarse; i += kThreads) s.coarse[i] = 0;
#if 1
  u32 phase = 0;
  if (threadIdx.x < kWarps) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&s.full[threadIdx.x])) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  if (int(blockIdx.x) < p.rows) fetch(p, blockIdx.x, s);
#endif
#pragma unroll 1
  for (int row = blockIdx.x; row < p.rows; row += gridDim.x) {
    float v[kHeld];
#if 1
    wait(&s.full[1 ? 0 : warp], phase);
    phase ^= 1;
#pragma unroll
    for (int e = 0; e < kHeld; e += 4) *reinterpret_cast<float4*>(v + e) = *reinterpret_cast<const float4*>(s.row + index_of(e) * 4);
    const auto next = [&] {
      if (row + int(gridDim.x) < p.rows) fetch(p, row + gridDim.x, s);
    };
#if 1
#if 1
    __syncthreads();
#else
    __syncwarp();
#endif
    next();
#endif
#else
#pragma unroll
    for (int e = 0; e < kHeld; e += 4) *reinterpret_cast<float4*>(v + e) = __ldcs(reinterpret_cast<const float4*>(p.x + (long long)row * columns + index_of(e)));
#endif
    const auto all = [&](auto&& f) {  // every element, for the general way
#if 1
      // Read again: values kept for this rare case would not fit into the registers beside the common one's.
#pragma unroll 1
      for (int e = 0; e < kHeld; e += 4) {
        const float4 four = __ldcg(reinterpret_cast<const float4*>(p.x + (long long)row * columns + index_of(e)));
        const u32 index = index_of(e);
        f(__float_as_uint(four.x), index), f(__float_as_uint(four.y), index + 1), f(__float_as_uint(four.z), index + 2), f(__float_as_uint(four.w), index + 3);
      }
#else
#pragma unroll
      for (int e = 0; e < kHeld; e++) {
        u32 bits = __float_as_uint(v[e]);
        asm volatile("" : "+r"(bits));  // else the compiler keeps the keys of all elements over the rounds, in registers that are not there
        f(bits, u32(index_of(e)));
      }
#endif
    };
    u32 n = kSpace + 1, low = 0, high = 0;  // candidates in list, their keys' range
#if 1
    // The k-th largest of the maxima of disjoint groups is no more than the k-th largest element: a lower bound, and a close one.
    constexpr int kGroups = 2048 / kThreads, kWidth = 4 / kGroups;
    static_assert(2048 >= 2 * k && kGroups * kWidth == 4, "groups of a thread");
    u32 key[kGroups];
    u32 least = ~0u, most = 0;
#pragma unroll
    for (int g = 0; g < kGroups; g++) {
      float m = v[g * kWidth];
#pragma unroll
      for (int e = 0; e < kHeld; e += 4)
#pragma unroll
        for (int i = 0; i < kWidth; i++) m = fmaxf(m, v[e + g * kWidth + i]);
      key[g] = key_of(__float_as_uint(m));
      least = min(least, key[g]), most = max(most, key[g]);
    }
    least = __reduce_min_sync(~0u, least), most = __reduce_max_sync(~0u, most);
    if (lane == 0) s.least[warp] = least, s.most[warp] = most;
#endif
    __syncthreads();  // the last row is done with
    if (threadIdx.x < 2) s.count[threadIdx.x] = 0;
    if (threadIdx.x == 2) s.top = 0;
#if 1
#pragma unroll
    for (int i = 0; i < kFine / kThreads; i++) s.fine[threadIdx.x + i * kThreads] = 0;
#endif
#if 1
    least = __reduce_min_sync(~0u, lane < kWarps ? s.least[lane] : ~0u), high = __reduce_max_sync(~0u, lane < kWarps ? s.most[lane] : 0);
    const int shift = max(0, 21 - __clz(high - least));  // 11 bits are left
#pragma unroll
    for (int g = 0; g < kGroups; g++) atomicAdd(&s.coarse[kCoarse - 1 - ((key[g] - least) >> shift)], 1u);
    __syncthreads();
    find(k, s);
    low = least + (s.digit << shift);
    if (low == 0x80000000u) low--;  // +0 compares equal to -0
    float bound = __uint_as_float(bits_of(low));
#if 0
    u32 marks[kHeld / 32], count = 0;  // a bit for each element
#pragma unroll
    for (int w = 0; w < kHeld / 32; w++) {
      marks[w] = 0;
#pragma unroll
      for (int e = 0; e < 32; e++)
        if (v[w * 32 + e] >= bound) marks[w] |= 1u << e;
      count += __popc(marks[w]);
    }
    u32 at = append(count, s.count[0]);
    if (at + count <= kSpace) {
#pragma unroll
      for (int w = 0; w < kHeld / 32; w++)
        for (u32 left = marks[w]; left; left &= left - 1) {
          const int index = index_of(w * 32 + __ffs(left) - 1);
          s.list[at++] = make_uint2(*reinterpret_cast<const u32*>(s.row + index * 4), index);
        }
    }
#else
    u32 count = 0;
#pragma unroll
    for (int e = 0; e < kHeld; e++) count += v[e] >= bound;
    u32 at = append(count, s.count[0]);
    asm volatile("" : "+f"(bound));  // else the results of the comparisons are kept, in registers that are not there
    if (at + count <= kSpace) {
#pragma unroll
      for (int e = 0; e < kHeld; e++)
        if (v[e] >= bound) s.list[at++] = make_uint2(__float_as_uint(v[e]), index_of(e));
    }
#endif
    __syncthreads();
#if 0
    next();
#endif
    n = s.count[0];
#else
    __syncthreads();
#endif
    if (n > kSpace) {  // without a bound, or with too many elements above it
      low = select_exactly(all, s);
#if 1
      high = s.top;
      if (sort_by_counting(p, row, k, low, high, [&](u32 i) { return s.sorted[i]; }, reinterpret_cast<u64*>(s.list), s)) continue;
#endif
    } else {
#if 1
      if (sort_by_counting(p, row, n, low, high, [&](u32 i) { return pair_of(s.list[i].x, s.list[i].y); }, s.sorted, s)) continue;
#endif
      select_exactly(
          [&](auto&& f) {
            for (u32 i = threadIdx.x; i < n; i += kThreads) f(s.list[i].x, s.list[i].y);
          },
          s);
    }
    sort_pairs(s);
    write_sorted(p, row, s);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024, 1) topk(const __grid_constant__ forge_args p) {
  extern __shared__ __align__(128) unsigned char raw[];
  rows_of(p, *reinterpret_cast<Shared*>(raw));
}
