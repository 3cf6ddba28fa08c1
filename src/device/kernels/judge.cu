// SPDX-License-Identifier: Apache-2.0
// The judge's kernels: content from a base by a symmetry, poison, canaries, and comparison. What is right is said by
// element_rules.cuh; here is only who looks at which element. Host side: src/gate/cuda_stage.cc.
#include "device/kernels/judge.cuh"

namespace forge::judge {
namespace {

using rules::Findings;
using rules::MoveMap;
using rules::Source;

// A warp takes pieces of one row, kPiece elements each, so that the row's place is worked out once.
constexpr int kPiece = 256;

template <class Visit>
__device__ void each_piece(const MoveMap& map, Visit visit) {
  const std::int64_t a_row = (map.inner + kPiece - 1) / kPiece, rows = map.elements / map.inner, pieces = rows * a_row;
  const std::int64_t warps = std::int64_t(gridDim.x) * (blockDim.x / 32);
  for (std::int64_t p = std::int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32; p < pieces; p += warps) {
    const std::int64_t row = p / a_row, begin = (p % a_row) * kPiece;
    const std::int64_t end = begin + kPiece < map.inner ? begin + kPiece : map.inner;
    visit(row, rules::source_of_row(map, row), begin, end);
  }
}

template <class T>
__device__ T moved(const MoveMap& map, const T* base, std::int32_t type, Source row, std::int64_t j) {
  const Source from = rules::within_row(map, row, j);
  return static_cast<T>(rules::signed_bits(type, base[from.index], from.negative));
}

template <class T>
__device__ void move(const Move& a) {
  const T* base = static_cast<const T*>(a.base);
  T* to = static_cast<T*>(a.to);
  each_piece(a.map, [&](std::int64_t row, Source source, std::int64_t begin, std::int64_t end) {
    T* row_to = to + row * a.map.inner;
    if (end - begin == kPiece) {
      T part[kPiece / 32];
#pragma unroll
      for (int i = 0; i < kPiece / 32; ++i) part[i] = moved(a.map, base, a.type, source, begin + i * 32 + threadIdx.x % 32);
#pragma unroll
      for (int i = 0; i < kPiece / 32; ++i) row_to[begin + i * 32 + threadIdx.x % 32] = part[i];
    } else {
      for (std::int64_t j = begin + threadIdx.x % 32; j < end; j += 32) row_to[j] = moved(a.map, base, a.type, source, j);
    }
  });
}

template <class T>
__device__ void compare_moved(const CompareMoved& a) {
  const T *base = static_cast<const T*>(a.base), *at = static_cast<const T*>(a.at);
  std::uint64_t changed = 0, first = ~0ull;
  each_piece(a.map, [&](std::int64_t row, Source source, std::int64_t begin, std::int64_t end) {
#pragma unroll 4
    for (std::int64_t j = begin + threadIdx.x % 32; j < end; j += 32) {
      const std::uint64_t index = row * a.map.inner + j;
      if (at[index] == moved(a.map, base, a.type, source, j)) continue;
      ++changed;
      if (index < first) first = index;
    }
  });
  if (changed == 0) return;
  atomicAdd(reinterpret_cast<unsigned long long*>(a.changed), static_cast<unsigned long long>(changed));
  atomicMin(reinterpret_cast<unsigned long long*>(a.first), static_cast<unsigned long long>(first));
}

// Every thread's findings become the block's.
__device__ void report(const Findings& mine, Findings* blocks) {
  alignas(8) __shared__ unsigned char room[kThreads * sizeof(Findings)];
  auto* all = reinterpret_cast<Findings*>(room);
  all[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) all[threadIdx.x].merge(all[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) blocks[blockIdx.x] = all[0];
}

template <class Call>
__device__ void by_size(int size, Call call) {
  switch (size) {
    case 8:
      return call(std::uint64_t{});
    case 4:
      return call(std::uint32_t{});
    case 2:
      return call(std::uint16_t{});
    default:
      return call(std::uint8_t{});
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) judge_move(const __grid_constant__ Move a) {
  by_size(rules::size_of(a.type), [&](auto zero) { move<decltype(zero)>(a); });
}

extern "C" __global__ void __launch_bounds__(kThreads) judge_compare_moved(const __grid_constant__ CompareMoved a) {
  by_size(rules::size_of(a.type), [&](auto zero) { compare_moved<decltype(zero)>(a); });
}

extern "C" __global__ void __launch_bounds__(kThreads) judge_poison(const __grid_constant__ Fill a) {
  const std::int64_t thread = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x, threads = std::int64_t(gridDim.x) * blockDim.x;
  auto* quads = static_cast<ulonglong2*>(a.to);
  const std::int64_t whole = a.bytes / 16;
  for (std::int64_t i = thread; i < whole; i += threads) quads[i] = make_ulonglong2(a.line.line[i % 4 * 2], a.line.line[i % 4 * 2 + 1]);
  auto* bytes = static_cast<unsigned char*>(a.to);
  for (std::int64_t i = whole * 16 + thread; i < a.bytes; i += threads)
    bytes[i] = static_cast<unsigned char>(rules::poison_at(a.line, i, 1));
}

namespace {

// Calls word(i) for what can be done by words of canary_word, then byte(at) for the rest.
template <class Word, class Byte>
__device__ void each_canary(const Canary& a, Word word, Byte byte) {
  const std::int64_t first = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x, step = std::int64_t(gridDim.x) * blockDim.x;
  const std::int64_t words = reinterpret_cast<std::uintptr_t>(a.at) % 8 == 0 ? a.bytes / 8 : 0;
  for (std::int64_t i = first; i < words; i += step) word(i);
  for (std::int64_t at = words * 8 + first; at < a.bytes; at += step) byte(at);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) judge_set_canary(const __grid_constant__ Canary a) {
  each_canary(
      a, [&](std::int64_t i) { static_cast<std::uint64_t*>(a.at)[i] = rules::canary_word(a.seed, i); },
      [&](std::int64_t at) { static_cast<unsigned char*>(a.at)[at] = rules::canary_byte(a.seed, at); });
}

extern "C" __global__ void __launch_bounds__(kThreads) judge_check_canary(const __grid_constant__ Canary a) {
  std::uint64_t changed = 0;
  each_canary(
      a,
      [&](std::int64_t i) {
        for (std::uint64_t wrong = static_cast<const std::uint64_t*>(a.at)[i] ^ rules::canary_word(a.seed, i); wrong; wrong >>= 8)
          changed += (wrong & 0xff) != 0;
      },
      [&](std::int64_t at) { changed += static_cast<const unsigned char*>(a.at)[at] != rules::canary_byte(a.seed, at); });
  if (changed) atomicAdd(reinterpret_cast<unsigned long long*>(a.changed), static_cast<unsigned long long>(changed));
}

extern "C" __global__ void __launch_bounds__(kThreads) judge_count_nonzero(const __grid_constant__ Count a) {
  const auto* bytes = static_cast<const unsigned char*>(a.at);
  std::uint64_t found = 0;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < a.bytes; i += std::int64_t(gridDim.x) * blockDim.x)
    found += bytes[i] != 0;
  if (found) atomicAdd(reinterpret_cast<unsigned long long*>(a.found), static_cast<unsigned long long>(found));
}

extern "C" __global__ void __launch_bounds__(kThreads) judge_compare(const __grid_constant__ Compare a) {
  Findings mine;
  const std::int32_t stored = a.rule.kind == rules::exact ? a.rule.type : std::int32_t(rules::f32);
  const int size = rules::size_of(a.rule.type);
  each_piece(a.map, [&](std::int64_t row, Source source, std::int64_t begin, std::int64_t end) {
#pragma unroll 2
    for (std::int64_t j = begin + threadIdx.x % 32; j < end; j += 32) {
      const std::int64_t index = row * a.map.inner + j;
      const Source from = rules::within_row(a.map, source, j);
      const std::uint64_t expected = rules::signed_bits(stored, rules::load(stored, a.expected, from.index), from.negative);
      ++mine.compared;
      mine.note(index, rules::judge(a.rule, rules::load(a.rule.type, a.got, index), expected, a.bound ? a.bound[from.index] : 0,
                                    rules::poison_at(a.poison, index, size)));
    }
  });
  report(mine, a.blocks);
}

extern "C" __global__ void __launch_bounds__(kThreads) judge_compare_indexes(const __grid_constant__ CompareIndexes a) {
  Findings mine;
  std::int32_t* first_use = a.first_use + blockIdx.x * a.n;
  const int size = rules::size_of(a.type);
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    for (std::int64_t i = threadIdx.x; i < a.k; i += blockDim.x) {
      const std::int64_t index = rules::index_of(a.type, rules::load(a.type, a.got, row * a.k + i));
      if (index >= 0 && index < a.n) atomicMin(first_use + index, static_cast<std::int32_t>(i));
    }
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < a.k; i += blockDim.x) {
      const std::int64_t at = row * a.k + i;
      const std::uint64_t bits = rules::load(a.type, a.got, at);
      const std::int64_t index = rules::index_of(a.type, bits);
      const bool in_range = index >= 0 && index < a.n;
      bool names = false, first = false;
      if (in_range) {
        const Source element = rules::source_of(a.of_map, row * a.n + index), value = rules::source_of(a.values_map, at);
        names = rules::names_value(a.of_type, rules::signed_bits(a.of_type, rules::load(a.of_type, a.of, element.index), element.negative),
                                   rules::signed_bits(a.of_type, rules::load(a.of_type, a.values, value.index), value.negative));
        first = *static_cast<volatile std::int32_t*>(first_use + index) == i;
      }
      ++mine.compared;
      mine.note(at, rules::judge_index(in_range, names, first, bits == rules::poison_at(a.poison, at, size)));
    }
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < a.k; i += blockDim.x) {
      const std::int64_t index = rules::index_of(a.type, rules::load(a.type, a.got, row * a.k + i));
      if (index >= 0 && index < a.n) first_use[index] = 0x7fffffff;
    }
    __syncthreads();
  }
  report(mine, a.blocks);
}

extern "C" __global__ void __launch_bounds__(kThreads) judge_store(const __grid_constant__ Store a) {
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < a.count; i += std::int64_t(gridDim.x) * blockDim.x) {
    const std::int64_t at = a.first + i;
    const std::uint64_t bits = rules::stored_bits(a.rule, a.expected[i]);
    if (a.rule.kind == rules::exact) {
      switch (rules::size_of(a.rule.type)) {
        case 8:
          static_cast<std::uint64_t*>(a.stored)[at] = bits;
          break;
        case 4:
          static_cast<std::uint32_t*>(a.stored)[at] = static_cast<std::uint32_t>(bits);
          break;
        case 2:
          static_cast<std::uint16_t*>(a.stored)[at] = static_cast<std::uint16_t>(bits);
          break;
        default:
          static_cast<std::uint8_t*>(a.stored)[at] = static_cast<std::uint8_t>(bits);
      }
      continue;
    }
    const float value = rules::float_of(static_cast<std::uint32_t>(bits));
    static_cast<float*>(a.stored)[at] = value;
    const double bound = rules::bound_of(a.rule, value, a.scale ? a.scale[i] : 0);
    if (a.bound) a.bound[at] = static_cast<float>(bound);
    if (rules::unusable(value, bound)) *a.unusable = static_cast<std::uint64_t>(at) + 1;  // any one will do
  }
}

}  // namespace forge::judge
