// SPDX-License-Identifier: Apache-2.0
// An expert's shared object behind include/forge/expert.h, opened and called with care: experts are C++ behind a C door, and what
// they throw must not end the process without a word. For the CPU's runner and the GPU's alike.
#pragma once
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "forge/expert.h"
#include "runner/serve.h"

namespace forge {

class ExpertPlugin {
 public:
  // Opens the library, checks its door and creates the expert. `stream`: of a GPU, whose experts must take it; null on a CPU.
  static Answer open(const std::string& path, const std::vector<std::int32_t>& cores, void* stream, ExpertPlugin&);

  // Tensors stay the caller's until the next plan.
  Answer plan(const forge_tensor* inputs, std::uint32_t input_count, const forge_tensor* outputs, std::uint32_t output_count);
  // `inside_s`, when given: this process's monotonic clock around the library's run() alone.
  Answer run(double* inside_s = nullptr);
  bool run_bare() { return m_api->run(m_self) == 0; }  // inside a guard of the caller's
  void describe(wire::Reply&) const;

  template <class F>
  static Answer guarded(const char* what, F&& f) {
    try {
      return f();
    } catch (const std::bad_alloc&) {
      return {wire::Outcome::out_of_memory, std::string(what) + ": out of memory"};
    } catch (const std::exception& e) {
      return {wire::Outcome::refused, std::string(what) + ": " + e.what()};
    } catch (...) {
      return {wire::Outcome::refused, std::string(what) + ": threw something"};
    }
  }

 private:
  const forge_expert_v1* m_api = nullptr;
  void* m_self = nullptr;
};

}  // namespace forge
