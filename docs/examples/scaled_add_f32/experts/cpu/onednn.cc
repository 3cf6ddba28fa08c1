// SPDX-License-Identifier: Apache-2.0
// link: dnnl OpenMP::OpenMP_CXX
// oneDNN's binary primitive: x * s, with + y as a post-op; against two primitives, one after the other.
#include "forge/onednn_expert.h"

namespace {

using namespace forge::expert;
using dnnl::algorithm;
using dnnl::memory;

std::function<void()> multiply_add(const std::vector<forge_tensor>& t, bool fused) {
  const int64_t rows = t[0].shape[0], columns = t[0].shape[1];
  const auto f32 = memory::data_type::f32;
  const memory::desc full({rows, columns}, f32, memory::format_tag::ab), row({1, columns}, f32, memory::format_tag::ab);
  auto program = std::make_shared<Program>();
  const memory x = program->bind(full, t[0].data), y = program->bind(full, t[1].data);
  const memory s = program->bind(row, t[2].data), z = program->bind(full, t[3].data);
  auto attr = user_scratchpad();
  std::vector<std::pair<int, memory>> args{{DNNL_ARG_SRC_0, x}, {DNNL_ARG_SRC_1, s}, {DNNL_ARG_DST, z}};
  if (fused) {
    dnnl::post_ops ops;
    ops.append_binary(algorithm::binary_add, full);
    attr.set_post_ops(ops);
    args.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, y);
  }
  program->add<dnnl::binary>({dnnl::binary::desc(algorithm::binary_mul, full, row, full), attr, program->engine()}, args);
  if (!fused)
    program->add<dnnl::binary>({dnnl::binary::desc(algorithm::binary_add, full, full, full), user_scratchpad(), program->engine()},
                               {{DNNL_ARG_SRC_0, z}, {DNNL_ARG_SRC_1, y}, {DNNL_ARG_DST, z}});
  return [program] { program->run(); };
}

class OneDnn {
 public:
  OneDnn(int threads, const int32_t* cores) { set_up_team(threads, cores); }
  void plan(const std::vector<forge_tensor>& inputs, const std::vector<forge_tensor>& outputs) {
    m_choice = fastest({{"binary_mul with binary_add as post-op", [](const auto& t) { return multiply_add(t, true); }},
                        {"binary_mul, binary_add", [](const auto& t) { return multiply_add(t, false); }}},
                       {inputs[0], inputs[1], inputs[2], outputs[0]});
  }
  void prepare() {}
  void run() { m_choice.run(); }
  std::string describe() const { return onednn_version() + (m_choice.how.empty() ? "" : ", " + m_choice.how); }

 private:
  Choice m_choice;
};

}  // namespace

extern "C" const forge_expert_v1* forge_expert(void) { return adapt<OneDnn>("scaled_add_f32", "onednn", false, false); }
