// SPDX-License-Identifier: Apache-2.0
// What Nsight Compute prints, from real output (tests/fixtures/cuda/ncu), and the way to it through a script in its place.
#include "gate/ncu.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "fakes.h"
#include "util/fs.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {
namespace {

std::string fixture(const char* name) { return *read_file(fs::path(FORGE_SOURCE_DIR "/tests/fixtures/cuda/ncu") / name); }

bool has_note(const Evidence& e, const std::string& part) {
  return std::any_of(e.notes.begin(), e.notes.end(), [&](const auto& n) { return n.find(part) != std::string::npos; });
}

TEST(NcuCsvTest, FieldsHoldCommasQuotesAndLineEnds) {
  using Records = std::vector<std::vector<std::string>>;
  EXPECT_EQ(parse_csv("\"a,b\",\"c\"\"d\"\r\n\n\"e\nf\",,g"), (Records{{"a,b", "c\"d"}, {"e\nf", "", "g"}}));
  EXPECT_EQ(parse_csv("\"never closed, \n"), (Records{{"never closed, \n"}}));
  EXPECT_TRUE(parse_csv("").empty());
  EXPECT_EQ(ncu_number("31,216,468"), 31216468);
  EXPECT_FALSE(ncu_number("n/a"));
  EXPECT_FALSE(ncu_number("nan"));
  EXPECT_FALSE(ncu_number(""));
}

TEST(NcuCsvTest, OneRowAKernel) {
  const NcuOutput out = parse_ncu_counters(fixture("counters.csv"));
  ASSERT_EQ(out.kernels.size(), 3u);
  EXPECT_TRUE(out.errors.empty());
  const KernelCounters& k = out.kernels[0];
  EXPECT_EQ(k.kernel, "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT");
  EXPECT_EQ(k.grid, "(2, 66, 1)");
  EXPECT_EQ(k.block, "(384, 1, 1)");
  EXPECT_NEAR(k.values.at("gpu__time_duration.sum"), 181.696e-6, 1e-12);
  EXPECT_EQ(k.values.at("dram__bytes_read.sum"), 147556096);
  EXPECT_EQ(k.values.at("launch__registers_per_thread"), 168);
  EXPECT_FALSE(k.values.contains("launch__kernel_name")) << "no number stands there";
  EXPECT_TRUE(out.kernels[1].kernel.starts_with("void at::")) << "a name with commas and quotes of its own";
}

TEST(NcuCsvTest, CutShortAnywhereItStillEnds) {
  for (const char* name : {"counters.csv", "source.csv"}) {
    const std::string whole = fixture(name);
    for (std::size_t n = 0; n < whole.size(); n += 37) {
      EXPECT_LE(parse_ncu_counters(whole.substr(0, n)).kernels.size(), 3u);
      EXPECT_LE(parse_ncu_source(whole.substr(0, n)).size(), 2u);
    }
  }
}

TEST(NcuCsvTest, TheSourcePageBecomesAnInstructionMix) {
  const auto kernels = parse_ncu_source(fixture("source.csv"));
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].lines[0].address, 0x7fc6cb7b3a00u);
  EXPECT_EQ(kernels[0].lines[0].text, "LDC R1, c[0x0][0x28]");
  EXPECT_EQ(kernels[0].lines[0].executed, 2048);
  const std::vector<CountedKernel> made = {{"k",
                                            {{0x100, "MOV R1, R2", 10},
                                             {0x110, "@!UP0 HGMMA.64x128x16.F32 R24, gdesc[UR16], R24", 100},
                                             {0x118, "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR10], R198", 900},
                                             {0x11c, "@!P0 BRA 0x118", 900},
                                             {0x120, "@P0 BRA 0x110", 100},
                                             {0x130, "STL [R1], R2", 50},
                                             {0x140, "NOP", 100}}}};
  const InstructionMix mix = counted_mix(made);
  EXPECT_EQ(mix.instructions, 6);  // a NOP is padding
  EXPECT_EQ(mix.mnemonics.at("mov"), 1);
  EXPECT_EQ(mix.hot, (std::map<std::string, std::int64_t>{
                         {"bra", 2}, {"hgmma.64x128x16.f32", 1}, {"stl", 1}, {"syncs.phasechk.trans64.trywait", 1}}))
      << "measured by what works, not by the polls of a barrier";
  EXPECT_EQ(mix.spills, 1);
  EXPECT_TRUE(mix.loops.empty()) << "no listing of a library's code";
  EXPECT_TRUE(counted_mix({{"k", {{0, "EXIT", 0}}}}).hot.empty());
}

TEST(NcuEvidenceTest, SumsSharesAndWeights) {
  Evidence e;
  add_counter_metrics(e, {.kernels = parse_ncu_counters(fixture("counters.csv")).kernels, .notes = {}});
  const double seconds = (181696 + 4448 + 6112) * 1e-9;
  EXPECT_EQ(e.metrics.at("counter_kernels"), 3);
  EXPECT_NEAR(e.metrics.at("counter_seconds"), seconds, 1e-12);
  EXPECT_EQ(e.metrics.at("counter_dram_read_bytes"), 147556096 + 556544 + 1059328);
  EXPECT_EQ(e.metrics.at("counter_l2_read_bytes"), 32.0 * (31216468 + 33384 + 52437));
  EXPECT_EQ(e.metrics.at("counter_tensor_instructions"), 2097152 + 18432);
  EXPECT_EQ(e.metrics.at("counter_registers"), 168);
  EXPECT_NEAR(e.metrics.at("counter_sm_percent"), (90.37 * 181696 + 9.37 * 4448 + 17.94 * 6112) / (181696 + 4448 + 6112), 1e-9);
  ASSERT_EQ(e.hot_symbols.size(), 3u);
  EXPECT_EQ(e.hot_symbols[0].first, "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT");
  EXPECT_NEAR(e.hot_symbols[0].second, 181.696e-6 / seconds, 1e-9);
  EXPECT_TRUE(has_note(e,
                       "coopA_NNT: grid (2, 66, 1) of (384, 1, 1) threads in clusters of 2, 168 registers, 214212 bytes of shared memory, "
                       "1 blocks an SM, limited by registers"))
      << e.notes[0];
}

TEST(NcuEvidenceTest, WhatHasNoNumberIsNamed) {
  Evidence e;
  add_counter_metrics(e, {.kernels = {{.kernel = "k", .grid = "(1, 1, 1)", .block = "(32, 1, 1)", .values = {}},
                                      {.kernel = "k", .grid = "(1, 1, 1)", .block = "(32, 1, 1)", .values = {}}},
                          .notes = {}});
  EXPECT_EQ(e.metrics.size(), 1u);
  EXPECT_TRUE(e.hot_symbols.empty());
  EXPECT_TRUE(has_note(e, "kernel k (2 times): grid (1, 1, 1)"));
  EXPECT_TRUE(has_note(e, "no counter dram__bytes_read.sum"));
}

struct NcuRunTest : testing::Test {
  TempDir folder = std::move(*TempDir::make());
  // A program in ncu's place that writes down what it was asked for.
  void ncu(const std::string& body) {
    const fs::path script = folder.path() / "fake-ncu";
    ASSERT_TRUE(write_file_atomic(script, "#!/bin/sh\necho \"$@\" >>'" + (folder.path() / "asked").string() + "'\n" + body));
    ASSERT_EQ(chmod(script.c_str(), 0755), 0);
    setenv("FORGE_NCU", script.c_str(), 1);
  }
  void TearDown() override { unsetenv("FORGE_NCU"); }
  std::string file(const char* name) const { return FORGE_SOURCE_DIR "/tests/fixtures/cuda/ncu/" + std::string(name); }
  const OnceProgram program{{"/bin/the-call", "--once", "call"}, {"A=b"}};
};

TEST_F(NcuRunTest, ItStartsTheCallColdAndAtTheClocksThatAre) {
  ncu("test \"$A\" = b && test -n \"$HOME\" && cat " + file("counters.csv") + "\n");
  const auto c = take_counters(program, folder.path(), monotonic_seconds() + 60);
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(c->kernels.size(), 3u);
  const std::string asked = *read_file(folder.path() / "asked");
  EXPECT_NE(asked.find("--profile-from-start off --clock-control none --cache-control all"), std::string::npos) << asked;
  EXPECT_NE(asked.find("/bin/the-call --once call"), std::string::npos) << asked;
}

TEST_F(NcuRunTest, AnUnknownCounterIsLeftOutAndNamed) {
  ncu("case \"$*\" in *pipe_tensor*) echo '==ERROR== Failed to find metric sm__inst_executed_pipe_tensor.sum'; exit 1;; esac\ncat " +
      file("counters.csv") + "\n");
  const auto c = take_counters(program, folder.path(), monotonic_seconds() + 60);
  ASSERT_TRUE(c) << c.error().text();
  ASSERT_EQ(c->notes.size(), 1u);
  EXPECT_NE(c->notes[0].find("no counter sm__inst_executed_pipe_tensor.sum"), std::string::npos);
}

TEST_F(NcuRunTest, EveryAbsenceHasItsReason) {
  ncu("cat " + file("not_permitted.txt") + "; exit 1\n");
  auto c = take_counters(program, folder.path(), monotonic_seconds() + 60);
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, Code::unsupported);
  EXPECT_NE(c.error().text().find("not permitted: ERR_NVGPUCTRPERM"), std::string::npos);
  ncu("echo 'forge-runner --once: the NVIDIA driver sees no card' >&2; echo '==WARNING== No kernels were profiled.'\n");
  c = take_counters(program, folder.path(), monotonic_seconds() + 60);
  ASSERT_FALSE(c);
  EXPECT_NE(c.error().text().find("sees no card"), std::string::npos) << c.error().text();
  EXPECT_NE(c.error().text().find("No kernels were profiled"), std::string::npos) << c.error().text();
  setenv("FORGE_NCU", "/nowhere/ncu", 1);
  c = take_counters(program, folder.path(), monotonic_seconds() + 60);
  ASSERT_FALSE(c);
  EXPECT_NE(c.error().text().find("FORGE_NCU names /nowhere/ncu"), std::string::npos) << c.error().text();
}

TEST_F(NcuRunTest, TheInstructionMixComesFromAReport) {
  ncu("case \"$*\" in *--import*) cat " + file("source.csv") + ";; *) touch report.ncu-rep;; esac\n");
  const auto mix = take_instructions(program, folder.path(), monotonic_seconds() + 60);
  ASSERT_TRUE(mix) << mix.error().text();
  EXPECT_GT(mix->instructions, 10);
  EXPECT_GT(mix->hot.size(), 0u);
  EXPECT_LT(mix->hot.size(), mix->mnemonics.size());
}

TEST_F(NcuRunTest, AShortRunDoesNotSpendItselfOnEvidence) {
  fakes::World world;
  const fakes::FakeRunner runner(world, "k");
  Evidence e;
  ncu("sleep 30\n");
  add_counters(e, runner, {}, true, 0.2);
  EXPECT_TRUE(has_note(e, "no counters: ncu had not ended within the time for evidence"));
  e = {};
  ncu("sleep 3; cat " + file("counters.csv") + "\n");
  add_counters(e, runner, {}, true, 5);
  EXPECT_EQ(e.metrics.at("counter_kernels"), 3);
  EXPECT_TRUE(has_note(e, "no instruction mix: the counters took 3 s, and 5 s are for evidence")) << join(e.notes, "\n");
}

TEST_F(NcuRunTest, OneKernelIsCountedTheOneThatTakesLongest) {
  const auto named = [](const char* kernel, double seconds) {
    return KernelCounters{.kernel = kernel, .grid = {}, .block = {}, .values = {{"gpu__time_duration.sum", seconds}}};
  };
  EXPECT_EQ(slowest_kernel({.kernels = {named("a", 1e-6), named("b", 3e-6), named("c", 2e-6)}, .notes = {}, .made = {}}), 1u);
  ncu("case \"$*\" in *--import*) cat " + file("source.csv") + ";; *) touch report.ncu-rep;; esac\n");
  ASSERT_TRUE(take_instructions(program, folder.path(), monotonic_seconds() + 60, 1));
  EXPECT_NE(read_file(folder.path() / "asked")->find("--launch-skip 1 --launch-count 1"), std::string::npos);
}

}  // namespace
}  // namespace forge
