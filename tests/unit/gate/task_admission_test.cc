// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "gate/gate.h"
#include "toy_operator.h"
#include "util/progress.h"

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
  EXPECT_EQ(controls, 8);  // a generator or a symmetry each
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

// The attacks that a task lets through, in the order played.
std::vector<std::string> let_through(const Paths& paths, const std::string& name) {
  const auto lines = admit_task(paths, name);
  EXPECT_TRUE(lines) << lines.error().text();
  std::vector<std::string> out;
  for (const AdmissionLine& line : *lines)
    if (!line.holds()) out.push_back(line.attack);
  return out;
}

const std::string k_symmetries = R"(symmetry = [{ kind = "permute", axis = "rows" }, { kind = "permute", axis = "columns" },
  { kind = "negate", axis = "rows", tensors = ["x", "y"] }]
)";
const std::string k_normal_alpha = R"(generator = [{ name = "normal", kind = "normal", offset = { alpha = 2.0 } }]
)";

TEST(TaskAdmission, TrueSymmetriesHold) {
  const ScaledToy toy(k_normal_alpha + k_symmetries);
  EXPECT_EQ(let_through(toy.paths, "scaled"), std::vector<std::string>{});
}

// A conversion is a copy of its input: the right answer, bit for bit, is no attack. Of y = alpha x a copy is rejected.
TEST(TaskAdmission, ARightAnswerIsNoAttack) {
  const ScaledToy toy(k_normal_alpha, "", "x[i]");
  const auto lines = admit_task(toy.paths, "scaled");
  ASSERT_TRUE(lines) << lines.error().text();
  int copies = 0;
  for (const AdmissionLine& line : *lines) {
    EXPECT_TRUE(line.holds()) << line.attack << ": " << line.reason;
    if (line.attack != "y: a copy of x") continue;
    ++copies;
    EXPECT_FALSE(line.must_reject);
    EXPECT_TRUE(line.reason.starts_with("no attack here")) << line.reason;
  }
  EXPECT_EQ(copies, 1);
}

TEST(TaskAdmission, StopsBetweenTwoChecks) {
  request_stop();
  const auto lines = admit_task(toy_paths(), "toy_affine");
  reset_stop();
  ASSERT_FALSE(lines);
  EXPECT_EQ(lines.error().code, Code::interrupted);
}

// y = alpha |x|: the sign of x does not reach y.
TEST(TaskAdmission, AFalseNegationIsFound) {
  const ScaledToy toy(k_normal_alpha + k_symmetries, "", "*alpha * std::fabs(x[i])");
  EXPECT_EQ(let_through(toy.paths, "scaled"), std::vector<std::string>{"symmetry: negate along rows"});
}

// y depends on the column's number.
TEST(TaskAdmission, AFalsePermutationIsFound) {
  const ScaledToy toy(k_normal_alpha + k_symmetries, "", "*alpha * x[i] * (i % 64 + 1)");
  EXPECT_EQ(let_through(toy.paths, "scaled"), std::vector<std::string>{"symmetry: permute along columns"});
}

TEST(TaskAdmission, AGeneratorThatAnswersZerosIsFound) {
  const ScaledToy toy(R"(generator = [{ name = "normal", kind = "normal", offset = { alpha = 2.0 } },
    { name = "wide", kind = "heavy_tailed", offset = { alpha = 0.0 } }, { name = "wider", kind = "heavy_tailed", offset = { alpha = 2.0 } }]
)");
  EXPECT_EQ(let_through(toy.paths, "scaled"),
            (std::vector<std::string>{"zeros in every output (wide)", "its mean everywhere in every output (wide)"}));
}

// One variant may give zeros, not all of them.
TEST(TaskAdmission, AdversarialContentThatAnswersZerosIsFound) {
  const std::string task = R"(generator = [{ name = "normal", kind = "normal", offset = { alpha = 2.0 } },
    { name = "mean", kind = "adversarial" }]
)";
  EXPECT_EQ(let_through(ScaledToy(task, "*alpha = variant;").paths, "scaled"), std::vector<std::string>{});
  EXPECT_EQ(let_through(ScaledToy(task, "*alpha = 0;").paths, "scaled"),
            (std::vector<std::string>{"zeros in every output (mean)", "its mean everywhere in every output (mean)"}));
}

}  // namespace
}  // namespace forge
