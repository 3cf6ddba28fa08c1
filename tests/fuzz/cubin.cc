// SPDX-License-Identifier: Apache-2.0
// Input: a cubin.
// link: forge_build
#include "build/cubin.h"

#include "build/build.h"
#include "build/sass.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(cubin) {
  LaunchPlan plan;
  plan.launches.resize(1);
  plan.launches[0].entry = "copy";
  const std::string image(bytes);
  if (const auto elf = read_cubin(image)) (void)cubin_sm(*elf);
  (void)cubin_resources(image);
  (void)scan_cubin(image);
  (void)admit_cubin(image, plan, 24, find_target("cuda:sm_90a").value());
}

}  // namespace forge
