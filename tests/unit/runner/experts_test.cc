// SPDX-License-Identifier: Apache-2.0
// Every expert against the oracle of its operator, under the judge's own tolerance, on ordinary and on adversarial content.
#include <set>

#include "operator_fixture.h"
#include "util/process.h"

// With the sanitizers: the leak checker crashes when it looks at oneDNN's threads at exit ("Tracer caught signal 11").
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace forge::test {
namespace {

struct Loaded {
  Loaded(const std::string& op, const std::string& name) {
    const int cores[2] = {0, 1};
    expert = load<forge_expert_v1>(plugin(op, "expert-" + name + ".so"), "forge_expert");
    if (expert) self = expert->create(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1, cores);
  }
  ~Loaded() {
    if (expert) expert->destroy(self);
  }
  KeepAffinity affinity;
  const forge_expert_v1* expert = nullptr;
  void* self = nullptr;
};

void expect_right(const std::string& op, const std::string& name, std::int64_t rows,
                  const std::map<std::string, std::int64_t>& others = {}) {
  SCOPED_TRACE(op + " " + name + " rows " + std::to_string(rows));
  Bench b(op, rows, others);
  Loaded l(op, name);
  ASSERT_NE(l.self, nullptr);
  EXPECT_EQ(l.expert->version, FORGE_EXPERT_VERSION);
  EXPECT_EQ(l.expert->operator_name, op);
  EXPECT_EQ(l.expert->name, name);
  ASSERT_EQ(l.expert->plan(l.self, b.in_views.data(), Bench::size(b.in_views), b.out_views.data(), Bench::size(b.out_views)), 0)
      << l.expert->error(l.self);
  ASSERT_EQ(l.expert->prepare(l.self), 0) << l.expert->error(l.self);
  for (int variant = -1; variant < b.variants(); ++variant) {
    if (variant < 0)
      b.fill_normal(31);
    else
      b.fill_adversarial(6, variant);
    b.compute_expected();
    b.poison();
    std::vector<std::vector<std::byte>> before;
    for (const Tensor& t : b.inputs) before.push_back(t.storage);
    ASSERT_EQ(l.expert->run(l.self), 0) << l.expert->error(l.self);
    for (std::size_t o = 0; o < b.outputs.size(); ++o) EXPECT_LE(b.worst(o), 1) << b.outputs[o].spec.name << ", variant " << variant;
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(before[i] == b.inputs[i].storage) << "changed " << b.inputs[i].spec.name;
  }
  EXPECT_NE(std::string(l.expert->describe(l.self)).find(name == "onednn" ? "oneDNN" : "OpenBLAS"), std::string::npos);
}

TEST(Experts, GemmOnOneDnn) {
  for (const std::int64_t rows : {1, 37}) expect_right("gemm_f32", "onednn", rows);
}
TEST(Experts, GemmOnOpenBlas) {
  for (const std::int64_t rows : {1, 37}) expect_right("gemm_f32", "openblas", rows);
}
TEST(Experts, Conv2dOnOneDnn) {
  for (const std::int64_t batch : {1, 3}) expect_right("conv2d_f32", "onednn", batch);
}
TEST(Experts, Conv2dOnOpenBlas) {
  for (const std::int64_t batch : {1, 3}) expect_right("conv2d_f32", "openblas", batch);
}
TEST(Experts, SoftmaxOnOneDnn) {
  for (const std::int64_t rows : {1, 67}) expect_right("softmax_f32", "onednn", rows);
}
TEST(Experts, RmsNormOnOneDnn) {
  for (const std::int64_t rows : {1, 2, 67}) expect_right("fused_add_rmsnorm_bf16", "onednn", rows);
  const Loaded l("fused_add_rmsnorm_bf16", "onednn");
  EXPECT_EQ(l.expert->composed, 1);
}
TEST(Experts, AttentionOnOneDnn) {
  for (const std::int64_t rows : {1, 2, 70}) expect_right("attention_fwd_f32", "onednn", rows, {{"batch", rows == 2 ? 2 : 1}});
  const Loaded l("attention_fwd_f32", "onednn");
  EXPECT_EQ(l.expert->composed, 1);
}

// Runs in a process of its own, below: OpenBLAS reads its environment when it is loaded.
TEST(Experts, DISABLED_OldCoreIsRefused) {
  Bench b("gemm_f32", 4);
  Loaded l("gemm_f32", "openblas");
  ASSERT_NE(l.expert->plan(l.self, b.in_views.data(), 2, b.out_views.data(), 1), 0);
  const std::string error = l.expert->error(l.self);
  EXPECT_NE(error.find("Prescott"), std::string::npos) << error;
  EXPECT_NE(error.find("OPENBLAS_CORETYPE"), std::string::npos) << error;
  EXPECT_EQ(l.expert->describe(l.self), error);
}

TEST(Experts, OpenBlasOnAnOldCoreIsRefused) {
  ProcessOptions options;
  options.argv = {"/proc/self/exe", "--gtest_also_run_disabled_tests", "--gtest_filter=Experts.DISABLED_OldCoreIsRefused"};
  options.argv[0] = std::filesystem::read_symlink("/proc/self/exe").string();
  options.env = {"OPENBLAS_CORETYPE=Prescott", "PATH=/usr/bin:/bin", "ASAN_OPTIONS=detect_leaks=0"};
  const auto result = run_process(options);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->exit_code, 0) << result->output;
  EXPECT_NE(result->output.find("1 test"), std::string::npos) << result->output;
}

// Each operator has at least one expert, so that no run lacks a reference.
TEST(Experts, EveryOperatorHasOne) {
  for (const char* op : {"gemm_f32", "softmax_f32", "fused_add_rmsnorm_bf16", "conv2d_f32", "attention_fwd_f32"}) {
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(FORGE_BINARY_DIR) / "plugins" / op))
      if (file.path().filename().string().starts_with("expert-")) names.insert(file.path().stem());
    EXPECT_FALSE(names.empty()) << op;
  }
}

}  // namespace
}  // namespace forge::test
