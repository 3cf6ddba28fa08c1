// SPDX-License-Identifier: Apache-2.0
// What admission and the instruction mix both read of a cubin. Private to this layer.
#pragma once
#include <cstddef>
#include <string_view>

#include "build/elf_object.h"

namespace forge {

int cubin_sm(const ElfObject&);                               // 90 of sm_90 and sm_90a
unsigned sass_opcode(std::string_view code, std::size_t at);  // low 12 bits of the 16-byte instruction at `at`
const char* sass_opcode_name(unsigned opcode);                // "hgmma"; null: not in the table

}  // namespace forge
