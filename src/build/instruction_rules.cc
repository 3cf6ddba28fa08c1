// SPDX-License-Identifier: Apache-2.0
#include "build/instruction_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "build/x86_decoder.h"
#include "util/text.h"

namespace forge {

namespace {

// Glob over Zydis's lower-case mnemonics.
struct Forbidden {
  const char* mnemonic;
  const char* why;
};
constexpr const char* kKernelEntry = "enters the operating system; a kernel computes and nothing else";
constexpr const char* kIo = "talks to devices";
constexpr const char* kThread = "reaches thread-local data of the harness";
constexpr const char* kClock = "reads a clock; time is the judge's to measure";
constexpr const char* kMachine =
    "asks which machine this is; the target pins the instruction set, and `when` in launch.toml chooses by shape";
constexpr const char* kRandom = "makes the result differ from run to run; a kernel is a pure function";
constexpr const char* kRounding =
    "changes the rounding mode or hides flags; round by arithmetic, or by the instruction's own {rn-sae} form";
constexpr const char* kTransaction = "starts or probes a transaction";
constexpr const char* kState = "saves or loads the processor's whole state";
constexpr const char* kWait = "waits for another thread; the blocks of a launch do not communicate";
constexpr const char* kFlags = "sets processor flags of the harness";
constexpr const char* kVirtual = "calls a hypervisor";
constexpr const char* kShadow = "touches the shadow stack or user interrupts";

constexpr Forbidden kForbidden[] = {
    {"syscall", kKernelEntry},
    {"sysenter", kKernelEntry},
    {"sysexit", kKernelEntry},
    {"sysret", kKernelEntry},
    {"int", kKernelEntry},
    {"int1", kKernelEntry},
    {"int3", kKernelEntry},
    {"into", kKernelEntry},
    {"iret*", kKernelEntry},
    {"uiret", kKernelEntry},
    {"in", kIo},
    {"insb", kIo},
    {"insw", kIo},
    {"insd", kIo},
    {"out", kIo},
    {"outsb", kIo},
    {"outsw", kIo},
    {"outsd", kIo},
    {"enqcmd*", kIo},
    {"rdfsbase", kThread},
    {"rdgsbase", kThread},
    {"wrfsbase", kThread},
    {"wrgsbase", kThread},
    {"swapgs", kThread},
    {"lfs", kThread},
    {"lgs", kThread},
    {"lss", kThread},
    {"rdpkru", kThread},
    {"wrpkru", kThread},
    {"rdtsc", kClock},
    {"rdtscp", kClock},
    {"rdpmc", kClock},
    {"rdpru", kClock},
    {"rdpid", kMachine},
    {"cpuid", kMachine},
    {"xgetbv", kMachine},
    {"sidt", kMachine},
    {"sgdt", kMachine},
    {"sldt", kMachine},
    {"smsw", kMachine},
    {"str", kMachine},
    {"rdrand", kRandom},
    {"rdseed", kRandom},
    {"xstore", kRandom},
    {"ldmxcsr", kRounding},
    {"vldmxcsr", kRounding},
    {"fldcw", kRounding},
    {"fldenv", kRounding},
    {"fnclex", kRounding},
    {"xbegin", kTransaction},
    {"xend", kTransaction},
    {"xabort", kTransaction},
    {"xtest", kTransaction},
    {"xsusldtrk", kTransaction},
    {"xresldtrk", kTransaction},
    {"xsave*", kState},
    {"xrstor*", kState},
    {"fxsave*", kState},
    {"fxrstor*", kState},
    {"frstor", kState},
    {"fnsave", kState},
    {"xsetbv", kState},
    {"monitor*", kWait},
    {"mwait*", kWait},
    {"umonitor", kWait},
    {"umwait", kWait},
    {"tpause", kWait},
    {"popf*", kFlags},
    {"cli", kFlags},
    {"sti", kFlags},
    {"stac", kFlags},
    {"clac", kFlags},
    {"vmcall", kVirtual},
    {"vmmcall", kVirtual},
    {"vmfunc", kVirtual},
    {"encl*", kVirtual},
    {"incssp*", kShadow},
    {"rdssp*", kShadow},
    {"wrss*", kShadow},
    {"wruss*", kShadow},
    {"saveprevssp", kShadow},
    {"rstorssp", kShadow},
    {"setssbsy", kShadow},
    {"clrssbsy", kShadow},
    {"senduipi", kShadow},
    {"stui", kShadow},
    {"clui", kShadow},
    {"testui", kShadow},
    {"ptwrite", kIo},
    {"llwpcb", kIo},
    {"slwpcb", kIo},
    {"lwpins", kIo},
    {"lwpval", kIo},
    {"hreset", kFlags},
    {"serialize", kClock},
};

// By number, so that the sweep does no string work on honest instructions.
const std::vector<const char*>& forbidden_by_mnemonic() {
  static const std::vector<const char*> table = [] {
    std::vector<const char*> t(ZYDIS_MNEMONIC_MAX_VALUE + 1, nullptr);
    for (int m = 0; m <= ZYDIS_MNEMONIC_MAX_VALUE; ++m) {
      const char* text = ZydisMnemonicGetString(static_cast<ZydisMnemonic>(m));
      if (!text) continue;
      for (const Forbidden& f : kForbidden)
        if (glob_match(f.mnemonic, text)) t[static_cast<std::size_t>(m)] = f.why;
    }
    return t;
  }();
  return table;
}

bool loads_segment(const X86Instruction& x) {
  for (int i = 0; i < x.info.operand_count_visible; ++i) {
    const ZydisDecodedOperand& o = x.operands[i];
    if (o.type == ZYDIS_OPERAND_TYPE_REGISTER && ZydisRegisterGetClass(o.reg.value) == ZYDIS_REGCLASS_SEGMENT) return true;
  }
  return false;
}

bool uses_thread_segment(const X86Instruction& x) {
  if (x.info.attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS)) return true;
  for (int i = 0; i < x.info.operand_count; ++i) {
    const ZydisDecodedOperand& o = x.operands[i];
    if (o.type == ZYDIS_OPERAND_TYPE_MEMORY && (o.mem.segment == ZYDIS_REGISTER_FS || o.mem.segment == ZYDIS_REGISTER_GS)) return true;
  }
  return false;
}

std::optional<InstructionFinding> judge(const X86Instruction& x, bool allow_evex) {
  const char* why = forbidden_by_mnemonic()[static_cast<std::size_t>(x.info.mnemonic)];
  if (!why && (x.info.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)) why = "is privileged";
  if (!why && x.info.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
    why = "is a far jump, call or return, which can change the processor's mode";
  if (!why && loads_segment(x)) why = "uses a segment register";
  if (!why && uses_thread_segment(x)) why = "reads or writes through fs or gs, the harness's thread-local data";
  if (why) return InstructionFinding{.rule = "instruction", .what = why};
  const bool evex = x.info.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX || x.info.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX;
  if (evex && !allow_evex)
    return InstructionFinding{.rule = "isa", .what = "is AVX-512, which the target does not have; drop the target attribute or pragma"};
  return std::nullopt;
}

SweptInstruction summary(const X86Instruction& x, std::uint64_t offset) {
  SweptInstruction s{.offset = offset, .length = x.info.length};
  if (x.info.raw.disp.size == 32) s.displacement_at = x.info.raw.disp.offset;
  for (const auto& imm : x.info.raw.imm)
    if (imm.size == 32) s.immediate_at = imm.offset;
  s.has_target = x.is_near_branch() && x.direct_target(offset, s.target);
  return s;
}

}  // namespace

const SweptInstruction* Sweep::covering(std::uint64_t offset) const {
  auto after = std::upper_bound(instructions.begin(), instructions.end(), offset,
                                [](std::uint64_t o, const SweptInstruction& s) { return o < s.offset; });
  if (after == instructions.begin()) return nullptr;
  const SweptInstruction& s = *(after - 1);
  return offset < s.offset + s.length ? &s : nullptr;
}

const SweptInstruction* Sweep::at(std::uint64_t offset) const {
  const SweptInstruction* s = covering(offset);
  return s && s->offset == offset ? s : nullptr;
}

Sweep sweep_instructions(std::string_view code, bool allow_evex) {
  static const X86Decoder decoder;
  Sweep out;
  X86Instruction x;
  bool lost = false;  // one finding for a run of bytes that do not decode
  for (std::uint64_t at = 0; at < code.size();) {
    if (!decoder.decode(code.substr(at), x)) {
      if (!lost && out.findings.size() < 16)
        out.findings.push_back({.rule = "undecodable",
                                .offset = at,
                                .what = "holds bytes that are no instruction; keep data out of the code (a `static const` table)"});
      lost = true;
      ++at;
      continue;
    }
    lost = false;
    if (auto finding = judge(x, allow_evex); finding && out.findings.size() < 16) {
      finding->offset = at;
      finding->what = fmt::format("`{}` {}", decoder.text(x, at), finding->what);
      out.findings.push_back(std::move(*finding));
    }
    out.instructions.push_back(summary(x, at));
    at += x.info.length;
  }
  return out;
}

}  // namespace forge
