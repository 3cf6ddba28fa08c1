// SPDX-License-Identifier: Apache-2.0
// cuBLASLt: every algorithm that its heuristic offers for the shape, with up to 64 MB of workspace, measured; the fastest is kept.
// needs: cublasLt.h
#include <cublasLt.h>

#include <cstring>
#include <tuple>

#include "forge/cuda_expert.h"

namespace {

using forge::cuda_expert::ColdClock;
using forge::cuda_expert::DeviceBlock;
using forge::cuda_expert::Library;
using forge::cuda_expert::Picked;
using forge::cuda_expert::StandIns;

constexpr std::size_t kWorkspace = std::size_t(64) << 20;
constexpr int kMostAlgorithms = 64;

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(what) + ": cuBLAS status " + std::to_string(status));
}

class CublasLt {
 public:
  CublasLt(int, const int32_t*) : m_library("libcublasLt.so.13", {}) {}

  void use_stream(void* stream) {
    m_stream = stream;
    check(cublasLtCreate(&m_handle), "cublasLtCreate");
    check(cublasLtMatmulDescCreate(&m_operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    // Its matrices are column-major: C row-major [M, N] is C^T = B A^T, where B's rows are the columns of a K x N matrix.
    const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(m_operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), "transposition");
    check(cublasLtMatmulDescSetAttribute(m_operation, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof plain), "transposition");
    m_workspace = DeviceBlock(kWorkspace);
  }

  void plan(const std::vector<forge_tensor>& inputs, const std::vector<forge_tensor>& outputs) {
    m_tensors = inputs;
    m_tensors.push_back(outputs[0]);
    const auto m = static_cast<std::uint64_t>(inputs[0].shape[0]), k = static_cast<std::uint64_t>(inputs[0].shape[1]);
    const auto n = static_cast<std::uint64_t>(inputs[1].shape[0]);
    for (cublasLtMatrixLayout_t& layout : m_layouts)
      if (layout) check(cublasLtMatrixLayoutDestroy(layout), "layout"), layout = nullptr;
    const auto leading = [](std::uint64_t v) { return static_cast<std::int64_t>(v); };
    check(cublasLtMatrixLayoutCreate(&m_layouts[0], CUDA_R_16F, k, n, leading(k)), "layout");  // B
    check(cublasLtMatrixLayoutCreate(&m_layouts[1], CUDA_R_16F, k, m, leading(k)), "layout");  // A
    check(cublasLtMatrixLayoutCreate(&m_layouts[2], CUDA_R_16F, n, m, leading(n)), "layout");  // C
    m_algorithms.clear();
    for (const std::size_t workspace : {kWorkspace, std::size_t(32) << 20, std::size_t(0)}) offer(workspace);
    if (m_algorithms.empty()) throw std::runtime_error("cuBLASLt offers no algorithm for this shape");
    m_picked = {};
    m_picked.index = 0;  // until prepare() measures
  }

  void prepare() {
    const StandIns stand_ins(m_tensors, m_stream);
    const ColdClock clock(m_stream);
    m_picked = forge::cuda_expert::pick_fastest(
        static_cast<int>(m_algorithms.size()), [&](int i) { return call(stand_ins.views(), i) == CUBLAS_STATUS_SUCCESS; }, clock);
  }

  void run() { check(call(m_tensors, m_picked.index), "cublasLtMatmul"); }

  std::string describe() const {
    const std::size_t version = cublasLtGetVersion();
    std::string text =
        "cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
    if (m_algorithms.empty()) return text;
    text += ", " + name(m_algorithms[static_cast<std::size_t>(m_picked.index)]);
    if (m_picked.usable == 0) return text + ", its first guess";
    char ratio[96];
    std::snprintf(ratio, sizeof ratio, ", fastest of %d algorithms that run, %zu offered; its first guess: %.3fx the time", m_picked.usable,
                  m_algorithms.size(), m_picked.first_guess);
    return text + ratio;
  }

 private:
  void offer(std::size_t workspace) {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "preference");
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
          "preference");
    std::vector<cublasLtMatmulHeuristicResult_t> results(kMostAlgorithms);
    int count = 0;
    cublasLtMatmulAlgoGetHeuristic(m_handle, m_operation, m_layouts[0], m_layouts[1], m_layouts[2], m_layouts[2], preference,
                                   kMostAlgorithms, results.data(), &count);
    for (int i = 0; i < count; i++) {
      const cublasLtMatmulAlgo_t& algorithm = results[static_cast<std::size_t>(i)].algo;
      const bool known = std::any_of(m_algorithms.begin(), m_algorithms.end(),
                                     [&](const cublasLtMatmulAlgo_t& other) { return std::memcmp(&other, &algorithm, sizeof other) == 0; });
      if (!known && results[static_cast<std::size_t>(i)].state == CUBLAS_STATUS_SUCCESS) m_algorithms.push_back(algorithm);
    }
    check(cublasLtMatmulPreferenceDestroy(preference), "preference");
  }

  // Enqueues one product of tensors A, B, C.
  cublasStatus_t call(const std::vector<forge_tensor>& t, int algorithm) const {
    const float one = 1, zero = 0;
    return cublasLtMatmul(m_handle, m_operation, &one, t[1].data, m_layouts[0], t[0].data, m_layouts[1], &zero, t[2].data, m_layouts[2],
                          t[2].data, m_layouts[2], &m_algorithms[static_cast<std::size_t>(algorithm)], m_workspace.data(),
                          m_workspace.bytes(), static_cast<cudaStream_t>(m_stream));
  }

  std::string name(const cublasLtMatmulAlgo_t& algorithm) const {
    std::string text;
    for (const auto& [attribute, label, bytes] : {std::tuple{CUBLASLT_ALGO_CONFIG_ID, "algorithm ", 4},
                                                  {CUBLASLT_ALGO_CONFIG_TILE_ID, "tile id ", 4},
                                                  {CUBLASLT_ALGO_CONFIG_STAGES_ID, "stages id ", 4},
                                                  {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, "cluster id ", 2},
                                                  {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, "inner id ", 2},
                                                  {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, "split-k ", 4},
                                                  {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, "swizzling ", 4},
                                                  {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, "custom ", 4}}) {
      std::uint32_t value = 0;
      std::size_t written = 0;
      if (cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, static_cast<std::size_t>(bytes), &written) !=
          CUBLAS_STATUS_SUCCESS)
        continue;
      text += (text.empty() ? "" : " ") + std::string(label) + std::to_string(value);
    }
    return text;
  }

  Library m_library;
  // The library's functions under their own names.
  decltype(::cublasLtCreate)* cublasLtCreate = m_library.symbol<decltype(::cublasLtCreate)>("cublasLtCreate");
  decltype(::cublasLtGetVersion)* cublasLtGetVersion = m_library.symbol<decltype(::cublasLtGetVersion)>("cublasLtGetVersion");
  decltype(::cublasLtMatmul)* cublasLtMatmul = m_library.symbol<decltype(::cublasLtMatmul)>("cublasLtMatmul");
  decltype(::cublasLtMatmulAlgoConfigGetAttribute)* cublasLtMatmulAlgoConfigGetAttribute =
      m_library.symbol<decltype(::cublasLtMatmulAlgoConfigGetAttribute)>("cublasLtMatmulAlgoConfigGetAttribute");
  decltype(::cublasLtMatmulAlgoGetHeuristic)* cublasLtMatmulAlgoGetHeuristic =
      m_library.symbol<decltype(::cublasLtMatmulAlgoGetHeuristic)>("cublasLtMatmulAlgoGetHeuristic");
  decltype(::cublasLtMatmulDescCreate)* cublasLtMatmulDescCreate =
      m_library.symbol<decltype(::cublasLtMatmulDescCreate)>("cublasLtMatmulDescCreate");
  decltype(::cublasLtMatmulDescSetAttribute)* cublasLtMatmulDescSetAttribute =
      m_library.symbol<decltype(::cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
  decltype(::cublasLtMatmulPreferenceCreate)* cublasLtMatmulPreferenceCreate =
      m_library.symbol<decltype(::cublasLtMatmulPreferenceCreate)>("cublasLtMatmulPreferenceCreate");
  decltype(::cublasLtMatmulPreferenceDestroy)* cublasLtMatmulPreferenceDestroy =
      m_library.symbol<decltype(::cublasLtMatmulPreferenceDestroy)>("cublasLtMatmulPreferenceDestroy");
  decltype(::cublasLtMatmulPreferenceSetAttribute)* cublasLtMatmulPreferenceSetAttribute =
      m_library.symbol<decltype(::cublasLtMatmulPreferenceSetAttribute)>("cublasLtMatmulPreferenceSetAttribute");
  decltype(::cublasLtMatrixLayoutCreate)* cublasLtMatrixLayoutCreate =
      m_library.symbol<decltype(::cublasLtMatrixLayoutCreate)>("cublasLtMatrixLayoutCreate");
  decltype(::cublasLtMatrixLayoutDestroy)* cublasLtMatrixLayoutDestroy =
      m_library.symbol<decltype(::cublasLtMatrixLayoutDestroy)>("cublasLtMatrixLayoutDestroy");
  void* m_stream = nullptr;
  cublasLtHandle_t m_handle = nullptr;
  cublasLtMatmulDesc_t m_operation = nullptr;
  cublasLtMatrixLayout_t m_layouts[3] = {};
  DeviceBlock m_workspace;
  std::vector<forge_tensor> m_tensors;  // A, B, C
  std::vector<cublasLtMatmulAlgo_t> m_algorithms;
  Picked m_picked;
};

}  // namespace

extern "C" const forge_expert_v1* forge_expert(void) { return forge::expert::adapt<CublasLt>("gemm_f16", "cublaslt", false, false); }
