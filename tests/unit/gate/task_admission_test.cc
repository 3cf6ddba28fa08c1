// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "gate/gate.h"
#include "toy_operator.h"

namespace forge {
namespace {

TEST(TaskAdmission, AFitTaskRejectsEveryAttackAndAcceptsTheOracle) {
  const auto lines = admit_task(toy_paths(), "toy_affine");
  ASSERT_TRUE(lines) << lines.error().text();
  int controls = 0, attacks = 0;
  for (const AdmissionLine& line : *lines) {
    EXPECT_TRUE(line.holds()) << line.attack << ": " << line.reason;
    EXPECT_FALSE(line.reason.empty());
    ++(line.must_reject ? attacks : controls);
  }
  EXPECT_EQ(controls, 5);
  EXPECT_GE(attacks, 25);
}

// With a tolerance of 10 % of the scale, lower precision must come out as accepted: the battery is what finds a loose judge.
TEST(TaskAdmission, ALooseToleranceIsFound) {
  auto folder = TempDir::make();
  ASSERT_TRUE(folder);
  const Paths paths{.data = folder->path(), .plugins = toy_paths().plugins, .home = folder->path()};
  fs::create_directories(folder->path() / "operators");
  fs::copy(toy_paths().data / "operators/toy_affine", folder->path() / "operators/toy_affine");
  const fs::path file = folder->path() / "operators/toy_affine/task.toml";
  auto text = read_file(file);
  ASSERT_TRUE(text);
  const auto at = text->find("tolerance = 1e-6");
  ASSERT_NE(at, std::string::npos);
  text->replace(at, 16, "tolerance = 0.10");
  ASSERT_TRUE(write_file_atomic(file, *text));
  const auto lines = admit_task(paths, "toy_affine");
  ASSERT_TRUE(lines) << lines.error().text();
  std::set<std::string> accepted;
  for (const AdmissionLine& line : *lines)
    if (!line.holds()) accepted.insert(line.attack);
  // 10 bits in the inputs are still seen in `top`, which is exact; 7 bits are all that it has.
  EXPECT_EQ(accepted, (std::set<std::string>{"y: rounded to 10 bits of mantissa", "y: rounded to 7 bits of mantissa",
                                             "inputs rounded to 7 bits of mantissa"}));
}

}  // namespace
}  // namespace forge
