// SPDX-License-Identifier: Apache-2.0
// Fresh content from a base by the operator's exact symmetries: permutations and signs along axes. The same drawn action moves
// inputs and expected outputs, so a new problem and its answer cost a copy instead of an oracle's run.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/operator.h"
#include "device/kernels/element_rules.cuh"
#include "util/random.h"

namespace forge {

// One drawn symmetry. Element [i, j] of a moved tensor is +-[from(i), from(j)] of the base.
struct Action {
  std::map<std::string, std::vector<std::int32_t>> from;  // by permuted axis
  struct Signs {
    std::vector<std::string> tensors;
    std::string axis;
    std::vector<std::uint8_t> negative;
  };
  std::vector<Signs> signs;  // by `negate` rule
};
Action draw_action(const TaskFile&, const AxisValues&, Random&);
// log2 of how many contents one base gives: when small, contents would repeat.
double action_bits(const TaskFile&, const AxisValues&);
inline constexpr double k_enough_bits = 32;     // for content that does not repeat
inline constexpr std::size_t k_remembered = 4;  // earlier contents that an old answer is recognised by

// How one tensor moves under an action. Keeps pointers into the action, which must outlive it.
class ElementMap {
 public:
  ElementMap(const TensorSpec&, const AxisValues&, const Action&);
  enum class Sign { apply, ignore };  // ignore: error bounds move, but have no sign
  // Elements [begin, end) of the moved tensor, contiguous, into `to`. `stored` is how `base` holds the elements.
  void copy(const void* base, DType stored, Sign, std::int64_t begin, std::int64_t end, void* to) const;
  std::int64_t elements() const { return m_elements; }
  // The same map as plain data. `place` says where a table of the action stands for whoever reads it; the default: where it is.
  using Place = std::function<const void*(const void* table, std::size_t bytes)>;
  rules::MoveMap plain(const Place& place = [](const void* table, std::size_t) { return table; }) const;

 private:
  template <class T, bool IsFloat>
  void copy_as(const T* base, bool with_sign, std::int64_t begin, std::int64_t end, T* to) const;
  struct Dim {
    std::int64_t extent = 1, stride = 1;
    const std::int32_t* from = nullptr;
    std::vector<std::uint8_t> negative;
  };
  std::vector<Dim> m_outer;                  // outermost first
  std::int64_t m_inner = 1, m_elements = 1;  // m_inner: contiguous in both, or gathered within one row
  const std::int32_t* m_inner_from = nullptr;
  std::vector<std::uint32_t> m_inner_mask;  // 0 or all ones; empty: no signs along the row
  std::vector<std::uint8_t> m_inner_negative;
};

// Stores that bypass the caches and evict the lines they touch: operands are cold for whoever reads them next. `to` is 64-byte
// aligned. A last partial line is stored ordinarily and then flushed. Followed by finish_streaming() in the same thread.
void stream_copy(void* to, const void* from, std::size_t bytes);
using Pattern = std::array<std::uint16_t, 32>;  // one cache line
void stream_pattern(void* to, const Pattern&, std::size_t bytes);
void finish_streaming();
void flush_lines(const void*, std::size_t bytes);  // clflush

// A line of poison: each 16 bits are a quiet NaN of non-canonical payload as bf16 and f16, each 32 bits as f32, each 64 as f64.
Pattern draw_poison(Random&);

}  // namespace forge
