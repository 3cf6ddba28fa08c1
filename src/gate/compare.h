// SPDX-License-Identifier: Apache-2.0
// Comparison of an output with what the judge expects. Fails closed: an element is right only if `err <= bound` is true, or if both
// are the same non-finite value; a NaN is right only where the oracle has one, and never when it is the poison that was put there.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/operator.h"
#include "gate/transform.h"

namespace forge {

// What was found, over any number of chunks. Counters of bad elements are disjoint.
struct Findings {
  std::int64_t compared = 0;
  std::int64_t not_written = 0, non_finite = 0, wrong = 0;
  std::int64_t first_bad = -1;    // lowest index of a bad element
  double worst = 0;               // largest error as a fraction of its bound, over all elements
  std::int64_t worst_index = -1;  // of the worst bad element
  std::int64_t bad() const { return not_written + non_finite + wrong; }
  void merge(const Findings&);
};

// One contiguous piece of one output. `first` is the index of its first element in the tensor.
struct Piece {
  const std::byte* got = nullptr;  // as the output's type
  const void* expected = nullptr;  // float, or the output's type when the rule is exact
  const float* bound = nullptr;    // per element, `scaled` only
  std::int64_t first = 0, count = 0;
};
void compare_piece(const JudgeRule&, DType, const Piece&, const Pattern& poison, Findings&);

// The error allowed for an expected value; `bound` is the stored one of a scaled rule.
double allowed_error(const JudgeRule&, float expected, float bound);

constexpr std::int64_t k_piece = 4096;  // largest Piece::count

}  // namespace forge
