// SPDX-License-Identifier: Apache-2.0
// Google Benchmark on the one kernel that is linked in: `compare.py benchmarks` runs two such programs, one after the other.
#include <benchmark/benchmark.h>

#include "operands.h"

extern "C" int beside_call(const float*, const float*, float*, long);

namespace {

void kernel(benchmark::State& state) {
  const beside::Operands o;
  for (auto _ : state)
    if (beside_call(o.a.get(), o.b.get(), o.c.get(), beside::kRows) != 0) state.SkipWithError("the kernel refused the call");
}
// The kernel has threads of its own, so the clock on the wall is what counts.
BENCHMARK(kernel)->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
