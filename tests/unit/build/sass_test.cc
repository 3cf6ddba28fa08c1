// SPDX-License-Identifier: Apache-2.0
// The listings under tests/fixtures/cuda are real ones, so that no disassembler is needed here.
#include "build/sass.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "build/build.h"
#include "util/random.h"

namespace forge {
namespace {

std::string fixture(const std::string& name) {
  return *read_file(fs::path(FORGE_SOURCE_DIR) / "tests/fixtures/cuda" / name / (name + ".sass"));
}

Signature signature(const std::string& mnemonic, Scope scope, std::int64_t min) {
  Signature s;
  s.all.push_back({.mnemonic = mnemonic, .operand = {}, .scope = scope, .min = min, .max = {}});
  return s;
}

std::int64_t total(const std::map<std::string, std::int64_t>& counts, const std::string& opcode) {
  std::int64_t n = 0;
  for (const auto& [m, times] : counts)
    if (m == opcode || m.starts_with(opcode + ".")) n += times;
  return n;
}

TEST(Sass, TheMainLoopIsSeenThroughTheBarriersThatItSpinsOn) {
  const InstructionMix mix = sass_mix(fixture("gemm"));
  EXPECT_GT(mix.instructions, 1000);
  EXPECT_EQ(mix.undecoded, 0);
  EXPECT_EQ(mix.spills, 0);
  EXPECT_TRUE(mix.notes.empty());
  ASSERT_FALSE(mix.loops.empty());
  EXPECT_LE(mix.loops.size(), 4u);
  EXPECT_EQ(mix.loops[0].symbol, "gemm");
  EXPECT_EQ(mix.loops[0].vector_instructions, 16);  // four stages of the ring, four k steps each
  EXPECT_EQ(total(mix.hot, "hgmma"), 16);
  EXPECT_LE(std::count(mix.loops[0].listing.begin(), mix.loops[0].listing.end(), '\n'), 60);
  EXPECT_NE(mix.loops[0].listing.find("more"), std::string::npos);
  EXPECT_TRUE(check_signature(signature("hgmma.64x128x16*", Scope::hot_loop, 1), mix).ok);
  EXPECT_TRUE(check_signature(signature("utmaldg*", Scope::image, 2), mix).ok);
  EXPECT_TRUE(check_signature(signature("utmastg*", Scope::image, 1), mix).ok);
  EXPECT_TRUE(check_signature(signature("usetmaxreg*", Scope::image, 2), mix).ok);
  EXPECT_FALSE(check_signature(signature("hmma*", Scope::image, 1), mix).ok);
}

TEST(Sass, ListingsOfCuobjdumpAreReadToo) {
  const InstructionMix mix = sass_mix(fixture("split_k"));
  EXPECT_EQ(mix.widest_vector_bits, 128);
  ASSERT_FALSE(mix.loops.empty());
  EXPECT_EQ(mix.loops[0].symbol, "partial");
  EXPECT_EQ(mix.loops[0].loads, 1);
  EXPECT_TRUE(check_signature(signature("ldg*.128*", Scope::hot_loop, 1), mix).ok);
  bool combine = false;
  for (const LoopView& l : mix.loops) combine |= l.symbol == "combine";
  EXPECT_TRUE(combine);
}

TEST(Sass, SmallListings) {
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
  EXPECT_EQ(mix.loops[0].offset, 16u);
  EXPECT_EQ(mix.spills, 1);
  EXPECT_TRUE(check_signature(signature("hgmma*", Scope::hot_loop, 1), mix).ok);
}

// As in a kernel whose copies and products share a loop.
TEST(Sass, TurnsTakenForUniformRegistersAreNoHotLoops) {
  const InstructionMix mix = sass_mix(
      "k:\n.L_0:\n/*0000*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R3 ;\n.L_9:\n/*0010*/ @!P0 BRA `(.L_0) ;\n"
      "/*0020*/ HGMMA.64x128x16.F32 R24, gdesc[UR8], R24 ;\n.L_1:\n/*0030*/ @P0 ELECT P1, URZ, PT ;\n/*0040*/ @P1 R2UR UR15, R11 ;\n"
      "/*0050*/ UTMALDG.2D [UR12], [UR8] ;\n/*0060*/ @P0 BRA.U.ANY `(.L_1) ;\n/*0070*/ @P2 BRA `(.L_0) ;\n/*0080*/ EXIT ;\n");
  ASSERT_EQ(mix.loops.size(), 1u);
  EXPECT_EQ(mix.loops[0].instructions, 8);
  EXPECT_EQ(mix.hot.at("hgmma.64x128x16.f32"), 1);
  EXPECT_EQ(mix.hot.at("utmaldg.2d"), 1);
}

TEST(Sass, NoTextCrashesTheParser) {
  const std::string good = fixture("split_k").substr(0, 6000);
  Random random(5);
  for (int trial = 0; trial < 600; ++trial) {
    std::string bad = good;
    for (int k = 0; k < 40; ++k)
      bad[random.below(bad.size())] = static_cast<char>(random.below(4) ? " \n;:/*@`(x"[random.below(10)] : random.next());
    EXPECT_LE(sass_mix(bad).loops.size(), 4u);
  }
  for (const char* text : {"", "\n", "/*", "/**/;", "/*0*/;", "/*0*/ @P0;", "/*0*/ BRA `(;", "/*0*/ BRA 0x ;", "Function : ", ":",
                           "/*0*/ @ ;", "/*ffffffffffffffffff*/ A ;"})
    sass_mix(text);
}

class SassOfImage : public ::testing::Test {
 protected:
  void SetUp() override {
    static const auto compiler = find_cuda_compiler();
    if (!compiler) GTEST_SKIP() << compiler.error().text();
    const fs::path folder = fs::path(FORGE_SOURCE_DIR) / "tests/fixtures/cuda/gemm";
    const KernelPackage p{.source_name = "kernel.cu",
                          .source = *read_file(folder / "kernel.cu"),
                          .plan_text = *read_file(folder / "launch.toml"),
                          .origin = "gemm"};
    static const auto image =
        Builder(**compiler, {}).build(p, *parse_definition(*read_file(folder / "definition.json"), "d"), *find_target("cuda:sm_90a"));
    ASSERT_TRUE(image) << image.error().detail;
    cubin = image->bytes;
  }
  std::string cubin;
};

TEST_F(SassOfImage, OpcodesAloneFindTheSameLoop) {
  const auto scanned = scan_cubin(cubin);
  ASSERT_TRUE(scanned) << scanned.error().text();
  const InstructionMix listed = sass_mix(fixture("gemm"));
  EXPECT_EQ(scanned->mnemonics.at("hgmma"), total(listed.mnemonics, "hgmma"));
  EXPECT_EQ(scanned->mnemonics.at("utmaldg"), total(listed.mnemonics, "utmaldg"));
  EXPECT_EQ(scanned->hot.at("hgmma"), total(listed.hot, "hgmma"));
  EXPECT_EQ(scanned->loops.at(0).offset, listed.loops.at(0).offset);
  EXPECT_LT(scanned->undecoded, scanned->instructions / 10);
  ASSERT_EQ(scanned->notes.size(), 1u);
  const SignatureResult missed = check_signature(signature("ldg*.128*", Scope::image, 1), *scanned);
  EXPECT_FALSE(missed.ok);
  EXPECT_NE(missed.found.back().find("opcodes only"), std::string::npos) << "never silent";
}

TEST_F(SassOfImage, AToolThatFailsIsSaid) {
  const char* before = std::getenv("FORGE_NVDISASM");
  const std::string kept = before ? before : "";
  setenv("FORGE_NVDISASM", "/bin/false", 1);
  const auto mix = disassemble_cubin(cubin);
  if (before)
    setenv("FORGE_NVDISASM", kept.c_str(), 1);
  else
    unsetenv("FORGE_NVDISASM");
  ASSERT_TRUE(mix) << mix.error().text();
  EXPECT_GT(mix->mnemonics.at("hgmma"), 0);
  ASSERT_FALSE(mix->notes.empty());
  EXPECT_NE(mix->notes[0].find("/bin/false failed"), std::string::npos) << mix->notes[0];
}

TEST_F(SassOfImage, DamagedImagesAreScanned) {
  Random random(9);
  for (int trial = 0; trial < 300; ++trial) {
    std::string bad = cubin;
    for (int k = 0; k < 30; ++k) bad[random.below(bad.size())] = static_cast<char>(random.next());
    (void)scan_cubin(bad);
  }
}

}  // namespace
}  // namespace forge
