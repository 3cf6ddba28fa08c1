// SPDX-License-Identifier: Apache-2.0
// A sealed kernel goes out by its id. Packages, and everything that an export is good for: tests/suites/exchange.sh.
#include <gtest/gtest.h>

#include <cstdlib>

#include "build/build.h"
#include "cli/command.h"
#include "vault/vault.h"

namespace forge {
namespace {

int command(std::vector<std::string> words) {
  words.insert(words.begin(), "forge");
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  return main_of_forge(static_cast<int>(words.size()), argv.data());
}

TEST(Exchange, ExportsASealedKernelByItsId) {
  if (!fs::exists(FORGE_BINARY_DIR "/plugins/softmax_f32/oracle.so")) GTEST_SKIP() << "softmax_f32 is not built here";
  const auto folder = TempDir::make("exchange");
  ASSERT_TRUE(folder);
  const fs::path home = folder->path() / "home", out = folder->path() / "out";
  const char* before = std::getenv("FORGE_HOME");
  const std::string old_home = before ? before : "";
  setenv("FORGE_HOME", home.c_str(), 1);
  setenv("FORGE_DATA", FORGE_SOURCE_DIR, 1);
  setenv("FORGE_PLUGINS", FORGE_BINARY_DIR "/plugins", 1);

  Generation g;
  const auto package = read_package_folder(FORGE_SOURCE_DIR "/tests/suites/exchange/softmax");
  ASSERT_TRUE(package) << package.error().text();
  g.package = *package;
  g.id = package_hash(g.package);
  g.operator_name = "softmax_f32", g.target = "cpu:x86-64-avx2", g.number = 3, g.run_id = "by hand", g.date = "2026-01-02T03:04:05Z";
  g.verdict = Verdict::passed(CorrectnessReport{}, Measurement{});
  const auto vault = Vault::open(home);
  ASSERT_TRUE(vault);
  ASSERT_TRUE(Vault(*vault).seal(g));

  EXPECT_EQ(command({"export", "gen:" + g.id.substr(0, 8), "--as", "cpp", out.string()}), kOk);
  EXPECT_EQ(read_file(out / "kernel.cpp").value_or(""), g.package.source);
  EXPECT_NE(read_file(out / "README.md").value_or("").find("gen3 " + g.id.substr(0, 12) + " of softmax_f32"), std::string::npos);
  EXPECT_EQ(command({"export", g.id, "--as", "flashinfer-trace", (out / "s.json").string()}), kOk);
  EXPECT_NE(read_file(out / "s.json").value_or("").find("forge_softmax_f32_" + g.id.substr(0, 12)), std::string::npos);
  EXPECT_EQ(command({"export", g.id, "--operator", "gemm_f32", "--as", "cpp", (out / "other").string()}), kUsage);
  EXPECT_FALSE(fs::exists(out / "other"));

  unsetenv("FORGE_DATA");
  unsetenv("FORGE_PLUGINS");
  before ? setenv("FORGE_HOME", old_home.c_str(), 1) : unsetenv("FORGE_HOME");
}

}  // namespace
}  // namespace forge
