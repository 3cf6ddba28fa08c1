// SPDX-License-Identifier: Apache-2.0
// The arithmetic of launch plan expressions, for every evaluator of them. Rules: docs/formats/launch-plan.md.
#pragma once
#include <algorithm>
#include <optional>

#include "core/expr.h"

namespace forge {

// Of two operands that were both evaluated, so not for && || ?:. None: overflow, or / % ceil_div align_up with a negative left or a
// right that is not positive.
inline std::optional<std::int64_t> apply(Expr::Op op, std::int64_t a, std::int64_t b) {
  using Op = Expr::Op;
  std::int64_t r = 0;
  const auto unless = [&](bool overflow) { return overflow ? std::nullopt : std::optional<std::int64_t>(r); };
  switch (op) {
    case Op::add:
      return unless(__builtin_add_overflow(a, b, &r));
    case Op::sub:
      return unless(__builtin_sub_overflow(a, b, &r));
    case Op::mul:
      return unless(__builtin_mul_overflow(a, b, &r));
    case Op::lt:
      return a < b;
    case Op::le:
      return a <= b;
    case Op::gt:
      return a > b;
    case Op::ge:
      return a >= b;
    case Op::eq:
      return a == b;
    case Op::ne:
      return a != b;
    case Op::min:
      return std::min(a, b);
    case Op::max:
      return std::max(a, b);
    default:
      break;
  }
  if (b <= 0 || a < 0) return std::nullopt;
  if (op == Op::div) return a / b;
  if (op == Op::mod) return a % b;
  const std::int64_t up = a / b + (a % b != 0);
  if (op == Op::ceil_div) return up;
  return unless(__builtin_mul_overflow(up, b, &r));
}

}  // namespace forge
