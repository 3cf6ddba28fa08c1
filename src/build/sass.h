// SPDX-License-Identifier: Apache-2.0
// SASS listings. Private to this layer and its tests.
#pragma once
#include <optional>
#include <string>

#include "core/evidence.h"
#include "util/fs.h"

namespace forge {

InstructionMix sass_mix(const std::string& nvdisasm_text);  // of `nvdisasm -c`
fs::path find_nvdisasm();                                   // empty: none

}  // namespace forge
