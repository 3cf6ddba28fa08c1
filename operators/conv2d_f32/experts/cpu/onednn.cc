// SPDX-License-Identifier: Apache-2.0
// link: dnnl OpenMP::OpenMP_CXX
// oneDNN's float32 convolution. Every combination of algorithm and layout is timed when a shape is planned, and the fastest is kept.
// W is an input like X and the operator is NHWC on both sides, so reorders into the layouts that oneDNN prefers are part of run, as a
// kernel's own packing is part of its call.
#include "forge/onednn_expert.h"

namespace {

using namespace forge::expert;
using dnnl::algorithm;
using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto f32 = memory::data_type::f32;

struct Layouts {
  bool own_images, own_weights;  // the library chooses
};

std::function<void()> convolution(const std::vector<forge_tensor>& t, algorithm how, Layouts own) {
  const auto *x = t[0].shape, *w = t[1].shape;
  const memory::dims x_dims{x[0], x[3], x[1], x[2]}, w_dims{w[0], w[3], w[1], w[2]}, y_dims{x[0], w[0], x[1], x[2]};
  const memory::desc given_x(x_dims, f32, Tag::nhwc), given_w(w_dims, f32, Tag::acdb), given_y(y_dims, f32, Tag::nhwc);
  const auto image = [&](const memory::dims& dims, const memory::desc& given) {
    return own.own_images ? memory::desc(dims, f32, Tag::any) : given;
  };
  const memory::dims one{1, 1}, padding{w[1] / 2, w[2] / 2};
  auto program = std::make_shared<Program>();
  const dnnl::convolution_forward::primitive_desc pd(
      dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference, how, image(x_dims, given_x),
                                      own.own_weights ? memory::desc(w_dims, f32, Tag::any) : given_w, image(y_dims, given_y), one, padding,
                                      padding),
      user_scratchpad(), program->engine());
  // Plain loops, a hundred times as slow, which every plan would have to wait for.
  if (std::string(pd.impl_info_str()).starts_with("ref")) throw std::runtime_error("only the library's reference code serves this");
  const auto reorder = [&](const memory& from, const memory& to) {
    program->add<dnnl::reorder>({program->engine(), from.get_desc(), program->engine(), to.get_desc(), user_scratchpad()},
                                {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  };
  const auto moved = [&](memory from, const memory::desc& wanted) {
    if (wanted == from.get_desc()) return from;
    const memory to = program->temporary(wanted);
    reorder(from, to);
    return to;
  };
  const memory source = moved(program->bind(given_x, t[0].data), pd.src_desc());
  const memory weights = moved(program->bind(given_w, t[1].data), pd.weights_desc());
  const memory result = program->bind(given_y, t[2].data);
  const bool direct = pd.dst_desc() == given_y;
  if (own.own_images && pd.src_desc() == given_x && direct) throw std::runtime_error("no other layout of the images is preferred");
  if (own.own_weights && pd.weights_desc() == given_w) throw std::runtime_error("no other layout of the weights is preferred");
  const memory target = direct ? result : program->temporary(pd.dst_desc());
  program->add<dnnl::convolution_forward>(pd, {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, target}});
  if (!direct) reorder(target, result);
  return [program] { program->run(); };
}

class OneDnn {
 public:
  OneDnn(int threads, const int32_t* cores) { set_up_team(threads, cores); }
  void plan(const std::vector<forge_tensor>& inputs, const std::vector<forge_tensor>& outputs) {
    const std::pair<const char*, algorithm> algorithms[] = {
        {"direct", algorithm::convolution_direct}, {"Winograd", algorithm::convolution_winograd}, {"auto", algorithm::convolution_auto}};
    const std::pair<const char*, Layouts> layouts[] = {{"NHWC, W reordered in run", {false, true}},
                                                       {"X, W and Y reordered in run", {true, true}},
                                                       {"everything as given", {false, false}}};
    std::vector<Way> ways;
    for (const auto& [layout, own] : layouts)
      for (const auto& [name, how] : algorithms)
        ways.push_back({std::string(name) + ", " + layout, [how, own](const auto& t) { return convolution(t, how, own); }});
    m_choice = fastest(ways, {inputs[0], inputs[1], outputs[0]});
  }
  void prepare() {}
  void run() { m_choice.run(); }
  std::string describe() const { return onednn_version() + (m_choice.how.empty() ? "" : ", " + m_choice.how); }

 private:
  Choice m_choice;
};

}  // namespace

extern "C" const forge_expert_v1* forge_expert(void) { return adapt<OneDnn>("conv2d_f32", "onednn", false, false); }
