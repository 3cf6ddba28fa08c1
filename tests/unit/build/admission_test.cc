// SPDX-License-Identifier: Apache-2.0
// Each folder under tests/exploits/admission is a candidate whose first line says the rule that must refuse it ("admitted":
// an honest control that must pass).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "toy.h"
#include "util/process.h"
#include "util/text.h"

namespace forge {
namespace {

using namespace testing;

struct Case {
  std::string name, rule;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name << " (" << c.rule << ")"; }

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& e : fs::directory_iterator(fs::path(FORGE_SOURCE_DIR) / "tests/exploits/admission")) {
    const auto source = read_file(e.path() / "kernel.cpp");
    if (!source) continue;
    std::string rule = source->substr(0, source->find(':'));
    rule = rule.starts_with("// ") ? rule.substr(3) : "no rule in the first line";
    out.push_back({e.path().filename().string(), rule});
  }
  std::sort(out.begin(), out.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return out;
}

class AdmissionExploit : public ::testing::TestWithParam<Case> {};

void expect_verdict(const Case& c, Compiler& with) {
  const auto package = read_package_folder(fs::path(FORGE_SOURCE_DIR) / "tests/exploits/admission" / c.name);
  ASSERT_TRUE(package) << package.error().text();
  const auto image = Builder(with, {}).build(*package, toy_definition(), avx2());
  if (c.rule == "admitted") {
    EXPECT_TRUE(image) << said(image);
    return;
  }
  ASSERT_FALSE(image) << "admitted, though it should break " << c.rule;
  if (c.rule == "missing_entry") {  // a fault of the plan
    EXPECT_EQ(image.error().reason, Reason::plan_invalid) << said(image);
    EXPECT_NE(image.error().detail.find("scale"), std::string::npos) << said(image);
    return;
  }
  EXPECT_EQ(image.error().reason, Reason::not_admitted) << said(image);
  EXPECT_TRUE(image.error().detail.starts_with(c.rule + ": ")) << said(image);
}

TEST_P(AdmissionExploit, IsJudgedByItsRule) { expect_verdict(GetParam(), compiler()); }

INSTANTIATE_TEST_SUITE_P(All, AdmissionExploit, ::testing::ValuesIn(cases()), [](const auto& test) { return test.param.name; });

// The same with clang, where it is installed: what the compilers emit differs.
TEST(AdmissionWithClang, ControlsPassAndExploitsFail) {
  const fs::path clang = find_program("clang++");
  if (clang.empty()) GTEST_SKIP() << "no clang++ here";
  const auto other = make_cpu_compiler(clang);
  ASSERT_TRUE(other) << other.error().text();
  for (const Case& c : cases()) {
    const auto package = read_package_folder(fs::path(FORGE_SOURCE_DIR) / "tests/exploits/admission" / c.name);
    ASSERT_TRUE(package);
    const auto image = Builder(**other, {}).build(*package, toy_definition(), avx2());
    EXPECT_EQ(image.has_value(), c.rule == "admitted") << c.name << "\n" << said(image);
  }
}

TEST(Admission, EveryRuleHasAnExploit) {
  std::map<std::string, int> count;
  for (const Case& c : cases()) ++count[c.rule];
  for (const char* rule : {"constructor", "thread_local", "writable_state", "section_kind", "ifunc", "common", "import", "missing_entry",
                           "extra_export", "relocation", "instruction", "isa", "undecodable", "split_instruction"})
    EXPECT_GE(count[rule], 1) << rule;
  EXPECT_GE(count["admitted"], 5);
}

TEST(Admission, NamesTheVariableAndTheWayOut) {
  const auto image = build_toy(
      "#include \"forge_args.h\"\nstatic int my_counter;\nextern \"C\" void scale(const forge_args* a, const forge_block*) { a->y[0] = "
      "++my_counter; }\n");
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().detail.find("my_counter"), std::string::npos) << said(image);
  EXPECT_NE(image.error().detail.find("workspace"), std::string::npos) << said(image);
}

TEST(Admission, NotAnObject) {
  for (const char* bytes : {"", "x",
                            "\x7f"
                            "ELF"}) {
    const auto r = admit_cpu_object(bytes, LaunchPlan{});
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().rule, "elf_format");
  }
}

}  // namespace
}  // namespace forge
