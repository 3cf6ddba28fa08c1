// SPDX-License-Identifier: Apache-2.0
// C[M,N] = A[M,K] * B[N,K]^T in f16 with f32 accumulators, for cuda:sm_90a.
// Tiles of A and B travel through a ring of slots in shared memory: the copy engine fills them, two warpgroups multiply them with
// wgmma, and two mbarriers a slot say "full" and "empty". A warpgroup owns BM / 2 rows of a tile. The blocks of a cluster work on
// neighbouring tiles and load the operand that these have in common once, each its part, for all.
#include "forge_args.h"

#define TILE_ORDER_grouped 1
#define EPILOGUE_overlapped 1
#define WAIT_deferred 1
#define STORE_HINT_none 1
#define SPLIT_TAIL_true 1

namespace {

using u32 = unsigned;
using u64 = unsigned long long;

constexpr int BM = 128, BN = 256, BK = 64;  // a tile of C; BK halves are one 128-byte swizzle row
constexpr int STAGES = 4, CLUSTER = 1, BOX = 64;
constexpr int LEAD = 1;                     // steps that the first warpgroup is ahead of the second
[[maybe_unused]] constexpr int GROUP = 16;  // rows of tiles that are walked together
constexpr bool SHARE_B = BM <= BN;          // a cluster is a column of tiles, else a row
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, SLOT = A_BYTES + B_BYTES;
constexpr int CLUSTER_M = BM * (SHARE_B ? CLUSTER : 1), CLUSTER_N = BN * (SHARE_B ? 1 : CLUSTER);
constexpr int A_PART = SHARE_B ? BM : BM / CLUSTER, B_PART = SHARE_B ? BN / CLUSTER : BN;  // rows that this block loads
constexpr int STEPS = K / BK, COLUMNS = N / CLUSTER_N;
constexpr int BLOCKS = BM / 128, WIDTH = BN / 2;               // 64-row blocks of a warpgroup; accumulators a thread and block
constexpr int CHUNK = 64 * 64 * 2, CHUNKS = BLOCKS * BN / 64;  // bytes of C that one store takes; stores of a warpgroup and tile
#ifdef SPLIT_TAIL_true
constexpr bool SPLIT = true;
#else
constexpr bool SPLIT = false;
#endif
#ifdef EPILOGUE_overlapped
constexpr int HEAD = CHUNKS;  // steps of a tile that also store a part of the last one
#else
constexpr int HEAD = 0;
#endif
[[maybe_unused]] constexpr int MIN_SPLIT = 16;  // shorter pieces do not pay
static_assert(K % BK == 0 && N % CLUSTER_N == 0 && A_PART % BOX == 0 && B_PART % BOX == 0);

constexpr int THREADS = 384;  // 256: multiply only; 288: a warp loads; 384: a warpgroup, which gives registers away

__device__ __forceinline__ u32 shared(const void* p) { return u32(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ u32 cluster_rank() {
  u32 r = 0;
  if (CLUSTER > 1) asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
__device__ __forceinline__ void init(u32 barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
__device__ __forceinline__ void expect(u32 barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}
// The same barrier in block `rank` of the cluster.
__device__ __forceinline__ u32 of_block(u32 barrier, u32 rank) {
  if (CLUSTER > 1) asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(barrier), "r"(rank));
  return barrier;
}
__device__ __forceinline__ void arrive(u32 barrier) {
  if (CLUSTER == 1)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
  else
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void prefetch(const forge_tensormap& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }
__device__ __forceinline__ void load(u32 to, const forge_tensormap& map, int x, int y, u32 barrier, bool to_all) {
  if (to_all)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::
            "r"(to),
        "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"((unsigned short)((1 << CLUSTER) - 1))
        : "memory");
  else
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(&map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}
[[maybe_unused]] __device__ __forceinline__ void store(u32 from, const forge_tensormap& map, int x, int y) {
#ifdef STORE_HINT_evict_first
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::"l"(&map), "r"(x), "r"(y),
               "r"(from), "l"(policy)
               : "memory");
#else
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(y), "r"(from)
               : "memory");
#endif
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Rows of 128 bytes, swizzled, groups of 8 rows 1,024 bytes apart: the layout that the copy engine leaves.
// The low word of its descriptor counts in 16 bytes, so steps through the ring and along a row are additions.
__device__ __forceinline__ u32 matrix(u32 address) { return address >> 4 | 1u << 16; }
__device__ __forceinline__ u64 descriptor(u32 low) { return u64(low) | u64(64) << 32 | u64(1) << 62; }
// The same in all threads of the warp, and known to be so: it can live in a uniform register.
__device__ __forceinline__ int uniform(int x) { return __shfl_sync(~0u, x, 0); }

#define F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define F16(i) F4(i), F4(i + 4), F4(i + 8), F4(i + 12)
#define F64(i) F16(i), F16(i + 16), F16(i + 32), F16(i + 48)
#define P64                                                                                                                                \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35," \
  "%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define P128                                                                                                                               \
  P64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%" \
      "96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122," \
      "%123,%124,%125,%126,%127"
// 64 rows x 2 * W columns x 16 halves; `keep` 0 drops what d held before.
[[maybe_unused]] __device__ __forceinline__ void mma(float (&d)[64], u64 a, u64 b, int keep) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" P64
               "}, %64, %65, p, 1, 1, 0, 0;\n}"
               : F64(0)
               : "l"(a), "l"(b), "r"(keep));
}
[[maybe_unused]] __device__ __forceinline__ void mma(float (&d)[128], u64 a, u64 b, int keep) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" P128
               "}, %128, %129, p, 1, 1, 0, 0;\n}"
               : F64(0), F64(64)
               : "l"(a), "l"(b), "r"(keep));
}
__device__ __forceinline__ void mma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void mma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending>
__device__ __forceinline__ void mma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// A tile of the cluster, in CLUSTER_M and CLUSTER_N, and which steps of its depth.
struct Piece {
  int tile, row, column, begin, end;
};

// What a cluster works on, one piece after the other: whole tiles, and where these do not come out even, its share of the rest: the
// remaining tiles' steps form one row that is cut into equal pieces.
struct Schedule {
  int rows, tiles, tile, stride, whole, unit = 0, unit_end = 0;

  __device__ __forceinline__ Schedule(int m) {
    rows = (m + CLUSTER_M - 1) / CLUSTER_M;
    tiles = whole = rows * COLUMNS;
    tile = blockIdx.x / CLUSTER;
    stride = gridDim.x / CLUSTER;
    if (!SPLIT || tiles % stride * STEPS / stride < MIN_SPLIT) return;
    whole = tiles - tiles % stride;
    unit = cut(tile);
    unit_end = cut(tile + 1);
  }
  __device__ __forceinline__ int cut(int cluster) const { return (tiles - whole) * STEPS * cluster / stride; }
  __device__ __forceinline__ bool next(Piece& p) {
    if (tile < whole) {
      p = {tile, 0, 0, 0, STEPS};
      tile += stride;
    } else if (SPLIT && unit < unit_end) {
      p.tile = whole + unit / STEPS;
      p.begin = unit % STEPS;
      p.end = min(STEPS, p.begin + unit_end - unit);
      unit += p.end - p.begin;
    } else {
      return false;
    }
#ifdef TILE_ORDER_grouped
    const int first = p.tile / (GROUP * COLUMNS) * GROUP, height = min(GROUP, rows - first), in = p.tile - first * COLUMNS;
    p.row = first + in % height;
    p.column = in / height;
#else
    p.row = p.tile / COLUMNS;
    p.column = p.tile % COLUMNS;
#endif
    return true;
  }
};

// Where a role stands in the ring.
struct Ring {
  int slot = 0;
  u32 parity = 0;
  __device__ __forceinline__ void next() {
    if (++slot == STAGES) slot = 0, parity ^= 1;
  }
};

// Fills one slot after the other, over all pieces of this cluster.
struct Producer {
  const forge_args& p;
  u32 slots, full, empty, rank;
  Schedule schedule;
  Ring ring;
  Piece at;
  bool more;

  __device__ __forceinline__ Producer(const forge_args& args, u32 slots_, u32 full_, u32 empty_, u32 rank_)
      : p(args), slots(slots_), full(full_), empty(empty_), rank(rank_), schedule(args.M) {
    more = schedule.next(at);
  }
  __device__ __forceinline__ void next() {
    const u32 to = slots + ring.slot * SLOT, barrier = full + ring.slot * 8;
    const int x = at.begin * BK, a_row = at.row * CLUSTER_M + rank * A_PART, b_row = at.column * CLUSTER_N + rank * B_PART;
    constexpr bool a_shared = CLUSTER > 1 && !SHARE_B, b_shared = CLUSTER > 1 && SHARE_B;
    wait(empty + ring.slot * 8, ring.parity ^ 1);
    expect(barrier, SLOT);
    const u32 a_to = to + (a_shared ? rank * A_PART * BK * 2 : 0), b_to = to + A_BYTES + (b_shared ? rank * B_PART * BK * 2 : 0);
#pragma unroll
    for (int i = 0; i < A_PART; i += BOX) load(a_to + i * BK * 2, p.map_a, x, a_row + i, barrier, a_shared);
#pragma unroll
    for (int i = 0; i < B_PART; i += BOX) load(b_to + i * BK * 2, p.map_b, x, b_row + i, barrier, b_shared);
    ring.next();
    if (++at.begin == at.end) more = schedule.next(at);
  }
};

// Takes the accumulators of one warpgroup to C.
struct Writer {
  const forge_args& p;
  u32 staging;  // two chunks of this warpgroup
  int group, thread;
  int x = 0, y = 0, done = CHUNKS;  // of the tile that is under way
  u32 h[BLOCKS][WIDTH / 2];         // its values, waiting for their turn

  __device__ __forceinline__ void take(float (&d)[BLOCKS][WIDTH], int column, int row) {
#ifdef EPILOGUE_direct
    const int from = row + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int block = 0; block < BLOCKS; block++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int at = from + block * 64 + half * 8;
        if (at >= p.M) continue;
        __half2* const to = (__half2*)(p.C + (long long)at * N + column + thread % 4 * 2);
#pragma unroll
        for (int j = 0; j < BN / 8; j++) to[j * 4] = __floats2half2_rn(d[block][j * 4 + half * 2], d[block][j * 4 + half * 2 + 1]);
      }
#else
    flush();
#pragma unroll
    for (int block = 0; block < BLOCKS; block++)
#pragma unroll
      for (int i = 0; i < WIDTH / 2; i++)
        asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(h[block][i]) : "f"(d[block][i * 2 + 1]), "f"(d[block][i * 2]));
    x = column;
    y = row;
    done = 0;
#ifdef EPILOGUE_tma_store
    flush();
#endif
#endif
  }
#ifndef EPILOGUE_direct
  // 64 x 64 values to shared memory, as the copy engine wants them, and off.
  template <int c>
  __device__ __forceinline__ void chunk() {
    constexpr int block = c / (BN / 64), part = c % (BN / 64);
    const int lane = thread % 32, row = thread / 32 * 16 + lane % 16;
    const u32 buffer = staging + c % 2 * CHUNK;
    if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");  // the store before last has left its chunk
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
#pragma unroll
    for (int j = 0; j < 8; j += 2) {  // two blocks of 8 columns
      const u32* v = &h[block][(part * 8 + j) * 2];
      const u32 to = buffer + row * 128 + (((j + lane / 16) ^ (row & 7)) << 4);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
                   : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;\nbar.sync %0, 128;" ::"r"(group + 1) : "memory");
    if (thread == 0) store(buffer, p.map_c, x + part * 64, y + block * 64);
  }
  // One chunk, if there is one.
  __device__ __forceinline__ void advance() {
    if (done == CHUNKS) return;
    switch (done++) {
      case 0:
        chunk<0>();
        break;
      case 1:
        chunk<1>();
        break;
#if 128 * 256 > 128 * 128
      case 2:
        chunk<2>();
        break;
      case 3:
        chunk<3>();
        break;
#endif
    }
  }
  __device__ __forceinline__ void flush() {
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) advance();
  }
#else
  __device__ __forceinline__ void advance() {}
#endif
  __device__ __forceinline__ void finish() {
#ifndef EPILOGUE_direct
    flush();
    if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
  }
};

#ifdef SPLIT_TAIL_true
// A piece that does not begin its tile hands its sums to the cluster that does; a flag for each warpgroup says that they are there.
__device__ __forceinline__ void hand_over(const forge_args& p, float (&d)[BLOCKS][WIDTH], int group, int thread) {
  float4* const to = (float4*)p.sums + (long long)(blockIdx.x * 2 + group) * (BLOCKS * WIDTH / 4) * 128 + thread;
#pragma unroll
  for (int i = 0; i < BLOCKS * WIDTH / 4; i++) {
    const float* v = &d[i / (WIDTH / 4)][i % (WIDTH / 4) * 4];
    __stcg(to + i * 128, make_float4(v[0], v[1], v[2], v[3]));
  }
  __threadfence();
  asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
  if (thread == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"((u32*)p.flags + blockIdx.x * 2 + group) : "memory");
}
__device__ __forceinline__ void take_over(const forge_args& p, float (&d)[BLOCKS][WIDTH], int block, int group, int thread) {
  u32* const flag = (u32*)p.flags + block * 2 + group;
  if (thread == 0) {
    u32 there = 0;
    while (!there) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(there) : "l"(flag) : "memory");
    *flag = 0;  // as it was found
  }
  asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
  const float4* const from = (const float4*)p.sums + (long long)(block * 2 + group) * (BLOCKS * WIDTH / 4) * 128 + thread;
#pragma unroll
  for (int i = 0; i < BLOCKS * WIDTH / 4; i++) {
    float* v = &d[i / (WIDTH / 4)][i % (WIDTH / 4) * 4];
    const float4 w = __ldcg(from + i * 128);
    v[0] += w.x, v[1] += w.y, v[2] += w.z, v[3] += w.w;
  }
}
#endif

}  // namespace

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm(const __grid_constant__ forge_args p) {
  extern __shared__ unsigned char raw[];
  __shared__ u64 barriers[2 * STAGES];
  const u32 slots = uniform((shared(raw) + 1023) & ~1023u), full = uniform(shared(barriers)), empty = full + STAGES * 8;
  const u32 rank = cluster_rank();
  const int group = uniform(threadIdx.x / 128), thread = threadIdx.x % 128;
  if (threadIdx.x == 0) {
    prefetch(p.map_a);
    prefetch(p.map_b);
    for (int i = 0; i < STAGES; i++) init(full + i * 8, 1), init(empty + i * 8, 2 * CLUSTER);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (CLUSTER > 1)
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  else
    __syncthreads();

  if (THREADS > 256 && group == 2) {
    if (thread == 0) {
      Producer producer(p, slots, full, empty, rank);
      while (producer.more) producer.next();
    }
  } else {
#if 384 == 256
    Producer producer(p, slots, full, empty, rank);
    if (threadIdx.x == 0)
      for (int i = 0; i < STAGES - 1 && producer.more; i++) producer.next();
#endif
    Ring ring;
    Writer writer{p, slots + STAGES * SLOT + group * 2 * CHUNK, group, thread};
    Schedule schedule(p.M);
    const u32 a0 = uniform(matrix(slots + group * BLOCKS * 8192)), b0 = uniform(matrix(slots + A_BYTES)), mine = of_block(empty, thread);
    [[maybe_unused]] int begun = 0;
    if (LEAD > 0 && group == 1) asm volatile("bar.sync 3, 256;" ::: "memory");
    for (Piece at; schedule.next(at);) {
      float d[BLOCKS][WIDTH];
      // One step: multiplies what is in a slot, and gives back a slot that has been used.
      const auto multiply = [&](int slot, u32 parity, bool first, bool chunk) {
        const u32 a = a0 + slot * (SLOT >> 4), b = b0 + slot * (SLOT >> 4);
        wait(full + slot * 8, parity);
        mma_fence();
#pragma unroll
        for (int j = 0; j < BK / 16; j++)
#pragma unroll
          for (int i = 0; i < BLOCKS; i++) mma(d[i], descriptor(a + i * 512 + j * 2), descriptor(b + j * 2), j > 0 || !first);
        mma_commit();
        if (chunk) writer.advance();
#ifdef WAIT_deferred
        mma_wait<1>();  // the step before is done, this one may still run
        if (!first && thread < CLUSTER) arrive(mine + (slot ? slot - 1 : STAGES - 1) * 8);
#else
        mma_wait<0>();
        if (thread < CLUSTER) arrive(mine + slot * 8);
#endif
#if 384 == 256
        // The slot of the step before is empty, or will be as soon as the other warpgroup is done with it.
        if (threadIdx.x == 0 && producer.more) producer.next();
#endif
      };
      for (int step = at.begin; step < at.end;) {
        if (step > at.begin + HEAD && ring.slot == 0 && at.end - step >= STAGES) {
          // Whole rounds of the ring: all addresses are constants, which saves most of the instructions beside the multiplications.
#pragma unroll 1
          for (int round = (at.end - step) / STAGES; round > 0; round--) {
#pragma unroll
            for (int i = 0; i < STAGES; i++) multiply(i, ring.parity, false, false);
            ring.parity ^= 1;
          }
          step = at.end - (at.end - step) % STAGES;
        } else {
          multiply(ring.slot, ring.parity, step == at.begin, HEAD > 0);
          if (LEAD > 0 && group == 0 && ++begun == LEAD) asm volatile("bar.arrive 3, 256;" ::: "memory");
          ring.next();
          step++;
        }
      }
#ifdef WAIT_deferred
      mma_wait<0>();
      if (thread < CLUSTER) arrive(mine + (ring.slot ? ring.slot - 1 : STAGES - 1) * 8);
#endif
#ifdef SPLIT_TAIL_true
      if (at.begin > 0) {
        hand_over(p, d, group, thread);
        continue;
      }
      for (int c = blockIdx.x / CLUSTER + 1; at.end < STEPS && schedule.cut(c) < (at.tile - schedule.whole + 1) * STEPS; c++)
        take_over(p, d, c * CLUSTER + rank, group, thread);
#endif
      writer.take(d, at.column * CLUSTER_N + (SHARE_B ? 0 : rank * BN),
                  at.row * CLUSTER_M + (SHARE_B ? rank * BM : 0) + group * BLOCKS * 64);
    }
    writer.finish();
  }
  // No block leaves while another may still write to its shared memory or arrive at its barriers.
  if (CLUSTER > 1) asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
