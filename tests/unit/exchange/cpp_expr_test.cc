// SPDX-License-Identifier: Apache-2.0
// Expressions as C++ must say what evaluate() says: one program with many of them, compiled and run.
#include "exchange/cpp_expr.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "util/fs.h"
#include "util/text.h"

namespace forge {
namespace {

const Names kExprNames = {{"M", 1000}, {"N", 64}, {"zero", 0}, {"minus", -3}, {"big", INT64_MAX}};

std::string random_expression(std::mt19937& random, int depth) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto next = [&] { return random_expression(random, depth - 1); };
  static const std::vector<std::string> kLeaves = {"M", "N", "zero", "minus", "big", "0", "1", "7", "4096", "9223372036854775807"};
  static const std::vector<std::string> kInfix = {"+", "-", "*", "/", "%", "==", "!=", "&&", "||"};
  static const std::vector<std::string> kCalls = {"min", "max", "ceil_div", "align_up"};
  if (depth == 0 || below(5) == 0) return kLeaves[static_cast<std::size_t>(below(static_cast<int>(kLeaves.size())))];
  switch (below(6)) {
    case 0:
      return "-(" + next() + ")";
    case 1:
      return "!(" + next() + ")";
    case 2:
      return "((" + next() + ") ? (" + next() + ") : (" + next() + "))";
    case 3:
      return kCalls[static_cast<std::size_t>(below(4))] + "(" + next() + ", " + next() + ")";
    case 4:
      return "((" + next() + ") <= (" + next() + "))";
    default:
      return "((" + next() + ") " + kInfix[static_cast<std::size_t>(below(9))] + " (" + next() + "))";
  }
}

TEST(CppExpr, SaysWhatEvaluateSays) {
  std::vector<std::string> texts = {
      "7",        "1 + 2 * 3",        "-3 + 5",          "!7",           "M / zero",  "minus / 2",      "big + 1",
      "-big - 2", "zero && 1 / zero", "1 || 1 / zero",   "min(M, N, 3)", "max(1, M)", "align_up(M, N)", "M % N",
      "2 - 3",    "0 ? 1 / zero : M", "align_up(big, 2)"};
  std::mt19937 random(5);
  while (texts.size() < 400) texts.push_back(random_expression(random, 4));
  std::string program =
      "#include <cstdint>\n#include <cstdio>\n#include <initializer_list>\nnamespace {\n" + std::string(kPlanMath) + "}\n";
  program += "int main() {\n";
  for (const auto& [name, value] : kExprNames) program += fmt::format("  const std::int64_t v_{} = INT64_C({});\n", name, value);
  std::vector<std::string> wanted;
  int failures = 0;
  for (const std::string& text : texts) {
    const auto expr = parse_expr(text);
    ASSERT_TRUE(expr) << text << ": " << expr.error().text();
    program += fmt::format(
        "  {{ forge_math e; const std::int64_t v = {}; if (e.wrong) std::puts(\"wrong\"); else std::printf(\"%lld\\n\", (long long)v); "
        "}}\n",
        cpp_expression(*expr));
    const auto value = evaluate(*expr, kExprNames);
    failures += !value;
    wanted.push_back(value ? std::to_string(*value) : "wrong");
  }
  program += "}\n";
  EXPECT_GT(failures, 20);  // both kinds are well represented
  EXPECT_LT(failures, 380);
  const auto folder = TempDir::make("cpp-expr");
  ASSERT_TRUE(folder);
  const std::string stem = (folder->path() / "program").string();
  ASSERT_TRUE(write_file_atomic(stem + ".cc", program));
  const std::string build = fmt::format("g++ -std=c++17 -O1 -w -o {0} {0}.cc > {0}.log 2>&1 && {0} > {0}.out", stem);
  ASSERT_EQ(std::system(build.c_str()), 0) << read_file(stem + ".log").value_or("");
  const auto lines = split(read_file(stem + ".out").value_or(""), '\n');
  ASSERT_GE(lines.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); i++) EXPECT_EQ(lines[i], wanted[i]) << texts[i];
}

TEST(CppExpr, StringsAreOneLiteral) {
  EXPECT_EQ(cpp_string("a \"b\" \\ c"), "\"a \\\"b\\\" \\\\ c\"");
  EXPECT_EQ(cpp_string("x\ny"), "\"x\\012y\"");
  EXPECT_EQ(cpp_string("?\?/"), "\"\\077\\077/\"");
}

}  // namespace
}  // namespace forge
