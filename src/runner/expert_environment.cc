// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "runner/spawn.h"

namespace forge {
namespace {

// Distributions' OpenBLAS does not know processors younger than itself, or virtual machines that hide features, and falls
// back to code of 2004. The core type is therefore named by what the CPU can do.
const char* openblas_core_type() {
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (avx512 && __builtin_cpu_supports("avx512bf16")) return "COOPERLAKE";
  if (avx512) return "SKYLAKEX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return __builtin_cpu_is("amd") ? "ZEN" : "HASWELL";
  return nullptr;  // its own choice
}

}  // namespace

std::vector<std::string> expert_environment(const std::vector<int>& cores) {
  std::string places;
  for (const int core : cores) places += fmt::format("{}{{{}}}", places.empty() ? "" : ",", core);
  std::vector<std::string> env = {
      fmt::format("OMP_NUM_THREADS={}", cores.size()),
      fmt::format("OPENBLAS_NUM_THREADS={}", cores.size()),
      "OMP_PROC_BIND=close",
      "OMP_PLACES=" + places,
      "OMP_DYNAMIC=false",
      // Threads stay awake between calls: an expert must not pay for wake-ups that a kernel's workers do not have.
      "OMP_WAIT_POLICY=active",
      "OPENBLAS_THREAD_TIMEOUT=30",
      "LC_ALL=C",
  };
  if (const char* type = openblas_core_type()) env.push_back(fmt::format("OPENBLAS_CORETYPE={}", type));
  return env;
}

}  // namespace forge
