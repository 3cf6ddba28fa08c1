// SPDX-License-Identifier: Apache-2.0
#include "exchange/cpp_expr.h"

#include <fmt/format.h>

namespace forge {
namespace {

const char* helper(Expr::Op op) {
  switch (op) {
    case Expr::Op::add:
      return "plus";
    case Expr::Op::sub:
      return "minus";
    case Expr::Op::mul:
      return "times";
    case Expr::Op::div:
      return "over";
    case Expr::Op::mod:
      return "modulo";
    case Expr::Op::min:
      return "least";
    case Expr::Op::max:
      return "most";
    case Expr::Op::ceil_div:
      return "ceil_div";
    default:
      return "align_up";
  }
}

const char* symbol(Expr::Op op) {
  switch (op) {
    case Expr::Op::lt:
      return "<";
    case Expr::Op::le:
      return "<=";
    case Expr::Op::gt:
      return ">";
    case Expr::Op::ge:
      return ">=";
    case Expr::Op::eq:
      return "==";
    case Expr::Op::ne:
      return "!=";
    case Expr::Op::logical_and:
      return "&&";
    case Expr::Op::logical_or:
      return "||";
    default:
      return nullptr;
  }
}

// Arithmetic goes through helpers that take 64 bits, so that a plain literal is enough where it fits an int.
std::string number(std::int64_t value) { return value > INT32_MAX ? fmt::format("INT64_C({})", value) : std::to_string(value); }

std::string text_of(const Expr& e, int index) {
  const Expr::Node& n = e.nodes[static_cast<std::size_t>(index)];
  const auto truth = [&](int at) { return fmt::format("({} != 0)", text_of(e, at)); };
  switch (n.op) {
    case Expr::Op::constant:
      return number(n.value);
    case Expr::Op::load:
      return "v_" + n.name;
    case Expr::Op::neg:
      return fmt::format("e.minus(0, {})", text_of(e, n.a));
    case Expr::Op::logical_not:
      return fmt::format("std::int64_t({} == 0)", text_of(e, n.a));
    case Expr::Op::select:
      return fmt::format("({} ? {} : {})", truth(n.a), text_of(e, n.b), text_of(e, n.c));
    case Expr::Op::logical_and:
    case Expr::Op::logical_or:
      return fmt::format("std::int64_t({} {} {})", truth(n.a), symbol(n.op), truth(n.b));
    default:
      break;
  }
  if (const char* s = symbol(n.op)) return fmt::format("std::int64_t({} {} {})", text_of(e, n.a), s, text_of(e, n.b));
  return fmt::format("e.{}({}, {})", helper(n.op), text_of(e, n.a), text_of(e, n.b));
}

}  // namespace

std::string cpp_expression(const Expr& e) { return e.empty() ? "0" : text_of(e, static_cast<int>(e.nodes.size()) - 1); }

std::string cpp_string(const std::string& text) {
  std::string out = "\"";
  for (const unsigned char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", static_cast<char>(c));
    else if (c < 0x20 || c >= 0x7f || c == '?')  // '?': no trigraphs
      out += fmt::format("\\{:03o}", c);
    else
      out += static_cast<char>(c);
  }
  return out + "\"";
}

// Every helper gives a harmless value once something was wrong, so the caller looks once, at the end of an expression.
const char* const kPlanMath =
    R"(// The plan's integers: signed 64-bit; overflow and a division that has no meaning are complaints, not undefined behaviour.
struct forge_math {
  const char* wrong = nullptr;  // the first complaint
  std::int64_t bad(const char* what) {
    if (!wrong) wrong = what;
    return 0;
  }
  std::int64_t plus(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    return __builtin_add_overflow(a, b, &r) ? bad("overflow in +") : r;
  }
  std::int64_t minus(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    return __builtin_sub_overflow(a, b, &r) ? bad("overflow in -") : r;
  }
  std::int64_t times(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    return __builtin_mul_overflow(a, b, &r) ? bad("overflow in *") : r;
  }
  bool divides(std::int64_t a, std::int64_t b) {
    if (a >= 0 && b > 0) return true;
    bad("a division of a negative number, or by one that is not positive");
    return false;
  }
  std::int64_t over(std::int64_t a, std::int64_t b) { return divides(a, b) ? a / b : 0; }
  std::int64_t modulo(std::int64_t a, std::int64_t b) { return divides(a, b) ? a % b : 0; }
  std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return divides(a, b) ? a / b + (a % b != 0) : 0; }
  std::int64_t align_up(std::int64_t a, std::int64_t b) { return times(ceil_div(a, b), b); }
  std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
  std::int64_t most(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
};
)";

}  // namespace forge
