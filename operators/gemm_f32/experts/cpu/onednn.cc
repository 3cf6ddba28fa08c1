// SPDX-License-Identifier: Apache-2.0
// link: dnnl OpenMP::OpenMP_CXX
// oneDNN's float32 GEMM. Four ways to call it are timed when a shape is planned, and the fastest is kept: matmul on B as given
// (transposed), matmul on B in the layout that oneDNN prefers (the reorder is part of run, since B is an input like any other),
// the inner product primitive likewise, and the dnnl_sgemm function.
#include "forge/onednn_expert.h"

namespace {

using namespace forge::expert;
using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto f32 = memory::data_type::f32;

struct Shape {
  memory::dim m, n, k;
};
Shape shape_of(const std::vector<forge_tensor>& t) { return {t[0].shape[0], t[1].shape[0], t[0].shape[1]}; }

std::function<void()> matmul(const std::vector<forge_tensor>& t, bool own_layout, bool own_source) {
  const auto [m, n, k] = shape_of(t);
  auto program = std::make_shared<Program>();
  const memory::desc a({m, k}, f32, Tag::ab), b({k, n}, f32, Tag::ba), c({m, n}, f32, Tag::ab);
  const dnnl::matmul::primitive_desc pd(
      dnnl::matmul::desc(own_source ? memory::desc({m, k}, f32, Tag::any) : a, own_layout ? memory::desc({k, n}, f32, Tag::any) : b, c),
      user_scratchpad(), program->engine());
  memory source = program->bind(a, t[0].data), weights = program->bind(b, t[1].data);
  const auto reorder = [&](memory& from, const memory::desc& wanted) {
    if (wanted == from.get_desc()) return false;
    const memory to = program->temporary(wanted);
    program->add<dnnl::reorder>({program->engine(), from.get_desc(), program->engine(), wanted, user_scratchpad()},
                                {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
    from = to;
    return true;
  };
  const bool moved = reorder(source, pd.src_desc()) | reorder(weights, pd.weights_desc());
  if (own_layout && !moved) throw std::runtime_error("no other layout is preferred");
  program->add<dnnl::matmul>(pd, {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, program->bind(c, t[2].data)}});
  return [program] { program->run(); };
}

std::function<void()> inner_product(const std::vector<forge_tensor>& t, bool own_layout) {
  const auto [m, n, k] = shape_of(t);
  auto program = std::make_shared<Program>();
  const memory::desc a({m, k}, f32, Tag::nc), b({n, k}, f32, Tag::oi), c({m, n}, f32, Tag::nc);
  const dnnl::inner_product_forward::primitive_desc pd(
      dnnl::inner_product_forward::desc(dnnl::prop_kind::forward_inference, a, own_layout ? memory::desc({n, k}, f32, Tag::any) : b, c),
      user_scratchpad(), program->engine());
  memory weights = program->bind(b, t[1].data);
  if (pd.weights_desc() != b) {
    const memory to = program->temporary(pd.weights_desc());
    program->add<dnnl::reorder>({program->engine(), b, program->engine(), pd.weights_desc(), user_scratchpad()},
                                {{DNNL_ARG_FROM, weights}, {DNNL_ARG_TO, to}});
    weights = to;
  } else if (own_layout) {
    throw std::runtime_error("no other layout is preferred");
  }
  program->add<dnnl::inner_product_forward>(
      pd, {{DNNL_ARG_SRC, program->bind(a, t[0].data)}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, program->bind(c, t[2].data)}});
  return [program] { program->run(); };
}

std::function<void()> sgemm(const std::vector<forge_tensor>& t) {
  const auto [m, n, k] = shape_of(t);
  return [=, a = static_cast<const float*>(t[0].data), b = static_cast<const float*>(t[1].data), c = static_cast<float*>(t[2].data)] {
    if (dnnl_sgemm('N', 'T', m, n, k, 1, a, k, b, k, 0, c, n) != dnnl_success) throw std::runtime_error("dnnl_sgemm failed");
  };
}

class OneDnn {
 public:
  OneDnn(int threads, const int32_t* cores) { set_up_team(threads, cores); }
  void plan(const std::vector<forge_tensor>& inputs, const std::vector<forge_tensor>& outputs) {
    const std::vector<forge_tensor> tensors{inputs[0], inputs[1], outputs[0]};
    m_choice = fastest({{"matmul, B as given", [](const auto& t) { return matmul(t, false, false); }},
                        {"matmul, B reordered in run", [](const auto& t) { return matmul(t, true, false); }},
                        {"matmul, A and B reordered in run", [](const auto& t) { return matmul(t, true, true); }},
                        {"inner product, B as given", [](const auto& t) { return inner_product(t, false); }},
                        {"inner product, B reordered in run", [](const auto& t) { return inner_product(t, true); }},
                        {"dnnl_sgemm", sgemm}},
                       tensors);
  }
  void prepare() {}
  void run() { m_choice.run(); }
  std::string describe() const { return onednn_version() + (m_choice.how.empty() ? "" : ", " + m_choice.how); }

 private:
  Choice m_choice;
};

}  // namespace

// dnnl_sgemm packs into memory that it allocates, so this is declared whichever way is chosen.
extern "C" const forge_expert_v1* forge_expert(void) { return adapt<OneDnn>("gemm_f32", "onednn", false, true); }
