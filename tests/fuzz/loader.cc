// SPDX-License-Identifier: Apache-2.0
// The loader alone, which does not lean on admission. Input: an object.
// link: forge_device
#include "device/cpu.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(loader) {
  if (const auto image = LoadedImage::load(std::string(bytes), {"copy"})) HOLDS(image->entry("copy") != nullptr);
}

}  // namespace forge
