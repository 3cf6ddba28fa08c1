// SPDX-License-Identifier: Apache-2.0
// Cubins that nvcc makes here: honest ones are admitted, others are refused by name. Skipped where there is no nvcc.
#include <gtest/gtest.h>

#include "build/build.h"
#include "build/sass.h"

namespace forge {
namespace {

constexpr const char* kDefinition = R"({"name": "scale", "op_type": "scale", "axes": {"n": {"type": "var"}},
  "inputs": {"x": {"shape": ["n"], "dtype": "float32"}}, "outputs": {"y": {"shape": ["n"], "dtype": "float32"}}, "reference": "def run(x): return x"})";
constexpr const char* kPlan = R"toml(format = 1
target = "cuda:sm_90a"

[[launch]]
entry = "scale"
grid = "ceil_div(n, 128)"
block = 128
)toml";
constexpr const char* kHead = "#include \"forge_args.h\"\n";
constexpr const char* kIndex = "  const int i = blockIdx.x * 128 + threadIdx.x;\n  if (i >= p.n) return;\n";

std::string kernel(const std::string& before, const std::string& body) {
  return std::string(kHead) + before +
         "extern \"C\" __global__ void __launch_bounds__(128) scale(const __grid_constant__ forge_args p) {\n" + kIndex + body + "}\n";
}

class Cubin : public ::testing::Test {
 protected:
  void SetUp() override {
    auto found = find_cuda_compiler();
    if (!found) GTEST_SKIP() << found.error().text();
    compiler = std::move(*found);
    auto parsed = parse_definition(kDefinition, "definition.json");
    ASSERT_TRUE(parsed) << parsed.error().text();
    definition = *parsed;
  }
  tl::expected<Image, BuildFailure> build(const std::string& source, const std::string& plan = kPlan) {
    KernelPackage p{.source_name = "kernel.cu", .source = source, .plan_text = plan, .origin = "test"};
    return Builder(*compiler, {}).build(p, definition, *find_target("cuda:sm_90a"));
  }
  void refused(const std::string& source, const std::string& rule, const std::string& word) {
    const auto image = build(source);
    ASSERT_FALSE(image) << source;
    EXPECT_EQ(image.error().detail.substr(0, rule.size()), rule) << image.error().detail << image.error().log;
    EXPECT_NE(image.error().detail.find(word), std::string::npos) << image.error().detail;
  }
  std::unique_ptr<Compiler> compiler;
  Definition definition;
};

TEST_F(Cubin, HonestOnesAreAdmittedWithTheirResources) {
  const auto image = build(kernel("__constant__ float table[4] = {1, 2, 3, 4};\n",
                                  "  __shared__ float s[128];\n  s[threadIdx.x] = p.x[i];\n  __syncthreads();\n"
                                  "  p.y[i] = __sinf(s[threadIdx.x ^ 1]) * table[i & 3];\n"));
  ASSERT_TRUE(image) << image.error().detail << image.error().log;
  ASSERT_EQ(image->resources.size(), 1u);
  EXPECT_EQ(image->resources[0].entry, "scale");
  EXPECT_GT(image->resources[0].registers, 0);
  EXPECT_GE(image->resources[0].static_shared, 512);
  EXPECT_EQ(image->resources[0].max_threads, 128);
}

TEST_F(Cubin, WhatKeepsStateOrCallsOutIsRefused) {
  refused(kernel("__device__ int count;\n", "  p.y[i] = float(atomicAdd(&count, 1));\n"), "section", "workspace");
  refused(kernel("__device__ int count = 3;\n", "  p.y[i] = float(atomicAdd(&count, 1));\n"), "section", "__constant__");
  refused(kernel("__managed__ int count;\n", "  p.y[i] = float(atomicAdd(&count, 1));\n"), "", "");
  refused(kernel("#include <cstdio>\n", "  printf(\"%d\", i);\n  p.y[i] = 0;\n"), "undefined", "vprintf");
  refused(kernel("", "  float* q = (float*)malloc(4);\n  *q = p.x[i];\n  p.y[i] = *q;\n"), "undefined", "malloc");
  refused(kernel("#include <cassert>\n", "  assert(p.x[i] > 0);\n  p.y[i] = 0;\n"), "undefined", "assert");
}

TEST_F(Cubin, TheEntriesAreThePlansWithOneArgumentStruct) {
  refused(std::string(kHead) + "extern \"C\" __global__ void other(const __grid_constant__ forge_args p) { p.y[0] = 0; }\n",
          "the plan launches", "scale");
  refused(kernel("extern \"C\" __global__ void more(const __grid_constant__ forge_args p) { p.y[0] = 0; }\n", "  p.y[i] = 0;\n"),
          "extra_entry", "more");
  refused(std::string(kHead) + "extern \"C\" __global__ void scale(const float* x, float* y) { y[0] = x[0]; }\n", "parameters",
          "forge_args");
  refused(std::string(kHead) +
              "extern \"C\" __global__ void __launch_bounds__(64) scale(const __grid_constant__ forge_args p) { p.y[0] = 0; }\n",
          "block", "64");
}

TEST_F(Cubin, ALibrarysSourceIsNotInView) {
  const auto image = build(kernel("#include <cub/cub.cuh>\n", "  p.y[i] = 0;\n"));
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().reason, Reason::build_failed);
}

TEST_F(Cubin, NoBytesCrashTheReader) {
  const auto image = build(kernel("", "  p.y[i] = p.x[i];\n"));
  ASSERT_TRUE(image);
  std::uint64_t seed = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = image->bytes;
    for (int k = 0; k < 4; ++k) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      bytes[(seed >> 33) % bytes.size()] = static_cast<char>(seed >> 56);
    }
    if (round % 7 == 0) bytes.resize((seed >> 20) % bytes.size());
    (void)admit_cubin(bytes, image->plan, 24, *find_target("cuda:sm_90a"));
    (void)cubin_resources(bytes);
  }
}

TEST(Sass, ListingsBecomeAMixWithLoops) {
  const InstructionMix mix = sass_mix(
      "k:\n.text.k:\n        /*0000*/                   LDC R1, c[0x0][0x28] ;\n.L_x_0:\n"
      "        /*0010*/                   LDG.E.128 R4, desc[UR6][R2.64] ;\n"
      "        /*0020*/                   HGMMA.64x256x16.F32 R24, gdesc[UR8], R24 ;\n"
      "        /*0030*/                   STL [R1], R3 ;\n"
      "        /*0040*/              @!P0 BRA `(.L_x_0) ;\n        /*0050*/                   EXIT ;\n.L_x_1:\n"
      "        /*0060*/                   BRA `(.L_x_1);\n        /*0070*/                   NOP;\n");
  EXPECT_EQ(mix.instructions, 7);
  EXPECT_EQ(mix.mnemonics.at("hgmma.64x256x16.f32"), 1);
  EXPECT_EQ(mix.widest_vector_bits, 128);
  ASSERT_EQ(mix.loops.size(), 1u);  // a jump to itself is the end of a kernel, no loop
  EXPECT_EQ(mix.loops[0].instructions, 4);
  EXPECT_EQ(mix.spills, 1);
  Signature wanted;
  wanted.all.push_back({.mnemonic = "hgmma*", .operand = {}, .scope = Scope::hot_loop, .min = 1, .max = {}});
  EXPECT_TRUE(check_signature(wanted, mix).ok);
}

}  // namespace
}  // namespace forge
