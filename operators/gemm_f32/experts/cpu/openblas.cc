// SPDX-License-Identifier: Apache-2.0
// link: openblas pthread
// OpenBLAS's cblas_sgemm on all cores given.
#include "forge/openblas_expert.h"

namespace {

using namespace forge::expert;

class OpenBlas {
 public:
  OpenBlas(int threads, const int32_t* cores) : m_core(openblas_core()) {
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
