// SPDX-License-Identifier: Apache-2.0
// The generated header is compiled, so that its own asserts check the layout against the compiler's.
#include <gtest/gtest.h>

#include "core/launch_plan.h"
#include "util/process.h"

namespace forge {
namespace {

Definition every_type() {
  Definition d;
  d.name = "every_type";
  d.axes = {{"M", false, 0}, {"K", true, 4096}, {"L", false, 0}};
  for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2, DType::f4_e2m1, DType::i64, DType::i32, DType::i16,
                  DType::i8, DType::boolean}) {
    d.inputs.push_back({.name = std::string("t_") + name(t), .dtype = t, .scalar = false, .shape = {"M", "K"}});
    if (bits(t) >= 8) d.inputs.push_back({.name = std::string("s_") + name(t), .dtype = t, .scalar = true, .shape = {}});
  }
  d.outputs = {{.name = "Y", .dtype = DType::bf16, .scalar = false, .shape = {"M"}}};
  return d;
}

LaunchPlan plan() {
  return *parse_launch_plan(
      "format = 1\ntarget = \"cpu:x86-64-avx2\"\n[[let]]\nname = \"tile\"\nvalue = 3\n[[workspace]]\nname = \"part\"\nbytes = 8\n"
      "[[launch]]\nentry = \"go\"\ngrid = 1\n[[launch]]\nentry = \"go\"\ngrid = 2\n[[launch]]\nentry = \"end\"\ngrid = 1\n",
      "launch.toml");
}

ProcessResult compile(const std::string& header, const std::string& source) {
  const TempDir dir = *TempDir::make("header");
  EXPECT_TRUE(write_file_atomic(dir.path() / "forge_args.h", header));
  EXPECT_TRUE(write_file_atomic(dir.path() / "k.cpp", source));
  ProcessOptions o;
  o.argv = {"g++", "-std=c++20", "-ffreestanding", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-c", "k.cpp", "-o", "k.o"};
  o.env = {"PATH=/usr/bin:/bin"};
  o.cwd = dir.path();
  return run_process(o).value();
}

TEST(ArgsHeader, CompilesAndAgreesWithTheLayout) {
  const Definition d = every_type();
  const TargetSpec cpu = *find_target("cpu:x86-64-avx2");
  ASSERT_TRUE(check_plan(plan(), d, cpu, "launch.toml"));
  const std::string header = make_args_header(plan(), d, cpu);
  const std::string good = R"(#include "forge_args.h"
static_assert(K == 4096);
static void helper(const forge_args* a, const forge_block* b) {
  a->Y[b->index] = a->t_bfloat16[a->M + a->L + a->tile + b->count + b->worker + b->workers];
  static_cast<float*>(a->part)[0] = a->s_float32 + a->t_float32[0];
}
void go(const forge_args* a, const forge_block* b) { helper(a, b); }
void end(const forge_args*, const forge_block*) {}
)";
  const ProcessResult fine = compile(header, good);
  EXPECT_EQ(fine.exit_code, 0) << fine.output << header;
  EXPECT_NE(
      compile(header, "#include \"forge_args.h\"\nextern \"C\" int go(const forge_args*, const forge_block*) { return 0; }\n").exit_code, 0)
      << "another signature";
  EXPECT_NE(
      compile(header,
              "#include \"forge_args.h\"\nvoid go(const forge_args* a, const forge_block*) { *const_cast<forge_args*>(a)->t_int32 = 1; }\n")
          .exit_code,
      0)
      << "inputs are const";
}

TEST(ArgsHeader, LayoutOrderAndIndices) {
  Definition d;
  d.name = "d";
  d.axes = {{"M", false, 0}, {"K", true, 4}, {"L", false, 0}};
  d.inputs = {
      {"a", DType::f32, false, {"M"}}, {"flag", DType::boolean, true, {}}, {"b", DType::f16, false, {"M"}}, {"half", DType::f16, true, {}}};
  d.outputs = {{"y", DType::f32, false, {"M"}}};
  const ArgLayout l = make_arg_layout(plan(), d);
  struct Row {
    ArgField::Kind kind;
    const char* name;
    int index;
    std::size_t offset, bytes;
  };
  using Kind = ArgField::Kind;
  const std::vector<Row> rows = {{Kind::tensor, "a", 0, 0, 8},     {Kind::scalar, "flag", 1, 8, 1}, {Kind::tensor, "b", 2, 16, 8},
                                 {Kind::scalar, "half", 3, 24, 2}, {Kind::tensor, "y", 4, 32, 8},   {Kind::workspace, "part", 0, 40, 8},
                                 {Kind::axis, "M", 0, 48, 4},      {Kind::axis, "L", 1, 52, 4},     {Kind::let, "tile", 0, 56, 4}};
  ASSERT_EQ(l.fields.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); i++) {
    EXPECT_EQ(l.fields[i].kind, rows[i].kind) << rows[i].name;
    EXPECT_EQ(l.fields[i].name, rows[i].name);
    EXPECT_EQ(l.fields[i].index, rows[i].index) << rows[i].name;
    EXPECT_EQ(l.fields[i].offset, rows[i].offset) << rows[i].name;
    EXPECT_EQ(l.fields[i].bytes, rows[i].bytes) << rows[i].name;
  }
  EXPECT_TRUE(l.fields[4].output);
  EXPECT_FALSE(l.fields[0].output);
  EXPECT_EQ(l.bytes, 64u);
  EXPECT_EQ(l.alignment, 8u);
}

TEST(ArgsHeader, CudaHasItsOwnTypesAndMapsFirst) {
  const LaunchPlan p = *parse_launch_plan(
      "format = 1\ntarget = \"cuda:sm_90a\"\n[[map]]\nname = \"x\"\ntensor = \"t_float16\"\ndims = [\"K\"]\nbox = [64]\n"
      "[[launch]]\nentry = \"go\"\ngrid = 1\nblock = 32\n",
      "launch.toml");
  const ArgLayout l = make_arg_layout(p, every_type());
  EXPECT_EQ(l.fields[0].name, "map_x");
  EXPECT_EQ(l.fields[0].bytes, 128u);
  EXPECT_EQ(l.fields[1].offset, 128u);
  EXPECT_EQ(l.alignment, 128u);
  EXPECT_EQ(l.bytes % 128, 0u);
  const std::string header = make_args_header(p, every_type(), *find_target("cuda:sm_90a"));
  for (const char* part : {"struct alignas(128) forge_tensormap", "  forge_tensormap map_x;", "  const __half* t_float16;",
                           "  __nv_bfloat16* Y;", "#include <cuda_fp16.h>", "constexpr int K = 4096;"})
    EXPECT_NE(header.find(part), std::string::npos) << part;
  EXPECT_EQ(header.find("forge_block"), std::string::npos);
}

}  // namespace
}  // namespace forge
