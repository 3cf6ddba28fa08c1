// SPDX-License-Identifier: Apache-2.0
// link: dnnl OpenMP::OpenMP_CXX
// oneDNN has no RMSNorm and its binary primitive mixes no data types at speed, so the operator is composed of primitives that
// all have generated kernels (the reference implementations are a thousand times slower). For a block of rows that stays in
// the second-level cache:
//   x  = hidden_states                  reorder bf16 -> f32
//   x += residual                       reorder bf16 -> f32 with a sum post-op   (or: reorder and binary add)
//   residual_out = x                    reorder f32 -> bf16
//   s  = x * x                          eltwise square
//   m  = mean(s)                        reduction mean over the row
//   y  = x / sqrt(m + eps) * weight     layer normalization on given statistics, mean 0 and variance m, scale = weight
//                                       (or: m -> (m + eps)^-0.5 as the reduction's post-ops, then two binary multiplications)
//   output = y                          reorder f32 -> bf16
// Each thread of the team walks its own rows; inside a parallel region oneDNN runs a primitive on the calling thread alone.
// Compositions and block sizes are timed when a shape is planned. OpenBLAS as Debian builds it has no bfloat16, hence no expert.
#include "forge/onednn_expert.h"

namespace {

using namespace forge::expert;
using dnnl::algorithm;
using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto f32 = memory::data_type::f32;
constexpr auto bf16 = memory::data_type::bf16;
constexpr float kEps = 1e-6f;

// oneDNN generates code for bfloat16 only with AVX-512; below that its reorders take a hundred times as long as ours, and a
// reference slowed by them would be worthless. There the conversions, and nothing else, are done here.
bool conversions_are_generated() {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const memory::desc narrow({16, 4096}, bf16, Tag::ab), wide({16, 4096}, f32, Tag::ab);
  return std::string(dnnl::reorder::primitive_desc(engine, wide, engine, narrow).impl_info_str()).find("jit") != std::string::npos;
}

__attribute__((target("avx2"))) void widen(const std::uint16_t* from, float* to, int64_t count, bool accumulate) {
  if (accumulate) {
    for (int64_t i = 0; i < count; i++) to[i] += forge::fill::bf16_to_float(from[i]);
  } else {
    for (int64_t i = 0; i < count; i++) to[i] = forge::fill::bf16_to_float(from[i]);
  }
}

__attribute__((target("avx2"))) void narrow_to(const float* from, std::uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; i++) to[i] = forge::fill::float_to_bf16(from[i]);
}

// Adds a conversion between bfloat16 and float32 to a program. The memory is looked up when it runs, for its handle may change.
void convert(Program& program, const memory& from, const memory& to, bool accumulate) {
  static const bool generated = conversions_are_generated();
  if (generated) {
    auto attr = user_scratchpad();
    if (accumulate) {
      dnnl::post_ops ops;
      ops.append_sum(1.0f);
      attr.set_post_ops(ops);
    }
    const auto& engine = program.engine();
    program.add<dnnl::reorder>({engine, from.get_desc(), engine, to.get_desc(), attr}, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
    return;
  }
  const bool widening = from.get_desc().data_type() == bf16;
  const auto count = static_cast<int64_t>((widening ? to : from).get_desc().get_size() / sizeof(float));
  program.add_call("own conversion", [=] {
    if (widening)
      widen(static_cast<std::uint16_t*>(from.get_data_handle()), static_cast<float*>(to.get_data_handle()), count, accumulate);
    else
      narrow_to(static_cast<float*>(from.get_data_handle()), static_cast<std::uint16_t*>(to.get_data_handle()), count);
  });
}

struct Style {
  bool sum_in_reorder;  // else two reorders and a binary add
  bool layer_norm;      // else two binary multiplications
};

// The scratch of one thread, shared by its full blocks and its last, shorter one.
struct Scratch {
  Scratch(int64_t rows, int64_t h) : x(rows * h * 4), s(rows * h * 4), mean(rows * 4), variance(rows * 4), weight(h * 4) {
    std::fill_n(mean.as<float>(), rows, 0.0f);
  }
  Block x, s, mean, variance, weight;
};

// The primitives for `rows` rows; point_at() says which.
class BlockProgram {
 public:
  BlockProgram(const Scratch& scratch, int64_t rows, int64_t h, Style style) : m_rows(rows) {
    const memory::desc narrow({rows, h}, bf16, Tag::ab), wide({rows, h}, f32, Tag::ab), column({rows, 1}, f32, Tag::ab);
    m_hidden = m_program.bind(narrow, nullptr);
    m_residual = m_program.bind(narrow, nullptr);
    m_output = m_program.bind(narrow, nullptr);
    m_residual_out = m_program.bind(narrow, nullptr);
    const memory x = m_program.bind(wide, scratch.x.data()), s = m_program.bind(wide, scratch.s.data());
    const auto& engine = m_program.engine();
    const auto binary = [&](algorithm kind, const memory& a, const memory& b, const memory& to) {
      m_program.add<dnnl::binary>({dnnl::binary::desc(kind, a.get_desc(), b.get_desc(), to.get_desc()), user_scratchpad(), engine},
                                  {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, to}});
    };

    convert(m_program, m_hidden, x, false);
    if (style.sum_in_reorder) {
      convert(m_program, m_residual, x, true);
    } else {
      convert(m_program, m_residual, s, false);
      binary(algorithm::binary_add, x, s, x);
    }
    convert(m_program, x, m_residual_out, false);

    m_program.add<dnnl::eltwise_forward>(
        {dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_inference, algorithm::eltwise_square, wide, 0, 0), user_scratchpad(), engine},
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, s}});
    auto attr = user_scratchpad();
    if (!style.layer_norm) {
      dnnl::post_ops ops;
      ops.append_eltwise(1, algorithm::eltwise_linear, 1, kEps);
      ops.append_eltwise(1, algorithm::eltwise_pow, 1, -0.5f);
      attr.set_post_ops(ops);
    }
    const memory m = m_program.bind(column, scratch.variance.data());
    m_program.add<dnnl::reduction>({dnnl::reduction::desc(algorithm::reduction_mean, wide, column, 0, 0), attr, engine},
                                   {{DNNL_ARG_SRC, s}, {DNNL_ARG_DST, m}});

    if (style.layer_norm) {
      using dnnl::normalization_flags;
      const memory::desc statistics({rows}, f32, Tag::a), scale({h}, f32, Tag::a);
      const dnnl::layer_normalization_forward::desc desc(dnnl::prop_kind::forward_inference, wide, statistics, kEps,
                                                         normalization_flags::use_global_stats | normalization_flags::use_scale);
      m_program.add<dnnl::layer_normalization_forward>({desc, user_scratchpad(), engine},
                                                       {{DNNL_ARG_SRC, x},
                                                        {DNNL_ARG_DST, s},
                                                        {DNNL_ARG_MEAN, m_program.bind(statistics, scratch.mean.data())},
                                                        {DNNL_ARG_VARIANCE, m_program.bind(statistics, scratch.variance.data())},
                                                        {DNNL_ARG_SCALE, m_program.bind(scale, scratch.weight.data())}});
    } else {
      binary(algorithm::binary_mul, x, m, s);
      binary(algorithm::binary_mul, s, m_program.bind({{1, h}, f32, Tag::ab}, scratch.weight.data()), s);
    }
    convert(m_program, s, m_output, false);
    if (m_program.names().find("ref:any") != std::string::npos)
      throw std::runtime_error("a primitive has only a reference implementation: " + m_program.names());
  }
  int64_t rows() const { return m_rows; }
  void run_at(const std::vector<forge_tensor>& t, int64_t row) {
    const auto at = [&](const forge_tensor& tensor) { return static_cast<std::uint16_t*>(tensor.data) + row * tensor.shape[1]; };
    m_hidden.set_data_handle(at(t[0]));
    m_residual.set_data_handle(at(t[1]));
    m_output.set_data_handle(at(t[3]));
    m_residual_out.set_data_handle(at(t[4]));
    m_program.run();
  }

 private:
  int64_t m_rows;
  Program m_program;
  memory m_hidden, m_residual, m_output, m_residual_out;
};

// What one thread does: its rows, in blocks.
class Worker {
 public:
  Worker(const std::vector<forge_tensor>& tensors, int64_t begin, int64_t end, int64_t block, Style style)
      : m_tensors(tensors), m_begin(begin), m_end(end), m_scratch(std::min(block, end - begin), tensors[0].shape[1]) {
    const int64_t h = tensors[0].shape[1];
    const memory::desc narrow({h}, bf16, Tag::a), wide({h}, f32, Tag::a);
    convert(m_weight, m_weight.bind(narrow, tensors[2].data), m_weight.bind(wide, m_scratch.weight.data()), false);
    for (int64_t rows : {block, (end - begin) % block})
      if (rows > 0 && rows <= end - begin) m_blocks.push_back(std::make_unique<BlockProgram>(m_scratch, rows, h, style));
  }
  void run() {
    m_weight.run();
    int64_t row = m_begin;
    for (auto& block : m_blocks)
      for (; row + block->rows() <= m_end; row += block->rows()) block->run_at(m_tensors, row);
  }

 private:
  std::vector<forge_tensor> m_tensors;
  int64_t m_begin, m_end;
  Scratch m_scratch;
  Program m_weight;
  std::vector<std::unique_ptr<BlockProgram>> m_blocks;  // the full one, then the rest
};

std::function<void()> composed(const std::vector<forge_tensor>& t, int64_t block, Style style) {
  const int64_t rows = t[0].shape[0];
  const int threads = static_cast<int>(std::min<int64_t>(omp_get_max_threads(), rows));
  const int team = omp_get_max_threads();
  omp_set_num_threads(1);  // each primitive is made for the one thread that will run it
  std::vector<std::shared_ptr<Worker>> workers;
  try {
    for (int i = 0; i < threads; i++)
      workers.push_back(std::make_shared<Worker>(t, rows * i / threads, rows * (i + 1) / threads, block, style));
  } catch (...) {
    omp_set_num_threads(team);
    throw;
  }
  omp_set_num_threads(team);
  return [workers] {
    bool failed = false;
#pragma omp parallel num_threads(static_cast <int>(workers.size())) reduction(|| : failed)
    {
      try {
        workers[omp_get_thread_num()]->run();
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
    std::vector<Way> ways;
    const int64_t rows_a_thread = std::max<int64_t>(1, inputs[0].shape[0] / omp_get_max_threads());
    for (int64_t block : {128, 64, 256, 16, 4, 1}) {
      if (block > rows_a_thread || block * 64 < rows_a_thread) continue;  // too few rows; hopelessly many calls
      for (const Style style : {Style{true, true}, Style{false, true}, Style{true, false}}) {
        const std::string how =
            "by " + std::to_string(block) + " rows: " + (style.sum_in_reorder ? "reorder, reorder+sum" : "2 reorder, binary add") +
            ", reorder, square, mean" + (style.layer_norm ? ", layer norm on given statistics" : "+rsqrt, 2 binary mul") + ", reorder";
        ways.push_back({how, [block, style](const auto& t) { return composed(t, block, style); }});
      }
    }
    m_choice = fastest(ways, {inputs[0], inputs[1], inputs[2], outputs[0], outputs[1]}, 1.0);
  }
  void prepare() {}
  void run() { m_choice.run(); }
  std::string describe() const {
    return onednn_version() + ", composed" + (m_choice.how.empty() ? "" : " " + m_choice.how) +
           (conversions_are_generated() ? "" : "; bf16 conversions by our own AVX2 loops, as oneDNN has only slow ones below AVX-512");
  }

 private:
  Choice m_choice;
};

}  // namespace

extern "C" const forge_expert_v1* forge_expert(void) { return adapt<OneDnn>("fused_add_rmsnorm_bf16", "onednn", true, false); }
