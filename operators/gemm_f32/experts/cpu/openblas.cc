// SPDX-License-Identifier: Apache-2.0
// link: openblas pthread
// OpenBLAS's cblas_sgemm on all cores given. The library picks its kernels when it is loaded, by CPU model; on some virtual
// machines it does not know the model and takes a core of the SSE era. Beating that would be worthless, so it is refused here.
// The harness sets OPENBLAS_CORETYPE before this process starts.
#include <cblas.h>

#include "forge/expert_plugin.h"

extern "C" char* openblas_get_corename(void);

namespace {

using namespace forge::expert;

// Cores whose sgemm kernels use 256-bit FMA, or 512-bit vectors (OpenBLAS 0.3.21, kernel/x86_64/KERNEL.*).
const char* const kFmaCores[] = {"Haswell", "Zen", "Excavator", "Steamroller", "Piledriver", "Bulldozer"};
const char* const kAvx512Cores[] = {"SkylakeX", "Cooperlake", "Sapphirerapids", "SapphireRapids"};

template <std::size_t N>
bool is_one_of(const std::string& core, const char* const (&names)[N]) {
  return std::any_of(names, names + N, [&](const char* name) { return core == name; });
}

class OpenBlas {
 public:
  OpenBlas(int threads, const int32_t* cores) : m_core(openblas_get_corename()) {
    __builtin_cpu_init();
    const bool avx512 = is_one_of(m_core, kAvx512Cores);
    if (__builtin_cpu_supports("avx2") && !avx512 && !is_one_of(m_core, kFmaCores))
      throw std::runtime_error("OpenBLAS runs its " + m_core + " kernels on a CPU with AVX2; set OPENBLAS_CORETYPE=" +
                               (__builtin_cpu_supports("avx512vl") ? "SkylakeX" : "Haswell") + " before the process starts");
    // The calling thread computes too, so it keeps the first core; OpenBLAS's own threads take the others by themselves.
    openblas_set_num_threads(threads);
#ifdef __linux__
    for (int i = 0; i + 1 < threads; i++) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cores[i + 1], &set);
      openblas_setaffinity(i, sizeof set, &set);
    }
#endif
    pin_to(cores[0]);
    m_threads = openblas_get_num_threads();
  }
  void plan(const std::vector<forge_tensor>& inputs, const std::vector<forge_tensor>& outputs) {
    m_a = static_cast<const float*>(inputs[0].data);
    m_b = static_cast<const float*>(inputs[1].data);
    m_c = static_cast<float*>(outputs[0].data);
    m_m = static_cast<int>(outputs[0].shape[0]);
    m_n = static_cast<int>(outputs[0].shape[1]);
    m_k = static_cast<int>(inputs[0].shape[1]);
  }
  void prepare() {}
  void run() { cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m_m, m_n, m_k, 1, m_a, m_k, m_b, m_k, 0, m_c, m_n); }
  std::string describe() const {
    return std::string(openblas_get_config()) + ", core " + m_core + ", " + std::to_string(m_threads) + " threads, cblas_sgemm";
  }

 private:
  std::string m_core;
  int m_threads = 0, m_m = 0, m_n = 0, m_k = 0;
  const float *m_a = nullptr, *m_b = nullptr;
  float* m_c = nullptr;
};

}  // namespace

extern "C" const forge_expert_v1* forge_expert(void) { return adapt<OpenBlas>("gemm_f32", "openblas", false, false); }
