// SPDX-License-Identifier: Apache-2.0
#include "build/loops.h"

#include <algorithm>

#include "build/x86_decoder.h"

namespace forge {

namespace {

bool ends_with_scalar_suffix(std::string_view mnemonic) {
  return mnemonic.ends_with("ss") || mnemonic.ends_with("sd") || mnemonic.ends_with("sh") || mnemonic == "vmovd" || mnemonic == "movd" ||
         mnemonic.starts_with("vcvtsi2") || mnemonic.starts_with("cvtsi2");
}

bool is_fma(std::string_view m) {
  return m.starts_with("vfmadd") || m.starts_with("vfmsub") || m.starts_with("vfnmadd") || m.starts_with("vfnmsub") || m == "vdpbf16ps";
}

// rbp is only a frame pointer where the function made it one; -O3 mostly uses it as any other register.
bool sets_frame_pointer(const X86Instruction& x) {
  const ZydisDecodedOperand* o = x.operands;
  if (x.info.operand_count_visible < 2 || o[0].type != ZYDIS_OPERAND_TYPE_REGISTER || o[0].reg.value != ZYDIS_REGISTER_RBP) return false;
  if (x.info.mnemonic == ZYDIS_MNEMONIC_MOV) return o[1].type == ZYDIS_OPERAND_TYPE_REGISTER && o[1].reg.value == ZYDIS_REGISTER_RSP;
  return x.info.mnemonic == ZYDIS_MNEMONIC_LEA && o[1].mem.base == ZYDIS_REGISTER_RSP;
}

CodeLine::Flow flow_of(const X86Instruction& x) {
  switch (x.info.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      return CodeLine::Flow::conditional;
    case ZYDIS_CATEGORY_UNCOND_BR:
      return x.operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? CodeLine::Flow::jump : CodeLine::Flow::stop;
    case ZYDIS_CATEGORY_RET:
      return CodeLine::Flow::stop;
    default:
      return x.info.mnemonic == ZYDIS_MNEMONIC_UD2 ? CodeLine::Flow::stop : CodeLine::Flow::next;
  }
}

CodeLine describe(const X86Instruction& x, std::uint64_t offset, bool frame_pointer) {
  CodeLine line{.offset = offset, .mnemonic = static_cast<std::uint16_t>(x.info.mnemonic), .length = x.info.length};
  const char* text = ZydisMnemonicGetString(x.info.mnemonic);
  const std::string_view mnemonic = text ? text : "";
  const bool hint = x.info.meta.category == ZYDIS_CATEGORY_PREFETCH || x.info.meta.category == ZYDIS_CATEGORY_NOP ||
                    x.info.meta.category == ZYDIS_CATEGORY_WIDENOP;
  bool on_stack = false;
  for (int i = 0; i < x.info.operand_count_visible; ++i) {
    const ZydisDecodedOperand& o = x.operands[i];
    if (o.type == ZYDIS_OPERAND_TYPE_REGISTER) {
      const int bits = vector_bits(o.reg.value);
      line.vector_bits = std::max<std::uint16_t>(line.vector_bits, static_cast<std::uint16_t>(bits));
      line.xmm |= bits == 128, line.ymm |= bits == 256, line.zmm |= bits == 512;
    } else if (o.type == ZYDIS_OPERAND_TYPE_MEMORY && o.mem.type != ZYDIS_MEMOP_TYPE_AGEN) {
      line.mem = true;
      if (hint) continue;
      line.load |= (o.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
      line.store |= (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
      on_stack |= o.mem.base == ZYDIS_REGISTER_RSP || (frame_pointer && o.mem.base == ZYDIS_REGISTER_RBP);
    }
  }
  line.scalar = line.vector_bits == 128 && ends_with_scalar_suffix(mnemonic);
  line.fma = is_fma(mnemonic);
  line.stack_store = on_stack && line.store && line.is_vector();
  line.flow = flow_of(x);
  line.known_target = line.flow != CodeLine::Flow::next && x.direct_target(offset, line.target);
  return line;
}

}  // namespace

void decode_region(const X86Decoder& decoder, CodeRegion& region) {
  X86Instruction x;
  bool frame_pointer = false;
  for (std::uint64_t at = 0; at < region.bytes.size();) {
    if (!decoder.decode(region.bytes.substr(at), x)) {
      ++region.undecoded;
      ++at;
      continue;
    }
    frame_pointer |= sets_frame_pointer(x);
    region.lines.push_back(describe(x, at, frame_pointer));
    at += x.info.length;
  }
}

void decode_reachable(const X86Decoder& decoder, CodeRegion& region, const std::vector<std::uint64_t>& entries) {
  constexpr std::uint64_t kLongest = 15;  // bytes of an instruction
  enum : char { free, inside, start };
  std::vector<char> taken(region.bytes.size(), free);
  std::vector<std::uint64_t> open(entries.rbegin(), entries.rend());
  X86Instruction x;
  while (!open.empty()) {
    std::uint64_t at = open.back();
    open.pop_back();
    while (at < taken.size() && taken[at] == free) {
      // No program runs a privileged instruction: whoever got here went astray, behind a call that does not return.
      if (!decoder.decode(region.bytes.substr(at), x) || (x.info.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)) {
        region.undecoded += at + kLongest <= taken.size();  // nearer to the end it is only cut off
        break;
      }
      std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(at), x.info.length, static_cast<char>(inside));
      taken[at] = start;
      if (std::uint64_t target; x.info.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE && x.direct_target(at, target)) open.push_back(target);
      const CodeLine::Flow flow = flow_of(x);
      if (flow == CodeLine::Flow::jump || flow == CodeLine::Flow::stop) break;
      at += x.info.length;
    }
  }
  bool frame_pointer = false;
  for (std::uint64_t at = 0; at < taken.size(); ++at) {
    if (taken[at] != start || !decoder.decode(region.bytes.substr(at), x)) continue;
    if (!region.lines.empty()) {
      // Nothing falls into a line that does not follow it in memory.
      CodeLine& last = region.lines.back();
      if (last.offset + last.length != at && last.flow == CodeLine::Flow::next) last.flow = CodeLine::Flow::stop;
      if (last.offset + last.length != at && last.flow == CodeLine::Flow::conditional) last.flow = CodeLine::Flow::jump;
    }
    frame_pointer |= sets_frame_pointer(x);
    region.lines.push_back(describe(x, at, frame_pointer));
  }
}

double heat(const CodeRegion& region, const std::vector<std::uint32_t>& lines) {
  double sum = 0;
  for (const std::uint32_t i : lines) {
    const CodeLine& l = region.lines[i];
    // Scalar floating-point work ranks below any vector work, and other work below that.
    sum += l.is_vector() ? l.vector_bits / 128.0 : l.vector_bits ? 0.1 : 0.001;
  }
  return sum;
}

}  // namespace forge
