// SPDX-License-Identifier: Apache-2.0
// link: dnnl OpenMP::OpenMP_CXX
// oneDNN 2.6 has no attention, so it is composed: matmul q k^T with the scale as its output scale, the causal mask, softmax in place,
// matmul with v. Two shapes of it are timed:
// - whole: batched primitives on [batch * heads, seq, seq], the mask written by a plain loop between them (as a post-op of the matmul it
//   leads to the library's reference code, hundreds of times slower); all scores go through memory;
// - blocks: R queries of a head at a time, on one thread each, the longest first. Scores of a block stay in that core's cache and only
//   the keys up to its last query are multiplied. The triangle behind the diagonal is overwritten by a plain loop.
#include <algorithm>
#include <cmath>
#include <limits>

#include "forge/onednn_expert.h"

namespace {

using namespace forge::expert;
using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto f32 = memory::data_type::f32;

struct Shape {
  int64_t batch_heads, seq, dim, dim_v;
  float factor() const { return 1 / std::sqrt(static_cast<float>(dim)); }
};
Shape shape_of(const std::vector<forge_tensor>& t) { return {t[0].shape[0] * t[0].shape[1], t[0].shape[2], t[0].shape[3], t[2].shape[3]}; }

dnnl::softmax_v2_forward::primitive_desc softmax_of(const memory::desc& md, int axis, const dnnl::engine& engine) {
  return {dnnl::softmax_v2_forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, md, md, axis),
          user_scratchpad(), engine};
}

std::function<void()> whole(const std::vector<forge_tensor>& t) {
  const Shape s = shape_of(t);
  auto program = std::make_shared<Program>();
  const memory::desc q({s.batch_heads, s.seq, s.dim}, f32, Tag::abc), k({s.batch_heads, s.dim, s.seq}, f32, Tag::acb);
  const memory::desc v({s.batch_heads, s.seq, s.dim_v}, f32, Tag::abc), scores({s.batch_heads, s.seq, s.seq}, f32, Tag::abc);
  const memory::desc out({s.batch_heads, s.seq, s.dim_v}, f32, Tag::abc);
  auto attr = user_scratchpad();
  attr.set_output_scales(0, {s.factor()});
  const memory p = program->temporary(scores);
  program->add<dnnl::matmul>(
      {dnnl::matmul::desc(q, k, scores), attr, program->engine()},
      {{DNNL_ARG_SRC, program->bind(q, t[0].data)}, {DNNL_ARG_WEIGHTS, program->bind(k, t[1].data)}, {DNNL_ARG_DST, p}});
  program->add_call("mask", [data = static_cast<float*>(p.get_data_handle()), s] {
#pragma omp parallel for
    for (int64_t row = 0; row < s.batch_heads * s.seq; row++)
      std::fill(data + row * s.seq + row % s.seq + 1, data + (row + 1) * s.seq, -std::numeric_limits<float>::infinity());
  });
  program->add<dnnl::softmax_v2_forward>(softmax_of(scores, 2, program->engine()), {{DNNL_ARG_SRC, p}, {DNNL_ARG_DST, p}});
  program->add<dnnl::matmul>(
      {dnnl::matmul::desc(p.get_desc(), v, out), user_scratchpad(), program->engine()},
      {{DNNL_ARG_SRC, p}, {DNNL_ARG_WEIGHTS, program->bind(v, t[2].data)}, {DNNL_ARG_DST, program->bind(out, t[3].data)}});
  return [program] { program->run(); };
}

// R queries of one head, as memory objects of one thread. The primitives of a block position are the same for every head.
class Blocks {
 public:
  Blocks(const std::vector<forge_tensor>& t, int64_t block) : m_shape(shape_of(t)), m_engine(dnnl::engine::kind::cpu, 0) {
    const Shape& s = m_shape;
    const int threads = omp_get_max_threads();
    std::size_t scratchpad = 64;
    for (int64_t end = s.seq; end > 0; end = (end - 1) / block * block) {  // the longest first
      m_positions.push_back(make(end, end - (end - 1) / block * block));
      scratchpad = std::max(scratchpad, m_positions.back().scratchpad);
    }
    for (int i = 0; i < threads; i++) {
      Thread& thread = m_threads.emplace_back(Thread{dnnl::stream(m_engine), Block(block * s.seq * sizeof(float)), Block(scratchpad), {}});
      for (int64_t h = 0; h < s.batch_heads; h++)
        for (const Position& p : m_positions) thread.tasks.push_back(bind(t, thread, p, h));
    }
  }
  void run() {
    bool failed = false;
    const auto count = static_cast<int64_t>(m_threads[0].tasks.size());
#pragma omp parallel num_threads(static_cast <int>(m_threads.size())) reduction(|| : failed)
    {
      Thread& thread = m_threads[static_cast<std::size_t>(omp_get_thread_num())];
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < count; i++) failed = run_task(thread, thread.tasks[static_cast<std::size_t>(i)]) || failed;
    }
    if (failed) throw std::runtime_error("a oneDNN primitive failed");
  }

 private:
  struct Position {  // queries [end - rows, end), keys [0, end)
    int64_t end, rows;
    dnnl::matmul::primitive_desc products, outputs;
    dnnl::softmax_v2_forward::primitive_desc softmax;
    dnnl::matmul multiply, combine;
    dnnl::softmax_v2_forward normalise;
    std::size_t scratchpad;
  };
  struct Task {
    const Position* position;
    std::vector<memory> memories;
    std::vector<dnnl_exec_arg_t> multiply, normalise, combine;
  };
  struct Thread {
    dnnl::stream stream;
    Block scores, scratchpad;
    std::vector<Task> tasks;
  };

  Position make(int64_t end, int64_t rows) const {
    const memory::desc q({rows, m_shape.dim}, f32, Tag::ab), k({m_shape.dim, end}, f32, Tag::ba), scores({rows, end}, f32, Tag::ab);
    const memory::desc v({end, m_shape.dim_v}, f32, Tag::ab), out({rows, m_shape.dim_v}, f32, Tag::ab);
    auto attr = user_scratchpad();
    attr.set_output_scales(0, {m_shape.factor()});
    const dnnl::matmul::primitive_desc products(dnnl::matmul::desc(q, k, scores), attr, m_engine);
    const dnnl::matmul::primitive_desc outputs(dnnl::matmul::desc(scores, v, out), user_scratchpad(), m_engine);
    const auto softmax = softmax_of(scores, 1, m_engine);
    const std::size_t most =
        std::max({products.scratchpad_desc().get_size(), outputs.scratchpad_desc().get_size(), softmax.scratchpad_desc().get_size()});
    return {end, rows, products, outputs, softmax, dnnl::matmul(products), dnnl::matmul(outputs), dnnl::softmax_v2_forward(softmax), most};
  }

  Task bind(const std::vector<forge_tensor>& t, Thread& thread, const Position& p, int64_t head) const {
    Task task{&p, {}, {}, {}, {}};
    const auto add = [&](const memory::desc& md, void* data) {
      task.memories.emplace_back(md, m_engine, data);
      return task.memories.back().get();
    };
    const auto at = [&](int tensor, int64_t row, int64_t width) {
      return static_cast<float*>(t[static_cast<std::size_t>(tensor)].data) + (head * m_shape.seq + row) * width;
    };
    const int64_t first = p.end - p.rows;
    const dnnl_memory_t scores = add(p.products.dst_desc(), thread.scores.data());
    task.multiply = {{DNNL_ARG_SRC, add(p.products.src_desc(), at(0, first, m_shape.dim))},
                     {DNNL_ARG_WEIGHTS, add(p.products.weights_desc(), at(1, 0, m_shape.dim))},
                     {DNNL_ARG_DST, scores},
                     {DNNL_ARG_SCRATCHPAD, add(p.products.scratchpad_desc(), thread.scratchpad.data())}};
    task.normalise = {
        {DNNL_ARG_SRC, scores}, {DNNL_ARG_DST, scores}, {DNNL_ARG_SCRATCHPAD, add(p.softmax.scratchpad_desc(), thread.scratchpad.data())}};
    task.combine = {{DNNL_ARG_SRC, scores},
                    {DNNL_ARG_WEIGHTS, add(p.outputs.weights_desc(), at(2, 0, m_shape.dim_v))},
                    {DNNL_ARG_DST, add(p.outputs.dst_desc(), at(3, first, m_shape.dim_v))},
                    {DNNL_ARG_SCRATCHPAD, add(p.outputs.scratchpad_desc(), thread.scratchpad.data())}};
    return task;
  }

  static bool run_task(Thread& thread, const Task& task) {
    const Position& p = *task.position;
    const auto execute = [&](const dnnl::primitive& primitive, const std::vector<dnnl_exec_arg_t>& args) {
      return dnnl_primitive_execute(primitive.get(), thread.stream.get(), static_cast<int>(args.size()), args.data()) == dnnl_success;
    };
    if (!execute(p.multiply, task.multiply)) return true;
    float* scores = thread.scores.as<float>();
    for (int64_t i = 0; i < p.rows; i++)
      for (int64_t j = p.end - p.rows + i + 1; j < p.end; j++) scores[i * p.end + j] = -std::numeric_limits<float>::infinity();
    return !execute(p.normalise, task.normalise) || !execute(p.combine, task.combine);
  }

  Shape m_shape;
  dnnl::engine m_engine;
  std::vector<Position> m_positions;
  std::vector<Thread> m_threads;
};

std::function<void()> blocked(const std::vector<forge_tensor>& t, int64_t block) {
  if (block > 64 && t[0].shape[2] <= block / 2) throw std::runtime_error("the sequence is short");
  auto blocks = std::make_shared<Blocks>(t, block);
  return [blocks] { blocks->run(); };
}

class OneDnn {
 public:
  OneDnn(int threads, const int32_t* cores) { set_up_team(threads, cores); }
  void plan(const std::vector<forge_tensor>& inputs, const std::vector<forge_tensor>& outputs) {
    m_choice = fastest({{"matmul, mask, softmax, matmul by blocks of 64 queries", [](const auto& t) { return blocked(t, 64); }},
                        {"matmul, mask, softmax, matmul by blocks of 128 queries", [](const auto& t) { return blocked(t, 128); }},
                        {"matmul, mask, softmax, matmul by blocks of 256 queries", [](const auto& t) { return blocked(t, 256); }},
                        {"matmul, mask, softmax, matmul on the whole tensor", whole}},
                       {inputs[0], inputs[1], inputs[2], outputs[0]});
  }
  void prepare() {}
  void run() { m_choice.run(); }
  std::string describe() const { return onednn_version() + (m_choice.how.empty() ? "" : ", " + m_choice.how); }

 private:
  Choice m_choice;
};

}  // namespace

extern "C" const forge_expert_v1* forge_expert(void) { return adapt<OneDnn>("attention_fwd_f32", "onednn", true, false); }
