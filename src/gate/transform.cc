// SPDX-License-Identifier: Apache-2.0
#include "gate/transform.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "gate/numeric.h"

namespace forge {
namespace {

constexpr std::int64_t k_shuffle_whole = 65536, k_shuffle_block = 1024;

std::vector<std::int32_t> draw_permutation(std::int64_t n, Random& random) {
  std::vector<std::int32_t> from(static_cast<std::size_t>(n));
  if (n <= k_shuffle_whole) {
    std::iota(from.begin(), from.end(), 0);
    for (std::int64_t i = n - 1; i > 0; --i)
      std::swap(from[static_cast<std::size_t>(i)], from[random.below(static_cast<std::uint64_t>(i) + 1)]);
    return from;
  }
  // A whole shuffle of a long axis would miss the caches at every element: shuffle blocks, and rotate so that their edges move.
  const std::int64_t blocks = (n + k_shuffle_block - 1) / k_shuffle_block;
  const auto order = draw_permutation(blocks, random);
  const auto rotation = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n)));
  std::int64_t at = 0;
  for (const std::int32_t block : order) {
    const std::int64_t end = std::min(n, (block + std::int64_t(1)) * k_shuffle_block);
    for (std::int64_t i = block * k_shuffle_block; i < end; ++i) {
      std::int64_t to = at++ + rotation;
      if (to >= n) to -= n;
      from[static_cast<std::size_t>(to)] = static_cast<std::int32_t>(i);
    }
  }
  return from;
}

}  // namespace

Action draw_action(const TaskFile& task, const AxisValues& axes, Random& random) {
  Action action;
  for (const SymmetryRule& rule : task.symmetries) {
    const std::int64_t n = axes.at(rule.axis);
    if (rule.kind == SymmetryKind::permute) {
      action.from[rule.axis] = draw_permutation(n, random);
      continue;
    }
    Action::Signs signs{.tensors = rule.tensors, .axis = rule.axis, .negative = std::vector<std::uint8_t>(static_cast<std::size_t>(n))};
    for (auto& negative : signs.negative) negative = static_cast<std::uint8_t>(random.next() >> 63);
    action.signs.push_back(std::move(signs));
  }
  return action;
}

double action_bits(const TaskFile& task, const AxisValues& axes) {
  double total = 0;
  for (const SymmetryRule& rule : task.symmetries) {
    const auto n = static_cast<double>(axes.at(rule.axis));
    total += rule.kind == SymmetryKind::permute ? std::lgamma(n + 1) / std::log(2.0) : n;
  }
  return total;
}

ElementMap::ElementMap(const TensorSpec& spec, const AxisValues& axes, const Action& action) {
  const std::size_t rank = spec.shape.size();
  std::vector<Dim> dims(rank);
  for (std::size_t d = rank; d-- > 0;) {
    Dim& dim = dims[d];
    dim.extent = axes.at(spec.shape[d]);
    dim.stride = m_elements;
    m_elements *= dim.extent;
    if (const auto found = action.from.find(spec.shape[d]); found != action.from.end()) dim.from = found->second.data();
    for (const Action::Signs& signs : action.signs) {
      if (signs.axis != spec.shape[d] || std::find(signs.tensors.begin(), signs.tensors.end(), spec.name) == signs.tensors.end()) continue;
      dim.negative.resize(signs.negative.size());
      for (std::size_t i = 0; i < signs.negative.size(); ++i) dim.negative[i] ^= signs.negative[i];
    }
  }
  // Trailing axes that the action leaves alone are one contiguous row.
  std::size_t outer = rank;
  while (outer > 0 && !dims[outer - 1].from && dims[outer - 1].negative.empty()) m_inner *= dims[--outer].extent;
  if (outer == rank && rank > 0) {  // the last axis itself moves: gather within its row
    const Dim& last = dims[--outer];
    m_inner = last.extent;
    m_inner_from = last.from;
    for (const std::uint8_t negative : last.negative) m_inner_mask.push_back(negative ? ~0u : 0u);
    m_inner_negative = last.negative;
  }
  dims.resize(outer);
  m_outer = std::move(dims);
}

namespace {

template <class T, bool IsFloat>
inline T negated_where(T value, T mask) {  // mask: 0 or all ones
  if constexpr (IsFloat)
    return static_cast<T>(value ^ (mask & (T(1) << (sizeof(T) * 8 - 1))));
  else
    return static_cast<T>((value ^ mask) - mask);
}

template <class T, bool IsFloat>
__attribute__((target("avx2"))) void move_row(const T* row, const std::int32_t* from, const std::uint32_t* mask, bool negative,
                                              std::int64_t first, std::int64_t n, T* to) {
  const T flip = negative ? static_cast<T>(~T(0)) : T(0);
  if (from && mask)
    for (std::int64_t j = 0; j < n; ++j)
      to[j] = negated_where<T, IsFloat>(row[from[first + j]],
                                        static_cast<T>(static_cast<T>(static_cast<std::int32_t>(mask[first + j])) ^ flip));
  else if (from)
    for (std::int64_t j = 0; j < n; ++j) to[j] = negated_where<T, IsFloat>(row[from[first + j]], flip);
  else if (mask)
    for (std::int64_t j = 0; j < n; ++j)
      to[j] = negated_where<T, IsFloat>(row[first + j], static_cast<T>(static_cast<T>(static_cast<std::int32_t>(mask[first + j])) ^ flip));
  else if (negative)
    for (std::int64_t j = 0; j < n; ++j) to[j] = negated_where<T, IsFloat>(row[first + j], flip);
  else
    std::memcpy(to, row + first, static_cast<std::size_t>(n) * sizeof(T));
}

}  // namespace

template <class T, bool IsFloat>
void ElementMap::copy_as(const T* base, bool with_sign, std::int64_t begin, std::int64_t end, T* to) const {
  for (std::int64_t e = begin; e < end;) {
    std::int64_t row = e / m_inner;
    const std::int64_t first = e % m_inner, n = std::min(m_inner - first, end - e);
    std::int64_t source = 0;
    bool negative = false;
    for (std::size_t d = m_outer.size(); d-- > 0;) {
      const Dim& dim = m_outer[d];
      const std::int64_t i = row % dim.extent;
      row /= dim.extent;
      source += dim.stride * (dim.from ? dim.from[i] : i);
      if (!dim.negative.empty()) negative ^= dim.negative[static_cast<std::size_t>(i)] != 0;
    }
    move_row<T, IsFloat>(base + source, m_inner_from, with_sign && !m_inner_mask.empty() ? m_inner_mask.data() : nullptr,
                         with_sign && negative, first, n, to);
    to += n;
    e += n;
  }
}

rules::MoveMap ElementMap::plain(const Place& place) const {
  rules::MoveMap map;
  map.outer = static_cast<std::int32_t>(m_outer.size());
  for (std::size_t d = 0; d < m_outer.size(); ++d) {
    const Dim& dim = m_outer[d];
    map.extent[d] = dim.extent;
    map.stride[d] = dim.stride;
    if (dim.from) map.from[d] = static_cast<const std::int32_t*>(place(dim.from, static_cast<std::size_t>(dim.extent) * 4));
    if (!dim.negative.empty()) map.negative[d] = static_cast<const std::uint8_t*>(place(dim.negative.data(), dim.negative.size()));
  }
  map.inner = m_inner;
  map.elements = m_elements;
  if (m_inner_from) map.inner_from = static_cast<const std::int32_t*>(place(m_inner_from, static_cast<std::size_t>(m_inner) * 4));
  if (!m_inner_negative.empty())
    map.inner_negative = static_cast<const std::uint8_t*>(place(m_inner_negative.data(), m_inner_negative.size()));
  return map;
}

void ElementMap::copy(const void* base, DType stored, Sign sign, std::int64_t begin, std::int64_t end, void* to) const {
  const bool with_sign = sign == Sign::apply;
  const auto as = [&](auto zero, auto is_float) {
    using T = decltype(zero);
    copy_as<T, decltype(is_float)::value>(static_cast<const T*>(base), with_sign, begin, end, static_cast<T*>(to));
  };
  if (is_float(stored)) {
    if (bytes_of(stored) == 4)
      as(std::uint32_t{}, std::true_type{});
    else
      as(std::uint16_t{}, std::true_type{});
    return;
  }
  switch (bytes_of(stored)) {
    case 8:
      return as(std::uint64_t{}, std::false_type{});
    case 4:
      return as(std::uint32_t{}, std::false_type{});
    case 2:
      return as(std::uint16_t{}, std::false_type{});
    default:
      return as(std::uint8_t{}, std::false_type{});
  }
}

__attribute__((target("avx2"))) void stream_copy(void* to, const void* from, std::size_t bytes) {
  auto* d = static_cast<char*>(to);
  const auto* s = static_cast<const char*>(from);
  std::size_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(d + i), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i)));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(d + i + 32), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i + 32)));
  }
  if (i < bytes) {
    std::memcpy(d + i, s + i, bytes - i);
    flush_lines(d + i, bytes - i);
  }
}

__attribute__((target("avx2"))) void stream_pattern(void* to, const Pattern& pattern, std::size_t bytes) {
  auto* d = static_cast<char*>(to);
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pattern.data()));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pattern.data() + 16));
  std::size_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(d + i), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(d + i + 32), high);
  }
  if (i < bytes) {
    std::memcpy(d + i, pattern.data(), bytes - i);
    flush_lines(d + i, bytes - i);
  }
}

void finish_streaming() { _mm_sfence(); }

void flush_lines(const void* at, std::size_t bytes) {
  if (bytes == 0) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(at) & ~std::uintptr_t(63), end = reinterpret_cast<std::uintptr_t>(at) + bytes;
  for (std::uintptr_t line = begin; line < end; line += 64) _mm_clflush(reinterpret_cast<const void*>(line));
}

Pattern draw_poison(Random& random) {
  Pattern pattern;
  for (auto& unit : pattern) {
    const std::uint64_t bits = random.next();
    // 0x7ff8: exponent all ones and quiet as the upper bits of f64, f32 and bf16, and as f16. The payload differs from what
    // arithmetic makes (0x7fc0, 0x7e00) and from all ones.
    unit = static_cast<std::uint16_t>(0x7ff8u | ((bits & 1) << 15) | ((bits >> 32) % 7));
  }
  return pattern;
}

}  // namespace forge
