// SPDX-License-Identifier: Apache-2.0
// The kernel package: source + launch plan, a pure function without host code. Once built, an image.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "core/launch_plan.h"

namespace forge {

struct KernelPackage {
  std::string source_name = "kernel.cpp";  // or kernel.cu
  std::string source;
  std::string plan_text;  // launch.toml, as written
  std::string origin;     // where it came from, for messages: a folder, "blueprint gemm_f32"
};
std::string package_hash(const KernelPackage&);  // SHA-256 of names and contents

struct BuildInfo {
  std::string compiler;  // path and version
  std::vector<std::string> flags;
  std::string log;  // warnings and errors, capped
  double seconds = 0;
  std::vector<std::string> sandbox;  // what was in force, and what was missing, one phrase each
};

// What an entry of a cubin needs; from the image itself. Empty for a CPU object.
struct EntryResources {
  std::string entry;
  int registers = 0;                          // a thread
  std::int64_t static_shared = 0, frame = 0;  // bytes: shared memory of a block; local memory of a thread (arrays and spills)
  int max_threads = 0, cluster = 0;           // __launch_bounds__ and __cluster_dims__, 0: not said
};

// A built package. The image that is checked is the image that is timed.
struct Image {
  std::string bytes;  // relocatable object (cpu) or cubin (cuda)
  std::string sha256;
  LaunchPlan plan;
  BuildInfo build;
  std::vector<EntryResources> resources;  // cuda; plan's entries
};

}  // namespace forge
