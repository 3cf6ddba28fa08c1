// SPDX-License-Identifier: Apache-2.0
// Compiles small kernels at test time and runs them in a real runner process.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "runner/runner.h"
#include "util/process.h"

namespace forge {

inline const char* k_args_text = R"(
#include <stdint.h>
struct forge_args { const float* x; float* y; float* w; int32_t n; int32_t extra; };
struct forge_block { int index, count, worker, workers; void* scratch; };
)";

// y[i] = f(x[i]) over n floats, one workspace w: enough to misbehave in every way.
class KernelTest : public ::testing::Test {
 protected:
  static constexpr std::size_t k_n = 1000;

  static Image compile(const std::string& source, std::int64_t scratch = 0) {
    auto folder = TempDir::make("kernel");
    EXPECT_TRUE(folder);
    EXPECT_TRUE(write_file_atomic(folder->path() / "kernel.cpp", k_args_text + source));
    ProcessOptions o;
    o.argv = {"g++",
              "-c",
              "-O2",
              "-mavx2",
              "-mfma",
              "-ffreestanding",
              "-fpie",
              "-fvisibility=hidden",
              "-fno-exceptions",
              "-fno-rtti",
              "-fno-stack-protector",
              "-fno-asynchronous-unwind-tables",
              "-fcf-protection=none",
              "-fno-jump-tables",
              "-fno-builtin",
              "kernel.cpp",
              "-o",
              "kernel.o"};
    o.env = {"PATH=/usr/bin:/bin"};
    o.cwd = folder->path();
    const auto r = run_process(o);
    EXPECT_TRUE(r && r->exit_code == 0) << (r ? r->output : r.error().text());
    Image image;
    image.bytes = *read_file(folder->path() / "kernel.o");
    image.sha256 = "0123456789abcdef";
    LaunchSpec l;
    l.entry = "k";
    image.plan.launches = {l};
    m_scratch = scratch;
    return image;
  }

  static RunnerOptions options() {
    RunnerOptions o;
    o.cores = usable_cores();
    if (o.cores.size() > 2) o.cores.resize(2);
    o.program = std::string(FORGE_BINARY_DIR) + "/forge-runner";
    o.call_timeout_s = 5;
    return o;
  }

  void SetUp() override {
    auto x = SharedBuffer::make(k_n * 4, "x");
    auto y = SharedBuffer::make(k_n * 4, "y");
    auto w = SharedBuffer::make(k_n * 4, "w", 1024);
    ASSERT_TRUE(x && y && w);
    m_x = std::make_unique<SharedBuffer>(std::move(*x));
    m_y = std::make_unique<SharedBuffer>(std::move(*y));
    m_w = std::make_unique<SharedBuffer>(std::move(*w));
    for (std::size_t i = 0; i < k_n; ++i) floats(*m_x)[i] = static_cast<float>(i) * 0.5f;
  }

  static float* floats(SharedBuffer& b) { return reinterpret_cast<float*>(b.data()); }

  CallSpec spec(std::int64_t grid = 4) const {
    CallSpec c;
    c.plan.launches = {{"k", grid, m_scratch}};
    c.plan.workspaces = {{"w", static_cast<std::int64_t>(k_n * 4), WorkspaceInit::poison}};
    c.plan.lets = {{"extra", 7}};
    using Kind = ArgField::Kind;
    c.layout.fields = {{.kind = Kind::tensor, .name = "x", .index = 0, .offset = 0, .bytes = 8},
                       {.kind = Kind::tensor, .name = "y", .index = 1, .output = true, .offset = 8, .bytes = 8},
                       {.kind = Kind::workspace, .name = "w", .index = 0, .offset = 16, .bytes = 8},
                       {.kind = Kind::axis, .name = "n", .dtype = DType::i32, .offset = 24, .bytes = 4},
                       {.kind = Kind::let, .name = "extra", .dtype = DType::i32, .offset = 28, .bytes = 4}};
    c.layout.bytes = 32;
    c.inputs = {{m_x.get(), Access::read}};
    c.outputs = {{m_y.get(), Access::write}};
    c.workspaces = {{m_w.get(), Access::write}};
    c.input_specs = {{"x", DType::f32, false, {"n"}}};
    c.output_specs = {{"y", DType::f32, false, {"n"}}};
    c.input_shapes = c.output_shapes = {{static_cast<std::int64_t>(k_n)}};
    c.axes = {{"n", static_cast<std::int64_t>(k_n)}};
    return c;
  }

  // Starts, prepares, calls once; the failure of whichever step fails.
  RunnerResult<CallTiming> run_once(const std::string& source, std::int64_t grid = 4, std::int64_t scratch = 0,
                                    RunnerOptions o = options()) {
    auto runner = start_image_runner(compile(source, scratch), o);
    if (!runner) return tl::unexpected(runner.error());
    if (auto p = (*runner)->prepare(spec(grid)); !p) return tl::unexpected(p.error());
    return (*runner)->call();
  }

  static inline std::int64_t m_scratch = 0;
  std::unique_ptr<SharedBuffer> m_x, m_y, m_w;
};

inline const char* k_double = R"(
extern "C" __attribute__((visibility("default"))) void k(const forge_args* a, const forge_block* b) {
  for (int i = b->index; i < a->n; i += b->count) a->y[i] = a->x[i] * 2 + a->extra;
}
)";

}  // namespace forge
