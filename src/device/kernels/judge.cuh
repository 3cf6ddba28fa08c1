// SPDX-License-Identifier: Apache-2.0
// Arguments of the judge's kernels (judge.cu), as its host code writes them: one struct a kernel, by value. Pointers are the
// card's. Every kernel takes any grid; blocks are kThreads wide.
#pragma once
#include <cstdint>

#include "device/kernels/element_rules.cuh"

namespace forge::judge {

inline constexpr int kThreads = 256;

struct Move {  // judge_move: a tensor from its base
  rules::MoveMap map;
  const void* base;
  void* to;
  std::int32_t type;
};
struct CompareMoved {  // judge_compare_moved: is a tensor still what judge_move made of the base?
  rules::MoveMap map;
  const void *base, *at;
  std::int32_t type;
  std::uint64_t *changed, *first;  // elements that differ, lowest index of one
};
struct Fill {  // judge_poison: 64 bytes repeated; `to` is a multiple of 64
  rules::Poison line;
  void* to;
  std::int64_t bytes;
};
struct Canary {  // judge_set_canary, judge_check_canary
  void* at;
  std::int64_t bytes;
  std::uint64_t seed;
  std::uint64_t* changed;  // bytes that are not the canary's
};
struct Count {  // judge_count_nonzero
  const void* at;
  std::int64_t bytes;
  std::uint64_t* found;
};
struct Compare {  // judge_compare: an output with its base
  rules::Element rule;
  rules::MoveMap map;
  const void *got, *expected;
  const float* bound;  // `scaled` only
  rules::Poison poison;
  rules::Findings* blocks;  // one a block
};
struct CompareIndexes {  // judge_compare_indexes: rows of indices, looked up in the base of the input that they index
  rules::MoveMap of_map, values_map;
  const void *of, *values, *got;
  std::int32_t type, of_type;  // of the indices; of `of` and of `values`
  std::int64_t rows, k, n;
  rules::Poison poison;
  std::int32_t* first_use;  // n a block, all 0x7fffffff before and after
  rules::Findings* blocks;
};
struct Store {  // judge_store: an oracle's doubles as a base keeps them
  rules::Element rule;
  const double *expected, *scale;  // of the range
  std::int64_t first, count;       // the range in the tensor
  void* stored;
  float* bound;
  std::uint64_t* unusable;  // 1 + index of an element whose bound is no use; 0: none
};

}  // namespace forge::judge
