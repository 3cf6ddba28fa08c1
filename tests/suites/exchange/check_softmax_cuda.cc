// SPDX-License-Identifier: Apache-2.0
// Calls an exported softmax_f32 on a GPU and holds it against sums in double. Needs a card; without one it is only compiled.
#include <cuda.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "softmax_f32.h"

namespace k = forge_export::softmax_f32;

int main() {
  constexpr long kColumns = 4096, kMost = 300;
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return std::fprintf(stderr, "no card\n"), 2;
  k::Launcher launcher;
  k::Arguments a;
  bool right = launcher.run(a) == k::Outcome::bad_argument;
  std::printf("%s%s\n", right ? "" : "WRONG ", launcher.why());
  if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) return 2;
  CUstream stream = nullptr;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  const std::size_t bytes = kMost * kColumns * 4;
  if (cuMemAlloc(&a.x, bytes) != CUDA_SUCCESS || cuMemAlloc(&a.y, bytes) != CUDA_SUCCESS) return 2;
  std::vector<float> x(kMost * kColumns), y(x.size());
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 3);
  for (float& v : x) v = normal(random);
  cuMemcpyHtoD(a.x, x.data(), bytes);
  for (const long rows : {5L, 1L, 67L, 300L, 3L, 129L}) {
    cuMemsetD8(a.y, 0xff, bytes);
    a.rows = rows;
    for (int call = 0; call < 3; call++)
      if (launcher.run(a, stream) != k::Outcome::done) return std::fprintf(stderr, "rows %ld: %s\n", rows, launcher.why()), 1;
    if (cuStreamSynchronize(stream) != CUDA_SUCCESS) return std::fprintf(stderr, "rows %ld: a kernel failed\n", rows), 1;
    cuMemcpyDtoH(y.data(), a.y, bytes);
    double worst = 0;
    for (long r = 0; r < rows; r++) {
      double m = -INFINITY, sum = 0;
      for (long c = 0; c < kColumns; c++) m = std::fmax(m, x[r * kColumns + c]);
      for (long c = 0; c < kColumns; c++) sum += std::exp(x[r * kColumns + c] - m);
      for (long c = 0; c < kColumns; c++) {
        const double e = std::exp(x[r * kColumns + c] - m) / sum, error = std::fabs(y[r * kColumns + c] - e) / e;
        if (!(error < 2.1e-5))
          return std::fprintf(stderr, "rows %ld: y[%ld][%ld] is %g, not %g\n", rows, r, c, double(y[r * kColumns + c]), e), 1;
        worst = std::fmax(worst, error);
      }
    }
    for (std::size_t i = rows * kColumns; i < y.size(); i++)
      if (!std::isnan(y[i])) return std::fprintf(stderr, "rows %ld: wrote beyond its end\n", rows), 1;
    std::printf("rows %ld: worst relative error %.2g\n", rows, worst);
  }
  const auto says = [&](k::Outcome wanted) {
    const bool as_wanted = launcher.run(a, stream) == wanted;
    std::printf("%s%s\n", as_wanted ? "" : "WRONG ", launcher.why());
    right &= as_wanted;
  };
  a.rows = 0, says(k::Outcome::unsupported);
  a.rows = -1, says(k::Outcome::bad_argument);
  a.rows = 4, a.x += 4, says(k::Outcome::bad_argument);
  a.x = 0, says(k::Outcome::bad_argument);
  return right ? 0 : 1;
}
