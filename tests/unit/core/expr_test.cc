// SPDX-License-Identifier: Apache-2.0
#include "core/expr.h"

#include <gtest/gtest.h>

namespace forge {
namespace {

const Names kNames = {{"M", 1000}, {"N", 64}, {"zero", 0}, {"minus", -3}, {"big", INT64_MAX}};

std::int64_t value_of(const std::string& text) {
  const auto expr = parse_expr(text);
  EXPECT_TRUE(expr) << expr.error().text();
  if (!expr) return -999;
  const auto value = evaluate(*expr, kNames);
  EXPECT_TRUE(value) << value.error().text();
  return value.value_or(-999);
}

TEST(Expr, Values) {
  const std::vector<std::pair<std::string, std::int64_t>> table = {{"7", 7},
                                                                   {"1 + 2 * 3", 7},
                                                                   {"(1 + 2) * 3", 9},
                                                                   {"10 - 3 - 2", 5},
                                                                   {"100 / 7 / 2", 7},
                                                                   {"17 % 5 * 2", 4},
                                                                   {"-3 + 5", 2},
                                                                   {"--4", 4},
                                                                   {"2 * -3", -6},
                                                                   {"!0", 1},
                                                                   {"!7", 0},
                                                                   {"!!7", 1},
                                                                   {"M > 999", 1},
                                                                   {"M >= 1000 && N == 64", 1},
                                                                   {"M < N || N != 64", 0},
                                                                   {"1 + 1 == 2", 1},
                                                                   {"1 < 2 == 1", 1},
                                                                   {"M > 5 ? 1 : 2", 1},
                                                                   {"0 ? 1 : 0 ? 2 : 3", 3},
                                                                   {"1 ? 0 ? 5 : 6 : 7", 6},
                                                                   {"min(3, 2)", 2},
                                                                   {"max(3, 2)", 3},
                                                                   {"min(5, 4, 3, 9)", 3},
                                                                   {"ceil_div(M, 128)", 8},
                                                                   {"ceil_div(0, 5)", 0},
                                                                   {"align_up(M, 64)", 1024},
                                                                   {"align_up(64, 64)", 64},
                                                                   {"M%N", 40},
                                                                   {" \t M ", 1000},
                                                                   {"zero && 1 / zero", 0},
                                                                   {"1 || 1 / zero", 1},
                                                                   {"zero > 0 ? M / zero : 4", 4},
                                                                   {"1 || 0 && 0", 1},
                                                                   {"3 - 2 > 0", 1}};
  for (const auto& [text, value] : table) EXPECT_EQ(value_of(text), value) << text;
}

TEST(Expr, RefusedTexts) {
  const std::vector<std::pair<std::string, std::string>> table = {{"", "missing at column 1"},
                                                                  {"1 +", "missing at column 4"},
                                                                  {"(1", "')' missing"},
                                                                  {"1)", "unexpected ')' at column 2"},
                                                                  {"a b", "unexpected 'b' at column 3"},
                                                                  {"1 < 2 < 3", "do not chain"},
                                                                  {"a == b == c", "do not chain"},
                                                                  {"foo(1, 2)", "unknown function 'foo'"},
                                                                  {"min(1)", "at least two"},
                                                                  {"ceil_div(1, 2, 3)", "two arguments"},
                                                                  {"min(1, 2", "')' missing"},
                                                                  {"1.5", "whole decimal"},
                                                                  {"0x10", "whole decimal"},
                                                                  {"3M", "whole decimal"},
                                                                  {"9223372036854775808", "beyond 64 bits"},
                                                                  {"a = 1", "unexpected '='"},
                                                                  {"a & b", "unexpected '&'"},
                                                                  {"1 ? 2", "':' missing"},
                                                                  {"a ? b : ", "missing"},
                                                                  {"$", "unexpected '$'"},
                                                                  {"\"M\"", "unexpected"},
                                                                  {"M;", "unexpected ';'"},
                                                                  {"M ** 2", "unexpected '*'"},
                                                                  {std::string(5000, '1'), "longer than"}};
  for (const auto& [text, says] : table) {
    const auto expr = parse_expr(text);
    ASSERT_FALSE(expr) << text;
    EXPECT_EQ(expr.error().code, Code::bad_input);
    EXPECT_NE(expr.error().message.find(says), std::string::npos) << expr.error().message;
  }
}

TEST(Expr, RefusedValues) {
  const std::vector<std::pair<std::string, std::string>> table = {{"unknown + 1", "unknown name 'unknown'"},
                                                                  {"M / zero", "right side of /"},
                                                                  {"M % minus", "right side of %"},
                                                                  {"minus / 2", "left side of /"},
                                                                  {"minus % 2", "left side of %"},
                                                                  {"ceil_div(minus, 2)", "left side of ceil_div"},
                                                                  {"align_up(1, 0)", "right side of align_up"},
                                                                  {"big + 1", "overflow"},
                                                                  {"0 - big - 2", "overflow"},
                                                                  {"big * 2", "overflow"},
                                                                  {"-(0 - big - 1)", "overflow"},
                                                                  {"align_up(big, 2)", "overflow"},
                                                                  {"1 && nothing", "unknown name 'nothing'"}};
  for (const auto& [text, says] : table) {
    const auto expr = parse_expr(text);
    ASSERT_TRUE(expr) << text;
    const auto value = evaluate(*expr, kNames);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, Code::bad_input);
    EXPECT_NE(value.error().message.find(says), std::string::npos) << value.error().message;
    EXPECT_NE(value.error().message.find(text), std::string::npos) << "names the expression";
  }
  EXPECT_FALSE(evaluate(Expr{}, kNames));
}

TEST(Expr, NestingIsBounded) {
  for (const std::string& open : {std::string("("), std::string("-"), std::string("!"), std::string("min(1, ")}) {
    std::string text;
    while (text.size() + open.size() < 4000) text += open;
    const auto expr = parse_expr(text + "1");
    ASSERT_FALSE(expr);
  }
  std::string ternaries = "1";
  for (int i = 0; i < 90; i++) ternaries = "0 ? 2 : " + ternaries;
  EXPECT_EQ(value_of(ternaries), 1);
  std::string sum = "1";
  for (int i = 0; i < 1000; i++) sum += " + 1";
  EXPECT_EQ(value_of(sum), 1001);
}

TEST(Expr, NamesUsed) {
  EXPECT_EQ(names_used(*parse_expr("b * a + min(b, c) + 3")), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(names_used(*parse_expr("3")).empty());
}

}  // namespace
}  // namespace forge
