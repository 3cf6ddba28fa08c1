// SPDX-License-Identifier: Apache-2.0
// Zydis, set up once for 64-bit code. Private to this layer. A decoder is immutable: one may be shared.
#pragma once
#include <Zydis/Zydis.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace forge {

struct X86Instruction {
  ZydisDecodedInstruction info;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  bool is_near_branch() const {
    return info.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR || info.meta.branch_type == ZYDIS_BRANCH_TYPE_SHORT;
  }
  // True when the target is in the instruction itself; then `target` is where it leads from an instruction at `address`.
  bool direct_target(std::uint64_t address, std::uint64_t& target) const {
    for (int i = 0; i < info.operand_count_visible; ++i) {
      const ZydisDecodedOperand& o = operands[i];
      if (o.type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !o.imm.is_relative) continue;
      target = address + info.length + static_cast<std::uint64_t>(o.imm.value.s);
      return true;
    }
    return false;
  }
};

class X86Decoder {
 public:
  X86Decoder();
  bool decode(std::string_view bytes, X86Instruction&) const;            // the instruction at the front; false: none
  std::string text(const X86Instruction&, std::uint64_t address) const;  // Intel syntax, lower case

 private:
  ZydisDecoder m_decoder;
  ZydisFormatter m_formatter;
};

// 512, 256, 128 for a zmm, ymm, xmm register; else 0.
int vector_bits(ZydisRegister);

}  // namespace forge
