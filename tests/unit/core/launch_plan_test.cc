// SPDX-License-Identifier: Apache-2.0
#include "core/launch_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bad_input.h"

namespace forge {
namespace {

Definition row_sum() {
  return *parse_definition(R"JSON({"name": "row_sum", "op_type": "sum",
    "axes": {"M": {"type": "var"}, "K": {"type": "const", "value": 8192}},
    "inputs": {"X": {"shape": ["M", "K"], "dtype": "float32"}, "scale": {"shape": null, "dtype": "float16"}},
    "outputs": {"Y": {"shape": ["M"], "dtype": "float32"}},
    "reference": "def run(X, scale):\n  return X.sum(1) * scale\n"})JSON",
                           "definition.json");
}

const char* kGoodLaunchPlan = R"TOML(format = 1
target = "cpu:x86-64-avx512"
requires = ["M > 0"]

[[let]]
name = "slices"
value = "M >= sm_count ? 1 : ceil_div(sm_count, M)"

[[let]]
name = "chunk"
value = "K / slices"

[[workspace]]
name = "part"
bytes = "slices > 1 ? slices * M * 4 : 0"

[[workspace]]
name = "tickets"
bytes = 64
init = "clean"

[[launch]]
entry = "sum"
grid = "M * slices"
smem = "4 * chunk"

[[launch]]
entry = "combine"
when = "slices > 1"
grid = "min(M, resident)"
)TOML";

const char* kGpu = R"TOML(format = 1
target = "cuda:sm_90a"

[[workspace]]
name = "acc"
bytes = "M * 4"
init = "prepared"

[[map]]
name = "x"
tensor = "X"
dims = ["K", "M"]
strides = ["K"]
box = [32, 128]
swizzle = 128
l2 = 256

[[map]]
name = "acc"
tensor = "acc"
dtype = "f32"
offset = 4
dims = [4, 4, "M"]
im2col = { lower = [-1], upper = [1], channels = 4, pixels = 16 }

[[prepare]]
entry = "first"
grid = 1
block = 32

[[launch]]
entry = "sum"
grid = "align_up(min(M, resident), 2)"
block = 128
cluster = 2
cooperative = true

[[launch]]
entry = "again"
grid = 1
block = 128
pdl = true
)TOML";

Status check(const std::string& text, const std::string& target, const Definition& d) {
  FORGE_TRY_ASSIGN(const LaunchPlan plan, parse_launch_plan(text, "launch.toml"));
  return check_plan(plan, d, *find_target(target), "launch.toml");
}
Status check_cpu(const std::string& text) { return check(text, "cpu:x86-64-avx512", row_sum()); }
Status check_gpu(const std::string& text) { return check(text, "cuda:sm_90a", row_sum()); }

TEST(LaunchPlan, Reads) {
  const auto p = parse_launch_plan(kGoodLaunchPlan, "launch.toml");
  ASSERT_TRUE(p) << p.error().text();
  EXPECT_EQ(p->target, "cpu:x86-64-avx512");
  ASSERT_EQ(p->lets.size(), 2u);
  EXPECT_EQ(p->lets[1].name, "chunk");
  EXPECT_EQ(p->workspaces[0].init, WorkspaceInit::poison);
  EXPECT_EQ(p->workspaces[1].init, WorkspaceInit::clean);
  EXPECT_TRUE(p->launches[0].when.empty());
  EXPECT_FALSE(p->launches[0].block);
  EXPECT_EQ(p->launches[1].entry, "combine");
  const auto g = parse_launch_plan(kGpu, "launch.toml");
  ASSERT_TRUE(g) << g.error().text();
  EXPECT_EQ(g->maps[0].box, (std::vector<int>{32, 128}));
  EXPECT_EQ(g->maps[0].l2, 256);
  EXPECT_EQ(g->maps[1].im2col->lower, (std::vector<int>{-1}));
  EXPECT_EQ(g->launches[0].cluster, 2);
  EXPECT_EQ(g->prepare.size(), 1u);
}

TEST(LaunchPlan, RefusedOnACpu) {
  expect_refused(
      kGoodLaunchPlan,
      {
          {"format = 1", "format = 2", "format", "format 2", 1},
          {"target =", "traget =", "traget", "did you mean 'target'", 2},
          {"cpu:x86-64-avx512", "cpu:x86-64-avx2", "target", "the task's target is"},
          {"[\"M > 0\"]", "\"M > 0\"", "requires", "expected an array", 3},
          {"[\"M > 0\"]", "[\"M >\"]", "requires[0]", "missing at column 4", 3},
          {"[\"M > 0\"]", "[\"slices > 0\"]", "requires[0]", "requires is checked before the lets"},
          {"[\"M > 0\"]", "[\"Q > 0\"]", "requires[0]", "unknown name 'Q'"},
          {"name = \"slices\"", "name = \"M\"", "let[0].name", "taken already"},
          {"name = \"slices\"", "name = \"2x\"", "let[0].name", "no C identifier"},
          {"name = \"slices\"", "name = \"int\"", "let[0].name", "no C identifier"},
          {"name = \"slices\"", "name = \"sm_count\"", "let[0].name", "reserved"},
          {"name = \"slices\"", "", "let[0].name", "missing", 5},
          {"ceil_div(sm_count, M)", "ceil_div(resident, M)", "let[0].value", "in grid only"},
          {"ceil_div(sm_count, M)", "chunk", "let[0].value", "defined later"},
          {"ceil_div(sm_count, M)", "X", "let[0].value", "is a tensor"},
          {"ceil_div(sm_count, M)", "sm_cuont", "let[0].value", "did you mean 'sm_count'"},
          {"name = \"part\"", "name = \"Y\"", "workspace[0].name", "taken already"},
          {"init = \"clean\"", "init = \"cleen\"", "workspace[1].init", "did you mean 'clean'", 20},
          {"init = \"clean\"", "init = \"prepared\"", "workspace[1].init", "not available on a CPU"},
          {"bytes = 64", "bytes = 64.5", "workspace[1].bytes", "expected an expression", 19},
          {"entry = \"sum\"", "entry = \"sum.x\"", "launch[0].entry", "no C identifier"},
          {"entry = \"sum\"", "entry = \"memcpy\"", "launch[0].entry", "reserved"},
          {"entry = \"sum\"", "entry = \"part\"", "launch[0].entry", "taken already"},
          {"grid = \"M * slices\"", "", "launch[0].grid", "missing", 22},
          {"grid = \"M * slices\"", "grid = [1, 2]", "launch[0].grid", "expected an expression (integer or string), found an array", 24},
          {"smem = \"4 * chunk\"", "smem = \"resident\"", "launch[0].smem", "in grid only"},
          {"smem = \"4 * chunk\"", "block = 128", "launch[0].block", "is for GPUs"},
          {"smem = \"4 * chunk\"", "cluster = 2", "launch[0].cluster", "is for GPUs"},
          {"smem = \"4 * chunk\"", "cluster = 9", "launch[0].cluster", "between 1 and 8", 25},
          {"smem = \"4 * chunk\"", "cooperative = true", "launch[0].cooperative", "is for GPUs"},
          {"when = \"slices > 1\"", "pdl = true", "launch[1].pdl", "is for GPUs"},
          {"[[launch]]\nentry = \"sum\"", "[[prepare]]\nentry = \"sum\"", "prepare", "not available on a CPU"},
          {"[[launch]]\nentry = \"sum\"", "[[map]]\nname = \"x\"\ntensor = \"X\"\ndims = [1]\nbox = [1]\n[[launch]]\nentry = \"sum\"",
           "map[0]", "is for GPUs"},
      },
      check_cpu);
  const auto none = parse_launch_plan("format = 1\ntarget = \"cpu:x86-64-avx2\"\n", "launch.toml");
  EXPECT_EQ(none.error().field, "launch");
}

TEST(LaunchPlan, MoreLaunchesThanAMessageHoldsAreRefusedBeforeTheBuild) {
  std::string text = "format = 1\ntarget = \"cpu:x86-64-avx512\"\n";
  for (std::size_t i = 0; i < kMaxLaunches; ++i) text += fmt::format("[[launch]]\nentry = \"k{}\"\ngrid = 1\n", i);
  const auto most = parse_launch_plan(text, "launch.toml");
  ASSERT_TRUE(most) << most.error().text();
  EXPECT_TRUE(check_plan(*most, row_sum(), *find_target("cpu:x86-64-avx512"), "launch.toml"));
  const auto more = parse_launch_plan(text + "[[launch]]\nentry = \"last\"\ngrid = 1\n", "launch.toml");
  ASSERT_TRUE(more);
  const auto refused = check_plan(*more, row_sum(), *find_target("cpu:x86-64-avx512"), "launch.toml");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "launch");
  EXPECT_NE(refused.error().message.find("at most 64"), std::string::npos) << refused.error().message;
}

TEST(LaunchPlan, RefusedOnAGpu) {
  expect_refused(kGpu,
                 {
                     {"block = 128\ncluster", "cluster", "launch[0].block", "missing"},
                     {"block = 128\ncluster", "block = 2048\ncluster", "launch[0].block", "between 1 and 1024"},
                     {"cooperative = true", "pdl = true", "launch[0].pdl", "first launch"},
                     {"tensor = \"X\"", "tensor = \"Z\"", "map[0].tensor", "no input, output or workspace"},
                     {"tensor = \"X\"", "tensor = \"scale\"", "map[0].tensor", "is a scalar"},
                     {"tensor = \"X\"", "tensor = \"X\"\ndtype = \"f32\"", "map[0].dtype", "has its own type"},
                     {"dtype = \"f32\"", "", "map[1].dtype", "names its type"},
                     {"[\"K\", \"M\"]", "[]", "map[0].dims", "between 1 and 5"},
                     {"[\"K\", \"M\"]", "[\"K\", \"Q\"]", "map[0].dims[1]", "unknown name"},
                     {"[\"K\"]", "[\"K\", \"K\"]", "map[0].strides", "1 dimensions beyond"},
                     {"[32, 128]", "[32]", "map[0].box", "1 given for 2"},
                     {"[32, 128]", "[32, 512]", "map[0].box[1]", "between 1 and 256"},
                     {"[32, 128]", "[0, 128]", "map[0].box[0]", "between 1 and 256"},
                     {"[32, 128]", "[30, 128]", "map[0].box[0]", "120 bytes, no multiple of 16"},
                     {"[32, 128]", "[64, 128]", "map[0].box[0]", "256 bytes, more than the swizzle spans (128)"},
                     {"swizzle = 128", "swizzle = 16", "map[0].swizzle", "not one of"},
                     {"l2 = 256", "l2 = 16", "map[0].l2", "not one of"},
                     {"lower = [-1]", "lower = [-1, 0]", "map[1].im2col.lower", "2 given for 1"},
                     {"channels = 4", "channels = 0", "map[1].im2col.channels", "between 1"},
                     {"channels = 4, ", "", "map[1].im2col.channels", "missing"},
                     {"channels = 4", "channels = 3", "map[1].im2col.channels", "12 bytes, no multiple of 16"},
                     {"channels = 4", "channels = 260", "map[1].im2col.channels", "between 1 and 256"},
                     {"pixels = 16", "pixels = 1025", "map[1].im2col.pixels", "between 1 and 1024"},
                     {"lower = [-1]", "lower = [-32769]", "map[1].im2col.lower", "between -32768 and 32767"},
                     {"upper = [1]", "upper = [32768]", "map[1].im2col.upper", "between -32768 and 32767"},
                     {"[4, 4, \"M\"]", "[4, \"M\"]", "map[1].im2col", "needs 3 to 5"},
                     {"channels = 4, pixels = 16 }", "channels = 4, pixels = 16 }\nbox = [4]", "map[1].box", "stands beside"},
                     {"channels = 4, pixels = 16 }", "channels = 4, pixels = 16 }\nswizzle = 12", "map[1].swizzle", "not one of"},
                     {"cluster = 2", "cluster = 0", "launch[0].cluster", "between 1 and 8"},
                     {"cluster = 2", "cluster = 16", "launch[0].cluster", "between 1 and 8"},
                     {"name = \"acc\"\ntensor", "name = \"x\"\ntensor", "map[1].name", "taken already"},
                     {"init = \"prepared\"", "", "prepare", "no workspace with init"},
                     {"[[prepare]]\nentry = \"first\"\ngrid = 1\nblock = 32", "", "workspace[0].init", "nothing prepares it"},
                 },
                 check_gpu);
  EXPECT_TRUE(check_gpu(kGpu));
  std::string blackwell = kGpu;
  blackwell.replace(blackwell.find("sm_90a"), 6, "sm_100a");
  EXPECT_TRUE(check(blackwell, "cuda:sm_100a", row_sum()));
  EXPECT_EQ(check(blackwell, "cuda:sm_90a", row_sum()).error().field, "target");
  Definition packed = row_sum();
  packed.inputs[0].dtype = DType::f4_e2m1;
  EXPECT_EQ(check(kGpu, "cuda:sm_90a", packed).error().field, "map[0].tensor");
}

TEST(LaunchPlan, DefinitionsThatNoKernelCanHave) {
  Definition d = row_sum();
  d.outputs[0].name = "new";
  EXPECT_EQ(check(kGoodLaunchPlan, "cpu:x86-64-avx512", d).error().field, "outputs.new");
  d = row_sum();
  d.outputs[0].scalar = true;
  EXPECT_EQ(check(kGoodLaunchPlan, "cpu:x86-64-avx512", d).error().field, "outputs.Y");
  d = row_sum();
  d.outputs.clear();
  EXPECT_EQ(check(kGoodLaunchPlan, "cpu:x86-64-avx512", d).error().field, "outputs");
  d = row_sum();
  d.axes[1].value = std::int64_t{1} << 31;
  EXPECT_EQ(check(kGoodLaunchPlan, "cpu:x86-64-avx512", d).error().field, "axes.K");
  d = row_sum();
  d.inputs[0].name = "M";
  EXPECT_EQ(check(kGoodLaunchPlan, "cpu:x86-64-avx512", d).error().field, "inputs.M");
}

TEST(LaunchPlan, ArgumentStructOfAGpuIsBounded) {
  std::string text = "format = 1\ntarget = \"cuda:sm_90a\"\n[[launch]]\nentry = \"e\"\ngrid = 1\nblock = 32\n";
  const auto with_maps = [&](int n) {
    std::string t = text;
    for (int i = 0; i < n; i++) t += "[[map]]\nname = \"m" + std::to_string(i) + "\"\ntensor = \"X\"\ndims = [\"K\"]\nbox = [64]\n";
    return check_gpu(t);
  };
  EXPECT_TRUE(with_maps(30));
  EXPECT_FALSE(with_maps(31));
}

TEST(LaunchPlan, Concrete) {
  const LaunchPlan plan = *parse_launch_plan(kGoodLaunchPlan, "launch.toml");
  auto c = make_concrete(plan, {{"M", 2}, {"K", 8192}}, 8, 8);
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(c->lets, (std::vector<std::pair<std::string, std::int64_t>>{{"slices", 4}, {"chunk", 2048}}));
  ASSERT_EQ(c->workspaces.size(), 2u);
  EXPECT_EQ(c->workspaces[0].bytes, 32);
  EXPECT_EQ(c->workspaces[1].init, WorkspaceInit::clean);
  ASSERT_EQ(c->launches.size(), 2u);
  EXPECT_EQ(c->launches[0].grid, 8);
  EXPECT_EQ(c->launches[0].scratch_bytes, 8192);
  EXPECT_EQ(c->launches[1].grid, 2);
  EXPECT_EQ(c->launches[1].scratch_bytes, 0);

  c = make_concrete(plan, {{"M", 100}, {"K", 8192}}, 8, 8);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->launches.size(), 1u) << "`when` is false";
  EXPECT_EQ(c->workspaces[0].bytes, 0);

  const auto outside = make_concrete(plan, {{"M", 0}, {"K", 8192}}, 8, 8);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, Code::unsupported);
  EXPECT_EQ(outside.error().field, "requires[0]");
  EXPECT_NE(outside.error().message.find("M > 0"), std::string::npos);
}

TEST(LaunchPlan, ConcreteErrorsNameTheField) {
  const auto fails = [](const std::string& from, const std::string& to, const std::string& field, const std::string& says) {
    const LaunchPlan plan = *parse_launch_plan(replaced(kGoodLaunchPlan, from, to), "launch.toml");
    const auto c = make_concrete(plan, {{"M", 2}, {"K", 8192}}, 8, 8);
    ASSERT_FALSE(c) << to;
    EXPECT_EQ(c.error().code, Code::bad_input);
    EXPECT_EQ(c.error().field, field);
    EXPECT_NE(c.error().message.find(says), std::string::npos) << c.error().message;
  };
  fails("K / slices", "K / (slices - 4)", "let[1].value", "right side of /");
  fails("K / slices", "K * K * K", "let[1].value", "not between");
  fails("slices * M * 4 : 0", "0 - 4 : 0", "workspace[0].bytes", "not between 0");
  fails("M * slices", "0 - M", "launch[0].grid", "not between 0");
  fails("M * slices", "M * 4000000000", "launch[0].grid", "not between 0");
  fails("4 * chunk", "0 - 1", "launch[0].smem", "not between 0");
  fails("\"slices > 1\"", "\"M / (M - 2)\"", "launch[1].when", "right side of /");
  fails("[\"M > 0\"]", "[\"M / 0 > 0\"]", "requires[0]", "right side of /");

  const LaunchPlan plan = *parse_launch_plan(replaced(kGoodLaunchPlan, "M * slices", "0"), "launch.toml");
  EXPECT_EQ(make_concrete(plan, {{"M", 2}, {"K", 8192}}, 8, 8)->launches.size(), 1u) << "grid 0 skips";
  EXPECT_EQ(make_concrete(plan, {{"M", std::int64_t{1} << 31}, {"K", 8192}}, 8, 8).error().field, "axes.M");
}

}  // namespace
}  // namespace forge
