// SPDX-License-Identifier: Apache-2.0
// For experts on oneDNN: a list of primitives bound to memory, run without allocating (scratchpads are the user's), and the
// OpenMP team that oneDNN runs on, one pinned thread a core. Plugins that include this say "// link: dnnl OpenMP::OpenMP_CXX".
#pragma once
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>

#include "forge/expert_plugin.h"

namespace forge::expert {

// The team is libgomp's, so it exists once a process; a runner holds one expert.
inline void set_up_team(int threads, const int32_t* cores) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(1);
  omp_set_num_threads(threads);
#pragma omp parallel num_threads(threads)
  pin_to(cores[omp_get_thread_num()]);
}

inline std::string onednn_version() {
  const dnnl_version_t* v = dnnl::version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch) + " (OpenMP, " +
         std::to_string(omp_get_max_threads()) + " threads)";
}

inline dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// Primitives in order. Not copied after the first add(): the steps refer to the memory objects held here.
class Program {
 public:
  Program() : m_engine(dnnl::engine::kind::cpu, 0), m_stream(m_engine) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  const dnnl::engine& engine() const { return m_engine; }

  dnnl::memory bind(const dnnl::memory::desc& md, void* data) { return dnnl::memory(md, m_engine, data); }
  dnnl::memory temporary(const dnnl::memory::desc& md) {
    m_blocks.emplace_back(md.get_size() + 64);
    return bind(md, m_blocks.back().data());
  }
  // `pd` was made with user_scratchpad() among its attributes.
  template <class Primitive>
  void add(const typename Primitive::primitive_desc& pd, std::vector<std::pair<int, dnnl::memory>> args) {
    if (pd.scratchpad_desc().get_size() > 0) args.emplace_back(DNNL_ARG_SCRATCHPAD, temporary(pd.scratchpad_desc()));
    m_names += (m_names.empty() ? "" : " + ") + std::string(pd.impl_info_str());
    Step step{Primitive(pd), {}, {}, {}};
    for (auto& [index, memory] : args) {
      step.args.push_back({index, memory.get()});
      step.memories.push_back(std::move(memory));
    }
    m_steps.push_back(std::move(step));
  }
  // Code between the primitives that is not oneDNN's; describe() must say so.
  void add_call(const std::string& name, std::function<void()> call) {
    m_names += (m_names.empty() ? "" : " + ") + name;
    m_steps.push_back({{}, {}, {}, std::move(call)});
  }
  void run() {
    for (const Step& step : m_steps) {
      if (step.call)
        step.call();
      else if (dnnl_primitive_execute(step.primitive.get(), m_stream.get(), static_cast<int>(step.args.size()), step.args.data()) !=
               dnnl_success)
        throw std::runtime_error("dnnl_primitive_execute failed");
    }
  }
  const std::string& names() const { return m_names; }  // oneDNN's names of the implementations, in order

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> args;
    std::vector<dnnl::memory> memories;
    std::function<void()> call;
  };
  dnnl::engine m_engine;
  dnnl::stream m_stream;
  std::vector<Block> m_blocks;
  std::vector<Step> m_steps;
  std::string m_names;
};

}  // namespace forge::expert
