// SPDX-License-Identifier: Apache-2.0
// link: dnnl OpenMP::OpenMP_CXX
// oneDNN's softmax over the last axis, float32. The primitive on the whole tensor is timed against one call per block of rows
// spread over the team by hand, and the faster is kept. OpenBLAS has no exponential, hence no expert here.
#include "forge/onednn_expert.h"

namespace {

using namespace forge::expert;
using dnnl::memory;

// Rows [begin, begin + rows) of both tensors as one primitive call.
void add_softmax(Program& program, const std::vector<forge_tensor>& t, int64_t begin, int64_t rows) {
  const int64_t columns = t[0].shape[1];
  const memory::desc md({rows, columns}, memory::data_type::f32, memory::format_tag::nc);
  const dnnl::softmax_v2_forward::primitive_desc pd(
      dnnl::softmax_v2_forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, md, md, 1), user_scratchpad(),
      program.engine());
  program.add<dnnl::softmax_v2_forward>(pd, {{DNNL_ARG_SRC, program.bind(md, static_cast<float*>(t[0].data) + begin * columns)},
                                             {DNNL_ARG_DST, program.bind(md, static_cast<float*>(t[1].data) + begin * columns)}});
}

std::function<void()> whole(const std::vector<forge_tensor>& t) {
  auto program = std::make_shared<Program>();
  add_softmax(*program, t, 0, t[0].shape[0]);
  return [program] { program->run(); };
}

// One program a thread, each a list of blocks. Inside a parallel region oneDNN runs a primitive on the calling thread alone.
std::function<void()> blocked(const std::vector<forge_tensor>& t, int64_t block) {
  const int64_t rows = t[0].shape[0], threads = omp_get_max_threads();
  if (rows < threads * block) throw std::runtime_error("too few rows");
  std::vector<std::shared_ptr<Program>> programs;
  for (int64_t i = 0; i < threads; i++) {
    programs.push_back(std::make_shared<Program>());
    for (int64_t begin = rows * i / threads, end = rows * (i + 1) / threads; begin < end; begin += block)
      add_softmax(*programs.back(), t, begin, std::min(block, end - begin));
  }
  return [programs] {
    bool failed = false;
#pragma omp parallel num_threads(static_cast <int>(programs.size())) reduction(|| : failed)
    {
      try {
        programs[omp_get_thread_num()]->run();
      } catch (...) {
        failed = true;
      }
    }
    if (failed) throw std::runtime_error("a oneDNN primitive failed");
  };
}

class OneDnn {
 public:
  OneDnn(int threads, const int32_t* cores) { set_up_team(threads, cores); }
  void plan(const std::vector<forge_tensor>& inputs, const std::vector<forge_tensor>& outputs) {
    m_choice = fastest({{"softmax on the whole tensor", whole},
                        {"softmax by blocks of 64 rows", [](const auto& t) { return blocked(t, 64); }},
                        {"softmax by blocks of 256 rows", [](const auto& t) { return blocked(t, 256); }},
                        {"softmax by blocks of 4 rows", [](const auto& t) { return blocked(t, 4); }}},
                       {inputs[0], outputs[0]});
  }
  void prepare() {}
  void run() { m_choice.run(); }
  std::string describe() const { return onednn_version() + (m_choice.how.empty() ? "" : ", " + m_choice.how); }

 private:
  Choice m_choice;
};

}  // namespace

extern "C" const forge_expert_v1* forge_expert(void) { return adapt<OneDnn>("softmax_f32", "onednn", false, false); }
