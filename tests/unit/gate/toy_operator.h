// SPDX-License-Identifier: Apache-2.0
// The toy operator of tests/fixtures, its oracle built once by the compiler, and a kernel for it that runs inside the test.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "gate/catalog.h"
#include "gate/judge.h"
#include "gate/numeric.h"
#include "util/process.h"

namespace forge {

// Builds a plugin from `source` as <folder>/oracle.so.
inline ::testing::AssertionResult build_plugin(const fs::path& source, const fs::path& folder) {
  fs::create_directories(folder);
  ProcessOptions options;
  options.argv = {"g++",
                  "-std=c++20",
                  "-O1",
                  "-shared",
                  "-fPIC",
                  "-I",
                  std::string(FORGE_SOURCE_DIR) + "/include",
                  source.string(),
                  "-o",
                  (folder / "oracle.so").string()};
  options.env = {std::string("PATH=") + (std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin")};
  auto result = run_process(options);
  if (!result) return ::testing::AssertionFailure() << result.error().text();
  if (result->exit_code != 0) return ::testing::AssertionFailure() << result->output;
  return ::testing::AssertionSuccess();
}

inline const Paths& toy_paths() {
  static TempDir folder = std::move(*TempDir::make("toy"));
  static const Paths paths = [] {
    Paths p{.data = fs::path(FORGE_SOURCE_DIR) / "tests/fixtures", .plugins = folder.path(), .home = folder.path()};
    EXPECT_TRUE(build_plugin(p.data / "operators/toy_affine/oracle.cc", folder.path() / "toy_affine"));
    return p;
  }();
  return paths;
}

inline std::unique_ptr<Judge> toy_judge(int threads = 2) {
  auto op = load_operator(toy_paths(), "toy_affine");
  EXPECT_TRUE(op) << op.error().text();
  JudgeOptions options;
  options.cores.assign(static_cast<std::size_t>(threads), 0);
  auto judge = Judge::make(*op, options);
  EXPECT_TRUE(judge) << judge.error().text();
  return std::move(*judge);
}

// y = alpha x, written for one test: its task, and what adversarial() does to x (columns values a row) and alpha.
struct ScaledToy {
  explicit ScaledToy(const std::string& task, const std::string& adversarial = "", const std::string& value = "*alpha * x[i]") {
    const fs::path place = folder.path() / "operators/scaled";
    fs::create_directories(place);
    EXPECT_TRUE(write_file_atomic(place / "definition.json", R"({"name": "scaled", "op_type": "toy", "description": "y = alpha x",
      "axes": {"rows": {"type": "var"}, "columns": {"type": "const", "value": 64}},
      "inputs": {"x": {"shape": ["rows", "columns"], "dtype": "float32"}, "alpha": {"shape": null, "dtype": "float32"}},
      "outputs": {"y": {"shape": ["rows", "columns"], "dtype": "float32"}}, "reference": "def run(x, alpha):\n    return alpha * x\n"})"));
    EXPECT_TRUE(write_file_atomic(place / "task.toml", R"(format = 1
operator = "scaled"
timed = { axes = { rows = 40 }, generator = "normal" }
workload = [{ name = "one", axes = { rows = 1 }, generator = "normal" }]
hidden = [{ axis = "rows", min = 2, max = 9, count = 1, always = [1] }]
judge = [{ output = "y", kind = "scaled", tolerance = 1e-6, source = "test" }]
cost = { flops = "rows * columns", bytes = "8 * rows * columns" }
)" + task));
    EXPECT_TRUE(write_file_atomic(place / "oracle.cc", R"(#include "forge/oracle.h"
#include <cmath>
static int32_t expected(const forge_tensor* in, int32_t, const forge_tensor*, int32_t, double* const* y, double* const* scale,
                        int64_t begin, int64_t end) {
  const auto* x = static_cast<const float*>(in[0].data);
  const auto* alpha = static_cast<const float*>(in[1].data);
  for (int64_t i = begin * 64; i < end * 64; i++) y[0][i] = )" +
                                                           value + R"(, scale[0][i] = std::fabs(y[0][i]);
  return 0;
}
[[maybe_unused]] static int32_t adversarial(const forge_tensor* in, int32_t, uint64_t seed, int32_t variant) {
  auto* x = static_cast<float*>(in[0].data);
  auto* alpha = static_cast<float*>(in[1].data);
  for (int64_t i = 0; i < in[0].shape[0] * 64; i++) x[i] = 1 + static_cast<float>((seed + i * 37) % 101);
  (void)alpha, (void)variant;
)" + adversarial + R"(
  return 2;
}
extern "C" const forge_oracle_v1* forge_oracle(void) {
  static const forge_oracle_v1 oracle{FORGE_ORACLE_VERSION, "scaled", expected, )" +
                                                           (adversarial.empty() ? "nullptr" : "adversarial") + R"(};
  return &oracle;
}
)"));
    EXPECT_TRUE(build_plugin(place / "oracle.cc", folder.path() / "scaled"));
  }
  TempDir folder = std::move(*TempDir::make("scaled"));
  Paths paths{.data = folder.path(), .plugins = folder.path(), .home = folder.path()};
};

// The views that a kernel would have.
struct ToyCall {
  explicit ToyCall(const CallSpec& call)
      : rows(call.output_shapes[0][0]),
        columns(call.output_shapes[0][1]),
        x(reinterpret_cast<float*>(call.inputs[0].buffer->data())),
        b(reinterpret_cast<float*>(call.inputs[1].buffer->data())),
        y(reinterpret_cast<float*>(call.outputs[0].buffer->data())),
        top(reinterpret_cast<std::uint16_t*>(call.outputs[1].buffer->data())) {}
  void run() const {
    for (std::int64_t r = 0; r < rows; ++r) {
      float most = 0;
      for (std::int64_t c = 0; c < columns; ++c) {
        y[r * columns + c] = 2 * x[r * columns + c] + b[c];
        most = std::fmax(most, std::fabs(x[r * columns + c]));
      }
      encode(DType::bf16, most, top + r);
    }
  }
  std::int64_t rows, columns;
  float *x, *b, *y;
  std::uint16_t* top;
};

}  // namespace forge
