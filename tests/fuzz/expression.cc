// SPDX-License-Identifier: Apache-2.0
// The launch plan's integer expressions, and the C++ that exports make of them. Input: an expression.
// link: forge_exchange
#include "core/expr.h"
#include "exchange/cpp_expr.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(expression) {
  const auto e = parse_expr(std::string(bytes));
  if (!e) return;
  HOLDS(!e->empty());
  Names names = {{"B", 8}, {"N", 4096}, {"big", INT64_MAX}, {"low", INT64_MIN}, {"zero", 0}};
  (void)evaluate(*e, names);
  for (const std::string& name : names_used(*e)) names.emplace(name, 7);
  const auto value = evaluate(*e, names), again = evaluate(*e, names);
  HOLDS(value.has_value() == again.has_value() && (!value || *value == *again));
  HOLDS(!cpp_expression(*e).empty());
}

}  // namespace forge
