// SPDX-License-Identifier: Apache-2.0
// SASS as an instruction mix: from a disassembler's listing, or from the opcodes of the image alone. Private to this layer and its
// tests.
#pragma once
#include <string>

#include "core/evidence.h"
#include "util/fs.h"

namespace forge {

// Of `nvdisasm -c` or `cuobjdump -sass`.
InstructionMix sass_mix(const std::string& listing);
// Without a tool: names of opcodes, without modifiers, widths and text. A note in the mix says so.
Result<InstructionMix> scan_cubin(const std::string& cubin);

struct SassTool {
  fs::path program;  // empty: none was found
  bool cuobjdump = false;
};
SassTool find_sass_tool();  // $FORGE_NVDISASM, then nvdisasm or cuobjdump in PATH, then in /usr/local/cuda/bin

}  // namespace forge
