// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "build/loops.h"
#include "build/x86_decoder.h"
#include "toy.h"

namespace forge {
namespace {

using namespace testing;

const char* const kFmaKernel = R"(#include "forge_args.h"
#include <immintrin.h>
extern "C" void scale(const forge_args* a, const forge_block*) {
  __m256 sum[6];
  for (auto& s : sum) s = _mm256_setzero_ps();
  for (int i = 0; i + 48 <= a->n; i += 48) {
#pragma GCC unroll 6
    for (int k = 0; k < 6; ++k) {
      __m256 v = _mm256_loadu_ps(a->x + i + 8 * k);
      sum[k] = _mm256_fmadd_ps(v, v, sum[k]);
    }
  }
  for (int k = 0; k < 6; ++k) _mm256_stream_ps(a->y + 8 * k, sum[k]);
}
)";

InstructionMix mix_of(const std::string& source) {
  const auto image = build_toy(source);
  EXPECT_TRUE(image) << said(image);
  if (!image) return {};
  const auto mix = disassemble_object(image->bytes);
  EXPECT_TRUE(mix) << mix.error().text();
  return mix ? *mix : InstructionMix{};
}

std::int64_t like(const std::map<std::string, std::int64_t>& m, const std::string& prefix) {
  std::int64_t n = 0;
  for (const auto& [key, count] : m)
    if (key.starts_with(prefix)) n += count;
  return n;
}

TEST(Disassembly, FindsTheHotLoopAndCountsIt) {
  const InstructionMix mix = mix_of(kFmaKernel);
  EXPECT_EQ(mix.undecoded, 0);
  EXPECT_EQ(mix.widest_vector_bits, 256);
  ASSERT_FALSE(mix.loops.empty());
  const LoopView& hot = mix.loops.front();
  EXPECT_EQ(hot.symbol, "scale");
  EXPECT_EQ(hot.fma, 6) << hot.listing;
  EXPECT_EQ(hot.loads, 6) << hot.listing;
  EXPECT_EQ(hot.stores, 0);
  EXPECT_EQ(hot.spills, 0);
  EXPECT_EQ(mix.spills, 0);
  EXPECT_NE(hot.listing.find("vfmadd"), std::string::npos);
  EXPECT_EQ(std::count(hot.listing.begin(), hot.listing.end(), '\n'), hot.instructions);
  EXPECT_EQ(like(mix.hot, "vmovntps"), 0);
  EXPECT_EQ(like(mix.mnemonics, "vmovntps"), 6);
  std::int64_t all = 0;
  for (const auto& [mnemonic, n] : mix.mnemonics) all += n;
  EXPECT_EQ(all, mix.instructions);
}

TEST(Disassembly, SeesSpills) {
  // Twenty-four accumulators do not fit in sixteen registers.
  std::string source =
      "#include \"forge_args.h\"\n#include <immintrin.h>\nextern \"C\" void scale(const forge_args* a, const forge_block*) {\n  __m256 s0 "
      "= _mm256_setzero_ps()";
  for (int k = 1; k < 24; ++k) source += ", s" + std::to_string(k) + " = s0";
  source += ";\n  for (int i = 0; i < a->n; ++i) {\n";
  for (int k = 0; k < 24; ++k)
    source += "    s" + std::to_string(k) + " = _mm256_fmadd_ps(_mm256_broadcast_ss(a->x + i + " + std::to_string(k) +
              "), _mm256_loadu_ps(a->x + i * 8), s" + std::to_string(k) + ");\n";
  source += "  }\n";
  for (int k = 0; k < 24; ++k) source += "  _mm256_storeu_ps(a->y + 8 * " + std::to_string(k) + ", s" + std::to_string(k) + ");\n";
  source += "}\n";
  const InstructionMix mix = mix_of(source);
  EXPECT_GT(mix.spills, 4);
  ASSERT_FALSE(mix.loops.empty());
  EXPECT_LE(std::count(mix.loops[0].listing.begin(), mix.loops[0].listing.end(), '\n'), 60);
}

TEST(Disassembly, LongListingsKeepBothEnds) {
  std::string body;
  for (int k = 0; k < 100; ++k) body += "\"vaddps %%ymm0, %%ymm1, %%ymm1\\n\"\n";
  const InstructionMix mix = mix_of(
      "#include \"forge_args.h\"\nextern \"C\" void scale(const forge_args* a, const forge_block*) {\n  int n = a->n;\n  asm "
      "volatile(\"1:\\n\"\n" +
      body + "\"decl %0\\njnz 1b\" : \"+r\"(n) :: \"xmm0\", \"xmm1\");\n}\n");
  ASSERT_FALSE(mix.loops.empty());
  const LoopView& l = mix.loops[0];
  EXPECT_EQ(l.instructions, 102);
  EXPECT_EQ(l.vector_instructions, 100);
  EXPECT_EQ(std::count(l.listing.begin(), l.listing.end(), '\n'), 60) << l.listing;
  EXPECT_NE(l.listing.find("jnz"), std::string::npos);
  EXPECT_NE(l.listing.find("... 43 more"), std::string::npos) << l.listing;
}

// sub rcx,1 ; vfmadd231ps zmm0,zmm1,[rdi] ; inner: vaddps ymm2,ymm2,ymm2 ; jnz inner ; jnz outer ; ret
const std::string kNested(
    "\x48\x83\xe9\x01"
    "\x62\xf2\x75\x48\xb8\x07"
    "\xc5\xec\x58\xd2"
    "\x75\xfa"
    "\x75\xee"
    "\xc3",
    19);

TEST(Disassembly, InnermostLoopsOfRawCode) {
  const InstructionMix mix = disassemble_code({{0x7000, kNested}}, "jit");
  EXPECT_EQ(mix.undecoded, 0);
  EXPECT_EQ(mix.instructions, 6);
  ASSERT_EQ(mix.loops.size(), 1u);
  EXPECT_EQ(mix.loops[0].symbol, "jit@0x7000");
  EXPECT_EQ(mix.loops[0].offset, 10u);
  EXPECT_EQ(mix.loops[0].instructions, 2);
  EXPECT_EQ(mix.widest_vector_bits, 512);
  EXPECT_EQ(mix.operands.at("vfmadd231ps zmm"), 1);
  EXPECT_EQ(mix.operands.at("vfmadd231ps mem"), 1);
  EXPECT_EQ(mix.hot.count("vfmadd231ps"), 0u);
}

TEST(Disassembly, OverlappingSamplesCountOnce) {
  const InstructionMix whole = disassemble_code({{0x7000, kNested}}, "jit");
  const InstructionMix parts =
      disassemble_code({{0x7004, kNested.substr(4)}, {0x7000, kNested.substr(0, 14)}, {0x7002, kNested.substr(2, 3)}}, "jit");
  EXPECT_EQ(parts.mnemonics, whole.mnemonics);
  EXPECT_EQ(parts.loops.size(), whole.loops.size());
}

TEST(Disassembly, SampleWithoutALoopIsTakenWhole) {
  const InstructionMix mix = disassemble_code({{0x7000, kNested.substr(4, 10)}}, "jit");
  ASSERT_EQ(mix.loops.size(), 1u);
  EXPECT_EQ(mix.hot.at("vfmadd231ps"), 1);
  EXPECT_EQ(disassemble_code({}, "jit").instructions, 0);
}

// iretd, popfq, sti, in al, dx, scasb, jrcxz, hlt: what a table of constants looks like when somebody decodes it.
const std::string kTable("\xcf\x9d\xfb\xec\xae\xe3\x10\xf4\x00\x00\x80\x3f\xcf\xcf\xcf\xcf", 16);

TEST(Disassembly, TablesBesideTheCodeAreNoInstructions) {
  const InstructionMix code = disassemble_code({{0x7000, kNested}}, "jit");
  EXPECT_EQ(disassemble_code({{0x7000, kNested + kTable}}, "jit").mnemonics, code.mnemonics);  // behind the return
  // jmp over the table ; table ; code: as a linear sweep never sees it
  const InstructionMix over = disassemble_code({{0x7000, "\xeb\x10" + kTable + kNested}}, "jit");
  EXPECT_EQ(over.instructions, code.instructions + 1);
  EXPECT_EQ(over.mnemonics.at("jmp"), 1);
  EXPECT_EQ(over.undecoded, 0);
  ASSERT_EQ(over.loops.size(), 1u);
  EXPECT_EQ(over.loops[0].instructions, 2);
  EXPECT_EQ(over.loops[0].offset, 28u);
  // call what stands behind the table ; ret
  const std::string call("\xe8\x11\x00\x00\x00\xc3", 6);
  EXPECT_EQ(disassemble_code({{0x7000, call + kTable + kNested}}, "jit").instructions, code.instructions + 2);
}

TEST(Disassembly, SampledPlacesAreEntries) {
  const std::string bytes = "\xc3" + kTable + kNested;  // a call by register leads to the code
  EXPECT_EQ(disassemble_code({{0x7000, bytes}}, "jit").instructions, 1);
  const InstructionMix mix = disassemble_code({{0x7000, bytes}}, "jit", {0x7000 + 17, 0x7000 + 17 + 10, 0x9000, 0x10});
  EXPECT_EQ(mix.instructions, 7);
  EXPECT_EQ(mix.undecoded, 0);
  EXPECT_EQ(mix.loops.size(), 1u);
}

TEST(Disassembly, StopsWhereCodeEndsWithoutAJump) {
  const std::string call("\xe8\x00\x01\x00\x00", 5);  // of what does not return: a table follows
  const InstructionMix mix = disassemble_code({{0x7000, call + "\xf4" + kTable}}, "jit");
  EXPECT_EQ(mix.instructions, 1);
  EXPECT_EQ(mix.undecoded, 1);
  EXPECT_EQ(disassemble_code({{0x7000, kNested.substr(0, 8)}}, "jit").undecoded, 0);  // cut off: the sample ends, not the code
}

using Flow = CodeLine::Flow;
struct Jump {
  std::uint64_t at;
  Flow flow;
  std::uint64_t to;
};

// Twenty one-byte instructions with these jumps among them: {first line, last line, number of lines} of each loop.
std::vector<std::array<std::size_t, 3>> loops_of(const std::vector<Jump>& jumps) {
  CodeRegion region{.symbol = "t", .bytes = {}, .lines = {}};
  for (std::uint64_t i = 0; i < 20; ++i) region.lines.push_back({.offset = i, .length = 1});
  for (const Jump& j : jumps) {
    CodeLine& l = region.lines[j.at];
    l.flow = j.flow, l.target = j.to, l.known_target = j.flow != Flow::stop;
  }
  std::vector<std::array<std::size_t, 3>> out;
  for (const CodeLoop& l : innermost_loops(region)) out.push_back({l.lines.front(), l.lines.back(), l.lines.size()});
  return out;
}

TEST(Loops, InnermostNaturalLoops) {
  using V = std::vector<std::array<std::size_t, 3>>;
  EXPECT_EQ(loops_of({{5, Flow::conditional, 2}, {10, Flow::conditional, 8}, {15, Flow::conditional, 0}}),
            (V{{2, 5, 4}, {8, 10, 3}}));                                                        // siblings in a loop
  EXPECT_EQ(loops_of({{5, Flow::conditional, 2}, {9, Flow::conditional, 2}}), (V{{2, 9, 8}}));  // `continue`: one loop, two ways back
  EXPECT_EQ(loops_of({{5, Flow::conditional, 5}}), (V{{5, 5, 1}}));
  EXPECT_EQ(loops_of({{5, Flow::conditional, 9}}), (V{}));                               // forward
  EXPECT_EQ(loops_of({{1, Flow::jump, 6}, {8, Flow::conditional, 2}}), (V{{2, 8, 7}}));  // entered at its condition
}

// An outer loop whose rare part stands behind the return: its jump back is no loop.
TEST(Loops, OutOfLineBlocksAreNoLoops) {
  using V = std::vector<std::array<std::size_t, 3>>;
  const auto loops = loops_of(
      {{4, Flow::conditional, 3}, {6, Flow::conditional, 12}, {9, Flow::conditional, 2}, {10, Flow::stop, 0}, {16, Flow::jump, 8}});
  EXPECT_EQ(loops, (V{{3, 4, 2}}));
  // Part of the loop itself when it belongs to it.
  EXPECT_EQ(loops_of({{4, Flow::conditional, 12}, {6, Flow::conditional, 2}, {10, Flow::stop, 0}, {14, Flow::jump, 5}}), (V{{2, 14, 8}}));
}

TEST(Loops, JumpsByRegisterAndBrokenTargets) {
  EXPECT_TRUE(loops_of({{3, Flow::stop, 0}, {5, Flow::jump, 900}, {7, Flow::conditional, 400}}).empty());
  using V = std::vector<std::array<std::size_t, 3>>;
  EXPECT_EQ(loops_of({{2, Flow::stop, 0}, {9, Flow::conditional, 5}}), (V{{5, 9, 5}}));  // only reached by a register
}

TEST(Loops, AnEndlessNestIsGivenUpOn) {
  CodeRegion region{.symbol = "t", .bytes = {}, .lines = {}};
  const std::uint64_t n = 60000;
  for (std::uint64_t i = 0; i < 2 * n; ++i) region.lines.push_back({.offset = i, .length = 1});
  for (std::uint64_t i = 0; i < n; ++i) {
    CodeLine& l = region.lines[n + i];
    l.flow = Flow::conditional, l.target = n - 1 - i, l.known_target = true;
  }
  EXPECT_LE(innermost_loops(region).size(), 1u);  // and in a second or two
}

TEST(Signature, CountsByMnemonicOperandAndScope) {
  const InstructionMix mix = mix_of(kFmaKernel);
  const auto check = [&](SignatureTerm t) { return check_signature({{t}}, mix); };
  EXPECT_TRUE(check({.mnemonic = "vfmadd*ps", .operand = "ymm", .scope = Scope::hot_loop, .min = 6}).ok);
  EXPECT_FALSE(check({.mnemonic = "vfmadd*ps", .operand = "ymm", .scope = Scope::hot_loop, .min = 7}).ok);
  EXPECT_FALSE(check({.mnemonic = "vfmadd*ps", .operand = "zmm"}).ok);
  EXPECT_TRUE(check({.mnemonic = "vfmadd*ps", .operand = "zmm", .min = 0, .max = 0}).ok);
  EXPECT_TRUE(check({.mnemonic = "vmovntps", .operand = "mem", .min = 6}).ok);
  EXPECT_FALSE(check({.mnemonic = "vmovntps", .scope = Scope::hot_loop}).ok);
  EXPECT_FALSE(check({.mnemonic = "vmovntps", .max = 2}).ok);
  const SignatureResult both = check_signature({{{.mnemonic = "vmovntps"}, {.mnemonic = "vdivps"}}}, mix);
  EXPECT_FALSE(both.ok);
  ASSERT_EQ(both.found.size(), 2u);
  EXPECT_EQ(both.found[0], "vmovntps in image: 6 (min 1)");
  EXPECT_EQ(both.found[1], "vdivps in image: 0 (min 1) - missed");
  EXPECT_TRUE(check_signature({}, mix).ok);
}

}  // namespace
}  // namespace forge
