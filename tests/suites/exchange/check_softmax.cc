// SPDX-License-Identifier: Apache-2.0
// Calls an exported softmax_f32 beside the operator's oracle, on one launcher, shapes up and down. check_softmax ORACLE.so
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "forge/oracle.h"
#include "softmax_f32.h"

namespace k = forge_export::softmax_f32;

int main(int, char** argv) {
  void* plugin = dlopen(argv[1], RTLD_NOW);
  if (!plugin) return std::fprintf(stderr, "%s\n", dlerror()), 2;
  const auto* oracle = reinterpret_cast<const forge_oracle_v1* (*)()>(dlsym(plugin, "forge_oracle"))();
  constexpr long kColumns = 4096, kMost = 200;
  auto* x = static_cast<float*>(std::aligned_alloc(64, kMost * kColumns * 4));
  auto* y = static_cast<float*>(std::aligned_alloc(64, kMost * kColumns * 4));
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 3);
  for (long i = 0; i < kMost * kColumns; i++) x[i] = normal(random);
  k::Launcher launcher(3);
  for (const long rows : {5L, 1L, 67L, 3L, 64L, 129L, 2L, 200L, 7L}) {
    for (long i = 0; i < kMost * kColumns; i++) y[i] = NAN;
    k::Arguments a;
    a.x = x, a.y = y, a.rows = rows;
    if (launcher.run(a) != k::Outcome::done) return std::fprintf(stderr, "rows %ld: %s\n", rows, launcher.why()), 1;
    const int64_t shape[] = {rows, kColumns};
    const forge_tensor in{"x", x, 2, 32, 2, shape}, out{"y", nullptr, 2, 32, 2, shape};
    std::vector<double> expected(static_cast<std::size_t>(rows * kColumns)), scale(expected.size());
    double *e = expected.data(), *s = scale.data();
    if (oracle->expected(&in, 1, &out, 1, &e, &s, 0, rows) != 0) return 2;
    double worst = 0;
    for (long i = 0; i < rows * kColumns; i++) {
      const double error = std::fabs(y[i] - e[i]) / (2.1e-5 * std::fabs(e[i]) + 1e-36);
      if (!(error <= 1)) return std::fprintf(stderr, "rows %ld: y[%ld] is %g, not %g\n", rows, i, double(y[i]), e[i]), 1;
      worst = std::fmax(worst, error);
    }
    for (long i = rows * kColumns; i < kMost * kColumns; i++)
      if (!std::isnan(y[i])) return std::fprintf(stderr, "rows %ld: wrote beyond its end\n", rows), 1;
    std::printf("rows %ld: worst error %.3f of its bound\n", rows, worst);
  }
  // What must be refused, and what it says.
  k::Arguments a;
  a.x = x, a.y = y, a.rows = 0;
  const auto says = [&](k::Outcome wanted) {
    const bool right = launcher.run(a) == wanted;
    std::printf("%s%s\n", right ? "" : "WRONG ", launcher.why());
    return right;
  };
  bool right = says(k::Outcome::unsupported);
  a.rows = -1, right &= says(k::Outcome::bad_argument);
  a.rows = 1L << 40, right &= says(k::Outcome::bad_argument);
  a.rows = 4, a.x = x + 1, right &= says(k::Outcome::bad_argument);
  a.x = nullptr, right &= says(k::Outcome::bad_argument);
  return right ? 0 : 1;
}
