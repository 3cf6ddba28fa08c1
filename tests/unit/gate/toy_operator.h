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
