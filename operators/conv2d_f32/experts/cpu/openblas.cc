// SPDX-License-Identifier: Apache-2.0
// link: openblas pthread OpenMP::OpenMP_CXX
// im2col and OpenBLAS's cblas_sgemm: every thread writes the windows of some rows of Y as a matrix [pixels, r s channels], which stays in
// its cache, and multiplies it with W as given. How many rows at a time is chosen by timing.
#include <omp.h>

#include <cstring>

#include "forge/openblas_expert.h"

namespace {

using namespace forge::expert;

struct Shape {
  int64_t batch, height, width, channels, filters, r, s;
};

// Rows [p, p + rows) of an image's windows.
void im2col(const float* image, const Shape& d, int64_t p, int64_t rows, float* windows) {
  const int64_t run = d.s * d.channels, depth = d.r * run;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t q = 0; q < d.width; q++, windows += depth)
      for (int64_t r = 0; r < d.r; r++) {
        float* to = windows + r * run;
        const int64_t row = p + i + r - d.r / 2, column = q - d.s / 2;
        if (row < 0 || row >= d.height) {
          std::memset(to, 0, static_cast<std::size_t>(run) * sizeof(float));
          continue;
        }
        // The pixels of a window's row lie next to each other, as in the image, apart from what is outside of it.
        const int64_t left = column < 0 ? -column : 0, right = std::min(d.s, d.width - column);
        std::memset(to, 0, static_cast<std::size_t>(left * d.channels) * sizeof(float));
        std::memcpy(to + left * d.channels, image + (row * d.width + column + left) * d.channels,
                    static_cast<std::size_t>((right - left) * d.channels) * sizeof(float));
        std::memset(to + right * d.channels, 0, static_cast<std::size_t>((d.s - right) * d.channels) * sizeof(float));
      }
}

std::function<void()> convolution(const std::vector<forge_tensor>& t, int threads, int64_t rows) {
  const int64_t *x = t[0].shape, *w = t[1].shape;
  const Shape d{x[0], x[1], x[2], x[3], w[0], w[1], w[2]};
  const int64_t depth = d.r * d.s * d.channels;
  auto windows = std::make_shared<std::vector<Block>>();
  for (int i = 0; i < threads; i++) windows->emplace_back(static_cast<std::size_t>(rows * d.width * depth) * sizeof(float));
  const auto *images = static_cast<const float*>(t[0].data), *weights = static_cast<const float*>(t[1].data);
  auto* y = static_cast<float*>(t[2].data);
  return [=] {
    const int64_t bands = (d.height + rows - 1) / rows;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t i = 0; i < d.batch * bands; i++) {
      const int64_t n = i / bands, p = i % bands * rows, count = std::min(rows, d.height - p);
      auto* matrix = (*windows)[static_cast<std::size_t>(omp_get_thread_num())].as<float>();
      im2col(images + n * d.height * d.width * d.channels, d, p, count, matrix);
      const auto k = static_cast<int>(depth), columns = static_cast<int>(d.filters);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(count * d.width), columns, k, 1, matrix, k, weights, k, 0,
                  y + (n * d.height + p) * d.width * d.filters, columns);
    }
  };
}

class OpenBlas {
 public:
  OpenBlas(int threads, const int32_t* cores) : m_core(openblas_core()), m_threads(threads) {
    openblas_set_num_threads(1);  // every thread of the team multiplies for itself
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
#pragma omp parallel num_threads(threads)
    pin_to(cores[omp_get_thread_num()]);
  }
  void plan(const std::vector<forge_tensor>& inputs, const std::vector<forge_tensor>& outputs) {
    std::vector<Way> ways;
    for (const int64_t rows : {4, 2, 8, 14, 28})
      ways.push_back({std::to_string(rows) + " rows at a time", [this, rows](const auto& t) { return convolution(t, m_threads, rows); }});
    m_choice = fastest(ways, {inputs[0], inputs[1], outputs[0]});
  }
  void prepare() {}
  void run() { m_choice.run(); }
  std::string describe() const {
    return std::string(openblas_get_config()) + ", core " + m_core + ", " + std::to_string(m_threads) +
           " threads, im2col and cblas_sgemm by band" + (m_choice.how.empty() ? "" : ", " + m_choice.how);
  }

 private:
  std::string m_core;
  int m_threads;
  Choice m_choice;
};

}  // namespace

extern "C" const forge_expert_v1* forge_expert(void) { return adapt<OpenBlas>("conv2d_f32", "openblas", true, false); }
