// SPDX-License-Identifier: Apache-2.0
#include "build/x86_decoder.h"

namespace forge {

X86Decoder::X86Decoder() {
  ZydisDecoderInit(&m_decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisFormatterInit(&m_formatter, ZYDIS_FORMATTER_STYLE_INTEL);
}

bool X86Decoder::decode(std::string_view bytes, X86Instruction& out) const {
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&m_decoder, bytes.data(), bytes.size(), &out.info, out.operands));
}

std::string X86Decoder::text(const X86Instruction& x, std::uint64_t address) const {
  char line[256];
  const ZyanStatus status =
      ZydisFormatterFormatInstruction(&m_formatter, &x.info, x.operands, x.info.operand_count_visible, line, sizeof line, address, nullptr);
  return ZYAN_SUCCESS(status) ? line : ZydisMnemonicGetString(x.info.mnemonic);
}

int vector_bits(ZydisRegister r) {
  switch (ZydisRegisterGetClass(r)) {
    case ZYDIS_REGCLASS_ZMM:
      return 512;
    case ZYDIS_REGCLASS_YMM:
      return 256;
    case ZYDIS_REGCLASS_XMM:
      return 128;
    default:
      return 0;
  }
}

}  // namespace forge
