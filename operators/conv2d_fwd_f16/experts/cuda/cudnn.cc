// SPDX-License-Identifier: Apache-2.0
// cuDNN through its graph API: every engine configuration that its heuristics offer (modes A, B, fallback) and every engine of the
// graph with its default knobs, measured; the fastest is kept.
// needs: cudnn.h
#include <cudnn.h>

#include <chrono>
#include <memory>

#include "forge/cuda_expert.h"

namespace {

using forge::cuda_expert::ColdClock;
using forge::cuda_expert::DeviceBlock;
using forge::cuda_expert::Library;
using forge::cuda_expert::Picked;
using forge::cuda_expert::StandIns;

constexpr std::int64_t kWorkspace = std::int64_t(512) << 20;
constexpr int kMostConfigurations = 128;  // of one heuristic
constexpr double kBuildSeconds = 20;      // engines that compile at run time are built for no longer than this in all

void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(std::string(what) + ": cuDNN status " + std::to_string(status));
}

const std::vector<std::string> kParts = {"libcudart.so.13",
                                         "libnvrtc.so.13",
                                         "libcublasLt.so.13",
                                         "libcublas.so.13",
                                         "libcudnn_graph.so.9",
                                         "libcudnn_ops.so.9",
                                         "libcudnn_cnn.so.9",
                                         "libcudnn_heuristic.so.9",
                                         "libcudnn_engines_precompiled.so.9",
                                         "libcudnn_adv.so.9",
                                         "libcudnn_engines_runtime_compiled.so.9"};

struct Api {
  Library library{"libcudnn.so.9", kParts};
  decltype(::cudnnBackendCreateDescriptor)* create =
      library.symbol<decltype(::cudnnBackendCreateDescriptor)>("cudnnBackendCreateDescriptor");
  decltype(::cudnnBackendDestroyDescriptor)* destroy =
      library.symbol<decltype(::cudnnBackendDestroyDescriptor)>("cudnnBackendDestroyDescriptor");
  decltype(::cudnnBackendExecute)* execute = library.symbol<decltype(::cudnnBackendExecute)>("cudnnBackendExecute");
  decltype(::cudnnBackendFinalize)* finalize = library.symbol<decltype(::cudnnBackendFinalize)>("cudnnBackendFinalize");
  decltype(::cudnnBackendGetAttribute)* get = library.symbol<decltype(::cudnnBackendGetAttribute)>("cudnnBackendGetAttribute");
  decltype(::cudnnBackendSetAttribute)* set = library.symbol<decltype(::cudnnBackendSetAttribute)>("cudnnBackendSetAttribute");
  decltype(::cudnnCreate)* make_handle = library.symbol<decltype(::cudnnCreate)>("cudnnCreate");
  decltype(::cudnnSetStream)* set_stream = library.symbol<decltype(::cudnnSetStream)>("cudnnSetStream");
  decltype(::cudnnGetVersion)* version = library.symbol<decltype(::cudnnGetVersion)>("cudnnGetVersion");
};

// A backend descriptor, destroyed with its holder.
class Descriptor {
 public:
  Descriptor(const Api& api, cudnnBackendDescriptorType_t type) : m_api(&api) { check(api.create(type, &m_raw), "descriptor"); }
  Descriptor(Descriptor&& o) noexcept : m_api(o.m_api) { std::swap(m_raw, o.m_raw); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (m_raw) m_api->destroy(m_raw);
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const std::vector<T>& values) {
    check(m_api->set(m_raw, name, type, static_cast<std::int64_t>(values.size()), values.data()), "attribute");
    return *this;
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    check(m_api->set(m_raw, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.m_raw), "attribute");
    return *this;
  }
  std::int64_t number(cudnnBackendAttributeName_t name) const {
    std::int64_t value = 0, count = 0;
    check(m_api->get(m_raw, name, CUDNN_TYPE_INT64, 1, &count, &value), "attribute");
    return value;
  }
  Descriptor& finalize(const char* what) {
    check(m_api->finalize(m_raw), what);
    return *this;
  }
  cudnnBackendDescriptor_t raw() const { return m_raw; }

 private:
  const Api* m_api;
  cudnnBackendDescriptor_t m_raw = nullptr;
};

// NHWC in memory, but dimensions are named in the order N, C, H, W.
Descriptor tensor(const Api& api, std::int64_t id, const forge_tensor& t) {
  const std::int64_t *s = t.shape, n = s[0], h = s[1], w = s[2], c = s[3];
  Descriptor d(api, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, std::vector<std::int64_t>{id});
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector<cudnnDataType_t>{CUDNN_DATA_HALF});
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::vector<std::int64_t>{256});
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, std::vector<std::int64_t>{n, c, h, w});
  d.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, std::vector<std::int64_t>{h * w * c, 1, w * c, c});
  d.finalize("tensor");
  return d;
}

struct Plan {
  std::unique_ptr<Descriptor> plan;
  std::int64_t workspace = 0;
  std::int64_t engine = -1;
  std::string from;  // which list offered it
};

class Cudnn {
 public:
  Cudnn(int, const int32_t*) {}

  void use_stream(void* stream) {
    m_stream = stream;
    check(m_api.make_handle(&m_handle), "cudnnCreate");
    check(m_api.set_stream(m_handle, static_cast<cudaStream_t>(stream)), "cudnnSetStream");
  }

  void plan(const std::vector<forge_tensor>& inputs, const std::vector<forge_tensor>& outputs) {
    m_tensors = inputs;
    m_tensors.push_back(outputs[0]);
    m_plans.clear();
    m_built_late = 0;
    const Descriptor x = tensor(m_api, 1, inputs[0]), w = tensor(m_api, 2, inputs[1]), y = tensor(m_api, 3, outputs[0]);
    const std::int64_t pad = inputs[1].shape[1] / 2;
    Descriptor convolution(m_api, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const std::vector<std::int64_t> ones{1, 1}, pads{pad, pad};
    convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::vector<std::int64_t>{2})
        .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT})
        .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, std::vector<cudnnConvolutionMode_t>{CUDNN_CROSS_CORRELATION})
        .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, pads)
        .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, pads)
        .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, ones)
        .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, ones)
        .finalize("convolution");
    Descriptor operation(m_api, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, std::vector<float>{1})
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, std::vector<float>{0})
        .finalize("operation");
    Descriptor graph(m_api, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation)
        .set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector<cudnnHandle_t>{m_handle})
        .finalize("operation graph");
    m_start = Clock::now();
    offer(graph, CUDNN_HEUR_MODE_A, "heuristic A");
    offer(graph, CUDNN_HEUR_MODE_B, "heuristic B");
    offer(graph, CUDNN_HEUR_MODE_FALLBACK, "fallback");
    offer_engines(graph);
    if (m_plans.empty()) throw std::runtime_error("cuDNN offers no engine for this shape");
    std::int64_t workspace = 0;
    for (const Plan& p : m_plans) workspace = std::max(workspace, p.workspace);
    m_workspace = DeviceBlock(static_cast<std::size_t>(workspace));
    m_picked = {};
    bind(m_tensors, 0);
  }

  void prepare() {
    {
      const StandIns stand_ins(m_tensors, m_stream);
      const ColdClock clock(m_stream);
      std::vector<std::unique_ptr<Descriptor>> packs;
      for (std::size_t i = 0; i < m_plans.size(); i++) packs.push_back(pack(stand_ins.views()));
      m_picked = forge::cuda_expert::pick_fastest(
          static_cast<int>(m_plans.size()),
          [&](int i) {
            const auto at = static_cast<std::size_t>(i);
            return m_api.execute(m_handle, m_plans[at].plan->raw(), packs[at]->raw()) == CUDNN_STATUS_SUCCESS;
          },
          clock);
    }
    bind(m_tensors, m_picked.index);
  }

  void run() {
    check(m_api.execute(m_handle, m_plans[static_cast<std::size_t>(m_chosen)].plan->raw(), m_pack->raw()), "cudnnBackendExecute");
  }

  std::string describe() const {
    const std::size_t version = m_api.version();
    std::string text =
        "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
    if (m_plans.empty()) return text;
    const Plan& p = m_plans[static_cast<std::size_t>(m_chosen)];
    text += ", engine " + std::to_string(p.engine) + " (" + p.from + ", workspace " + std::to_string(p.workspace) + ")";
    if (m_picked.usable == 0) return text + ", its first guess";
    char ratio[128];
    std::snprintf(ratio, sizeof ratio, ", fastest of %d plans that run, %zu built, %d not built in %.0f s; its first guess: %.3fx the time",
                  m_picked.usable, m_plans.size(), m_built_late, kBuildSeconds, m_picked.first_guess);
    return text + ratio;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void offer(const Descriptor& graph, cudnnBackendHeurMode_t mode, const std::string& from) {
    std::vector<Descriptor> configurations;
    std::int64_t count = 0;
    try {
      Descriptor heuristic(m_api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
      heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
          .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector<cudnnBackendHeurMode_t>{mode})
          .finalize("heuristic");
      std::vector<cudnnBackendDescriptor_t> raw;
      for (int i = 0; i < kMostConfigurations; i++) {
        configurations.emplace_back(m_api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        raw.push_back(configurations.back().raw());
      }
      check(
          m_api.get(heuristic.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, kMostConfigurations, &count, raw.data()),
          "heuristic results");
    } catch (const std::exception&) {
      return;  // a mode that this graph does not have
    }
    for (std::int64_t i = 0; i < count && i < kMostConfigurations; i++) build(configurations[static_cast<std::size_t>(i)], from);
  }

  // Every engine that the graph has, with the knobs it takes by itself.
  void offer_engines(const Descriptor& graph) {
    const std::int64_t count = graph.number(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
    for (std::int64_t i = 0; i < count; i++) {
      if (std::any_of(m_plans.begin(), m_plans.end(), [&](const Plan& p) { return p.engine == i; })) continue;
      try {
        Descriptor engine(m_api, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph)
            .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::vector<std::int64_t>{i})
            .finalize("engine");
        Descriptor configuration(m_api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine).finalize("configuration");
        build(configuration, "its own knobs");
      } catch (const std::exception&) {
      }
    }
  }

  void build(const Descriptor& configuration, const std::string& from) {
    if (std::chrono::duration<double>(Clock::now() - m_start).count() > kBuildSeconds) {
      m_built_late++;
      return;
    }
    try {
      auto plan = std::make_unique<Descriptor>(m_api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector<cudnnHandle_t>{m_handle})
          .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration)
          .finalize("execution plan");
      const std::int64_t workspace = plan->number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
      if (workspace > kWorkspace) return;
      m_plans.push_back({std::move(plan), workspace, engine_of(configuration), from});
    } catch (const std::exception&) {  // this engine refuses the shape
    }
  }

  std::int64_t engine_of(const Descriptor& configuration) const {
    Descriptor engine(m_api, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t raw = engine.raw();
    std::int64_t count = 0;
    if (m_api.get(configuration.raw(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw) != CUDNN_STATUS_SUCCESS)
      return -1;
    return engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  }

  std::unique_ptr<Descriptor> pack(const std::vector<forge_tensor>& t) const {
    auto result = std::make_unique<Descriptor>(m_api, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    result->set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::vector<std::int64_t>{1, 2, 3})
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::vector<void*>{t[0].data, t[1].data, t[2].data})
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector<void*>{m_workspace.data()})
        .finalize("variant pack");
    return result;
  }
  void bind(const std::vector<forge_tensor>& tensors, int plan) {
    m_chosen = plan;
    m_pack = pack(tensors);
  }

  Api m_api;
  void* m_stream = nullptr;
  cudnnHandle_t m_handle = nullptr;
  DeviceBlock m_workspace;
  std::vector<forge_tensor> m_tensors;  // X, W, Y
  std::vector<Plan> m_plans;
  Clock::time_point m_start;
  int m_built_late = 0, m_chosen = 0;
  Picked m_picked;
  std::unique_ptr<Descriptor> m_pack;
};

}  // namespace

extern "C" const forge_expert_v1* forge_expert(void) { return forge::expert::adapt<Cudnn>("conv2d_fwd_f16", "cudnn", false, false); }
