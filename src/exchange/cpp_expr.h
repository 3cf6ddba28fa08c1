// SPDX-License-Identifier: Apache-2.0
// A launch plan's expression as C++ text that computes what core's evaluate() does. It calls the helpers of kPlanMath, which
// check for overflow and keep the first complaint in a `forge_math` named `e`; a name N is the variable `v_N`.
#pragma once
#include <string>

#include "core/expr.h"

namespace forge {

std::string cpp_expression(const Expr&);     // "0" when empty
std::string cpp_string(const std::string&);  // a literal with its quotes

extern const char* const kPlanMath;  // the helpers' source, C++17, for one anonymous namespace; needs <cstdint>

}  // namespace forge
