// SPDX-License-Identifier: Apache-2.0
// For experts on OpenBLAS. The library picks its kernels when it is loaded, by CPU model; on some virtual machines it does not know the
// model and takes a core of the SSE era. Beating that would be worthless, so it is refused here. The harness sets OPENBLAS_CORETYPE
// before the process starts. Plugins that include this say "// link: openblas pthread", with what else they need.
#pragma once
#include <cblas.h>

#include "forge/expert_plugin.h"

extern "C" char* openblas_get_corename(void);

namespace forge::expert {

// The core whose kernels OpenBLAS runs. Throws if they are older than this CPU.
inline std::string openblas_core() {
  // Cores whose sgemm kernels use 256-bit FMA, or 512-bit vectors (OpenBLAS 0.3.21, kernel/x86_64/KERNEL.*).
  const char* const fma[] = {"Haswell", "Zen", "Excavator", "Steamroller", "Piledriver", "Bulldozer"};
  const char* const avx512[] = {"SkylakeX", "Cooperlake", "Sapphirerapids", "SapphireRapids"};
  const std::string core = openblas_get_corename();
  const auto is_one_of = [&](const auto& names) {
    return std::any_of(std::begin(names), std::end(names), [&](const char* name) { return core == name; });
  };
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && !is_one_of(avx512) && !is_one_of(fma))
    throw std::runtime_error("OpenBLAS runs its " + core + " kernels on a CPU with AVX2; set OPENBLAS_CORETYPE=" +
                             (__builtin_cpu_supports("avx512vl") ? "SkylakeX" : "Haswell") + " before the process starts");
  return core;
}

}  // namespace forge::expert
