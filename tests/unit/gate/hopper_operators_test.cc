// SPDX-License-Identifier: Apache-2.0
// The operators for Hopper on the CPU's judge, with their constant axes cut where a CPU oracle would take minutes: the battery of wrong
// kernels must be rejected, and so must a product that forgets a tile of its inner axis. What the tolerance depends on stays whole.
#include <gtest/gtest.h>

#include "forge/fill.h"
#include "gate/gate.h"
#include "gate/oracle_plugin.h"
#include "util/fs.h"

namespace forge {
namespace {

struct Cut {
  const char *op, *axis, *from, *to;  // of the definition's text; from empty: as it is
};

Paths cut_paths(const TempDir& home, const Cut& cut) {
  const fs::path source = fs::path(FORGE_SOURCE_DIR) / "operators" / cut.op, to = home.path() / "operators" / cut.op;
  fs::create_directories(to);
  std::string text = *read_file(source / "definition.json");
  if (*cut.from) {
    const auto axis = text.find(std::string("\"") + cut.axis + "\": {"), value = text.find(cut.from, axis);
    EXPECT_NE(value, std::string::npos);
    text.replace(value, std::string(cut.from).size(), cut.to);
  }
  EXPECT_TRUE(write_file_atomic(to / "definition.json", text));
  EXPECT_TRUE(write_file_atomic(to / "task.toml", *read_file(source / "task.toml")));
  return {.data = home.path(), .plugins = fs::path(FORGE_BINARY_DIR) / "plugins", .home = home.path()};
}

constexpr Cut kGemm{"gemm_f16", "N", "8192", "32"};
constexpr Cut kCuts[] = {kGemm,
                         {"conv2d_fwd_f16", "filters", "256", "16"},
                         {"topk_f32", "", "", ""},
                         {"rmsnorm_bf16_h2048", "", "", ""},
                         {"rmsnorm_bf16_h7168", "", "", ""},
                         {"fused_add_rmsnorm_bf16_h7168", "", "", ""}};

TEST(HopperOperators, TheBatteryIsRejected) {
  for (const Cut& cut : kCuts) {
    if (!fs::exists(fs::path(FORGE_BINARY_DIR) / "plugins" / cut.op / "oracle.so"))
      GTEST_SKIP() << "the oracle of " << cut.op << " is not built";
    auto home = TempDir::make();
    ASSERT_TRUE(home);
    const auto lines = admit_task(cut_paths(*home, cut), cut.op);
    ASSERT_TRUE(lines) << cut.op << ": " << lines.error().text();
    for (const AdmissionLine& line : *lines) EXPECT_TRUE(line.holds()) << cut.op << ": " << line.attack << ": " << line.reason;
  }
}

// Half floats survive the way to float32 and back; rounding is to nearest even, into the subnormal range and to infinity.
TEST(HopperOperators, HalfFloats) {
  using fill::f16_to_float, fill::float_to_f16;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((half & 0x7fff) > 0x7c00) continue;  // NaN
    ASSERT_EQ(float_to_f16(f16_to_float(half)), half);
  }
  EXPECT_EQ(f16_to_float(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_float(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(float_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_f16(1 + 0x1p-11f), 0x3c00);      // a tie, to even
  EXPECT_EQ(float_to_f16(1 + 3 * 0x1p-11f), 0x3c02);  // a tie, to even
  EXPECT_EQ(float_to_f16(0x1p-25f), 0x0000);          // a tie, to even
  EXPECT_EQ(float_to_f16(-0x1.8p-25f), 0x8001);
}

// |A||B| times the tolerance must stay below what a forgotten tile of 64 costs, with room.
TEST(HopperOperators, AForgottenTileIsFarOutsideTheBound) {
  auto home = TempDir::make();
  ASSERT_TRUE(home);
  const Paths paths = cut_paths(*home, kGemm);
  const auto definition = parse_definition(*read_file(paths.data / "operators/gemm_f16/definition.json"), "definition.json");
  ASSERT_TRUE(definition);
  const auto task = parse_task_file(*read_file(paths.data / "operators/gemm_f16/task.toml"), "task.toml", *definition);
  ASSERT_TRUE(task) << task.error().text();
  const JudgeRule& rule = task->judges[0];
  fill::Source source(5);
  int caught = 0;
  for (int trial = 0; trial < 100; ++trial) {
    double sum = 0, magnitude = 0, tile = 0;
    for (int k = 0; k < 8192; ++k) {
      const double product = source.normal() * source.normal();
      sum += product, magnitude += std::fabs(product);
      if (k >= 8128) tile += product;
    }
    caught += std::fabs(tile) > rule.absolute + rule.relative * std::fabs(sum) + rule.tolerance * magnitude;
  }
  EXPECT_GE(caught, 90);
}

}  // namespace
}  // namespace forge
