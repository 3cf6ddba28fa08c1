// SPDX-License-Identifier: Apache-2.0
// Tensor maps and GPU launches in numbers: what a driver would refuse, or what would fault, is refused here with its field.
#include <gtest/gtest.h>

#include "bad_input.h"
#include "core/launch_plan.h"

namespace forge {
namespace {

const Definition& operands() {
  static const Definition d = *parse_definition(R"JSON({"name": "conv", "op_type": "conv",
    "axes": {"M": {"type": "var"}, "N": {"type": "var"}, "W": {"type": "var"}, "K": {"type": "const", "value": 64}},
    "inputs": {"A": {"shape": ["M", "K"], "dtype": "float16"}, "Q": {"shape": ["M", "K"], "dtype": "float8_e4m3fn"},
               "X": {"shape": ["N", "W", "W", "K"], "dtype": "float16"}, "s": {"shape": null, "dtype": "float32"}},
    "outputs": {"C": {"shape": ["M"], "dtype": "float32"}}, "reference": "def run(A, Q, X, s):\n  return A\n"})JSON",
                                                "definition.json");
  return d;
}

const char* kPlan = R"TOML(format = 1
target = "cuda:sm_90a"

[[let]]
name = "part_bytes"
value = "M * 64 * 4"

[[workspace]]
name = "part"
bytes = "part_bytes"

[[map]]
name = "a"
tensor = "A"
dims = ["K", "M"]
box = [64, 128]
swizzle = 128
l2 = 256

[[map]]
name = "q"
tensor = "Q"
offset = 32
dims = [32, "M"]
strides = ["K"]
box = [32, 8]
swizzle = 32

[[map]]
name = "x"
tensor = "X"
dims = ["K", "W", "W", "N"]
im2col = { lower = [-1, -1], upper = [-1, -1], channels = 64, pixels = 128 }
swizzle = 128

[[map]]
name = "p"
tensor = "part"
dtype = "f32"
dims = [64, "M"]
box = [4, 16]

[[launch]]
entry = "go"
grid = "min(M, resident)"
block = 256
smem = "1024 * W"

[[launch]]
entry = "wait"
grid = "2 * M"
block = 128
cluster = 2
cooperative = true
)TOML";

const AxisValues kAxes = {{"M", 40}, {"N", 2}, {"W", 7}, {"K", 64}};

Result<ConcretePlan> numbers(const std::string& text, const AxisValues& axes = kAxes, std::int64_t resident = 132) {
  FORGE_TRY_ASSIGN(const LaunchPlan plan, parse_launch_plan(text, "launch.toml"));
  FORGE_TRY(check_plan(plan, operands(), *find_target(plan.target), "launch.toml"));
  return make_concrete(plan, operands(), axes, 132, [&](const LaunchSpec&, std::int64_t) -> Result<std::int64_t> { return resident; });
}

TEST(ConcreteMap, InNumbers) {
  for (const char* target : {"cuda:sm_90a", "cuda:sm_100a"}) {
    const auto plan = numbers(replaced(kPlan, "cuda:sm_90a", target));
    ASSERT_TRUE(plan) << plan.error().text();
    ASSERT_EQ(plan->maps.size(), 4u);
    const ConcreteMap& a = plan->maps[0];
    EXPECT_EQ(a.name, "a");
    EXPECT_FALSE(a.in_workspace);
    EXPECT_EQ(a.index, 0);
    EXPECT_EQ(a.dtype, DType::f16);
    EXPECT_EQ(a.dims, (std::vector<std::int64_t>{64, 40}));
    EXPECT_EQ(a.stride_bytes, (std::vector<std::int64_t>{128}));
    EXPECT_EQ(a.box, (std::vector<int>{64, 128}));
    EXPECT_EQ(a.swizzle, 128);
    EXPECT_EQ(a.l2, 256);
    const ConcreteMap& q = plan->maps[1];
    EXPECT_EQ(q.index, 1);
    EXPECT_EQ(q.dtype, DType::u8) << "copies know no 8-bit floats";
    EXPECT_EQ(q.offset_bytes, 32);
    EXPECT_EQ(q.stride_bytes, (std::vector<std::int64_t>{64}));
    const ConcreteMap& x = plan->maps[2];
    EXPECT_EQ(x.stride_bytes, (std::vector<std::int64_t>{128, 128 * 7, 128 * 49}));
    ASSERT_TRUE(x.im2col);
    EXPECT_EQ(x.im2col->upper, (std::vector<int>{-1, -1}));
    const ConcreteMap& p = plan->maps[3];
    EXPECT_TRUE(p.in_workspace);
    EXPECT_EQ(p.index, 0);
    EXPECT_EQ(p.dtype, DType::f32);
    EXPECT_EQ(p.l2, 128);
    ASSERT_EQ(plan->launches.size(), 2u);
    EXPECT_EQ(plan->launches[0].scratch_bytes, 7168);
    EXPECT_EQ(plan->launches[0].block, 256);
    EXPECT_EQ(plan->launches[1].cluster, 2);
    EXPECT_TRUE(plan->launches[1].cooperative);
  }
}

TEST(ConcreteMap, RefusedWithTheField) {
  expect_refused(
      kPlan,
      {
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", \"M + 1\"]", "map[0].dims", "reaches to byte 5248 of 'A', which has 5120"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", 0]", "map[0].dims[1]", "is 0, not between 1"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", \"M - 41\"]", "map[0].dims[1]", "is -1, not between 1"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", 4294967297]", "map[0].dims[1]", "not between 1 and 4294967296"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", \"M / (M - 40)\"]", "map[0].dims[1]", "right side of /"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K - 4\", \"M\"]", "map[0].dims", "120 bytes, no multiple of 16"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", \"M\"]\noffset = 4", "map[0].offset", "8 bytes, no multiple of 16"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", \"M\"]\noffset = 64", "map[0].dims", "reaches to byte 5248"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", \"M\"]\noffset = -8", "map[0].offset", "is -8, not between 0"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", \"M\"]\nstrides = [\"K + 1\"]", "map[0].strides[0]", "130 bytes, no multiple of 16"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", \"M\"]\nstrides = [0]", "map[0].strides[0]", "not between 1"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", \"M\"]\nstrides = [549755813888]", "map[0].strides[0]", "not between 1"},
          {"dims = [\"K\", \"M\"]", "dims = [\"K\", 4294967296]\nstrides = [549755813880]", "map[0].dims", "more than 2^46"},
          {"dims = [\"K\", \"M\"]", "dims = [4294967296, 4294967296]", "map[0].dims", "more than 2^46"},
          {"box = [64, 128]", "box = [128, 128]", "map[0].box[0]", "more than the swizzle spans"},
          {"upper = [-1, -1]", "upper = [-8, -1]", "map[2].im2col.upper", "leaves no pixel of dimension 1"},
          {"lower = [-1, -1]", "lower = [-129, -1]", "map[2].im2col.lower", "-129 is not between -128 and 127"},
          {"dims = [\"K\", \"W\", \"W\", \"N\"]", "dims = [\"K\", \"W\", \"W\", \"N + 1\"]", "map[2].dims", "reaches to byte"},
          {"bytes = \"part_bytes\"", "bytes = \"part_bytes - 4\"", "map[3].dims", "of 'part', which has 10236"},
          {"bytes = \"part_bytes\"", "bytes = 0", "map[3].dims", "of 'part', which has 0"},
          {"smem = \"1024 * W\"", "smem = \"227 * 1024 + 1\"", "launch[0].smem", "more than a block of cuda:sm_90a may have (232448)"},
          {"grid = \"2 * M\"", "grid = \"2 * M + 1\"", "launch[1].grid", "no multiple of cluster 2"},
          {"grid = \"2 * M\"", "grid = \"4 * M\"", "launch[1].grid", "160 blocks wait for each other, but only 132 fit"},
      },
      [](const std::string& text) { return numbers(text); });
  EXPECT_TRUE(numbers(replaced(kPlan, "1024 * W", "227 * 1024")));
  const auto none_fits = numbers(kPlan, kAxes, 0);
  ASSERT_FALSE(none_fits);
  EXPECT_EQ(none_fits.error().field, "launch[0].smem");
}

// What the arithmetic would overflow on must be refused too, whatever the numbers.
TEST(ConcreteMap, ExtremeNumbersAreRefusedNotMultiplied) {
  for (const char* dim : {"4294967296", "9223372036854775807", "2147483647 * 2147483647"})
    for (const char* strides :
         {"", "strides = [549755813880, 549755813880, 549755813880, 549755813880]\n", "strides = [9223372036854775807, 8, 8, 8]\n"}) {
      std::string text = replaced(kPlan, "dims = [\"K\", \"M\"]\nbox = [64, 128]", "dims = [64, D, D, D, D]\nS_box = [64, 1, 1, 1, 1]");
      for (std::size_t at = text.find("D,"); at != std::string::npos; at = text.find("D,"))
        text.replace(at, 1, std::string("\"") + dim + "\"");
      text = replaced(replaced(text, "D]", std::string("\"") + dim + "\"]"), "S_", strides);
      const auto plan = numbers(text);
      ASSERT_FALSE(plan) << text;
      EXPECT_TRUE(plan.error().field.starts_with("map[0]")) << plan.error().text();
    }
}

}  // namespace
}  // namespace forge
