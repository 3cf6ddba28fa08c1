// SPDX-License-Identifier: Apache-2.0
// The launch plan's integer expressions: names, + - * / %, comparisons, && || !, ?:, min max ceil_div align_up.
// Signed 64-bit. Overflow, unknown names, and / or % with a negative left or non-positive right are errors.
// Source of the rules: docs/formats/launch-plan.md.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "util/result.h"

namespace forge {

using Names = std::map<std::string, std::int64_t>;

// A parsed expression; cheap to copy, evaluated without allocation of nodes.
struct Expr {
  enum class Op : std::uint8_t {
    constant,
    load,
    neg,
    logical_not,
    add,
    sub,
    mul,
    div,
    mod,
    lt,
    le,
    gt,
    ge,
    eq,
    ne,
    logical_and,
    logical_or,
    select,
    min,
    max,
    ceil_div,
    align_up
  };
  struct Node {
    Op op;
    std::int64_t value = 0;
    int a = -1, b = -1, c = -1;
    std::string name;
  };
  std::vector<Node> nodes;  // the last one is the root
  std::string text;         // as written
  bool empty() const { return nodes.empty(); }
  bool operator==(const Expr& o) const { return text == o.text; }
};

Result<Expr> parse_expr(const std::string& text);  // the error's message points at the column
Result<std::int64_t> evaluate(const Expr&, const Names&);
std::vector<std::string> names_used(const Expr&);  // sorted, unique

}  // namespace forge
