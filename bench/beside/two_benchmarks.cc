// SPDX-License-Identifier: Apache-2.0
// Google Benchmark on two kernels in one program, so that their repetitions can be interleaved at random, as its documentation
// advises. BASELINE and CONTENDER in the environment are the shared objects.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "operands.h"

namespace {

using Call = int (*)(const float*, const float*, float*, long);

Call opened(const char* variable) {
  const char* path = std::getenv(variable);
  void* object = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* call = object == nullptr ? nullptr : dlsym(object, "beside_call");
  if (call == nullptr) {
    std::fprintf(stderr, "%s must name a shared object with beside_call in it\n", variable);
    std::exit(2);
  }
  return reinterpret_cast<Call>(call);
}

void kernel(benchmark::State& state, Call call) {
  static const beside::Operands o;  // the same addresses for both
  for (auto _ : state)
    if (call(o.a.get(), o.b.get(), o.c.get(), beside::kRows) != 0) state.SkipWithError("the kernel refused the call");
}

}  // namespace

int main(int argc, char** argv) {
  for (const auto& [name, variable] : {std::pair{"baseline", "BASELINE"}, {"contender", "CONTENDER"}})
    benchmark::RegisterBenchmark(name, kernel, opened(variable))->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
