// SPDX-License-Identifier: Apache-2.0
// A relocatable object of foreign source: reader, admission, disassembly, and the runner's loader (nothing of it is called).
// Input: an object.
// link: forge_build forge_device
#include "build/elf_object.h"

#include "build/build.h"
#include "device/cpu.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(elf_object) {
  LaunchPlan plan;
  plan.launches.resize(1);
  plan.launches[0].entry = "copy";
  const std::string object(bytes);
  (void)read_elf_object(object);
  (void)disassemble_object(object);
  if (!admit_cpu_object(object, plan)) return;
  if (const auto image = LoadedImage::load(object, {"copy"})) HOLDS(image->entry("copy") != nullptr && image->code_bytes() > 0);
}

}  // namespace forge
