// SPDX-License-Identifier: Apache-2.0
// Comparison of an output with what the judge expects. Fails closed: an element is right only if `err <= bound` is true, or if both
// are the same non-finite value; a NaN is right only where the oracle has one, and never when it is the poison that was put there. The
// rules for one element are device/kernels/element_rules.cuh, which the card's judge is compiled from too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/operator.h"
#include "device/kernels/element_rules.cuh"
#include "gate/transform.h"

namespace forge {

using Findings = rules::Findings;

// One contiguous piece of one output. `first` is the index of its first element in the tensor.
struct Piece {
  const std::byte* got = nullptr;  // as the output's type
  const void* expected = nullptr;  // float, or the output's type when the rule is exact
  const float* bound = nullptr;    // per element, `scaled` only
  std::int64_t first = 0, count = 0;
};
void compare_piece(const JudgeRule&, DType, const Piece&, const Pattern& poison, Findings&);

// One row of an `indexes` output: k indices into the n elements of `of`, which must name the expected `values`, none twice.
struct IndexRow {
  const std::byte *got = nullptr, *values = nullptr, *of = nullptr;
  DType type = DType::i32, of_type = DType::f32;  // of the indices; of `of` and of `values`
  std::int64_t first = 0, k = 0, n = 0;           // first: index of the row's first element in the output
};
// `seen`: room for n, kept between rows so that it is cleared once.
void compare_index_row(const IndexRow&, const Pattern& poison, std::vector<std::uint8_t>& seen, Findings&);

// How both judges see a rule and a line of poison.
rules::Element element_rule(const JudgeRule&, DType output);
rules::Poison poison_of(const Pattern&);
rules::Type element_type(DType);  // only where judge_supports

// The error allowed for an expected value; `bound` is the stored one of a scaled rule.
double allowed_error(const JudgeRule&, float expected, float bound);

constexpr std::int64_t k_piece = 4096;  // largest Piece::count

}  // namespace forge
