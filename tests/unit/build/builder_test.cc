// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "toy.h"
#include "util/hash.h"

namespace forge {
namespace {

using namespace testing;

std::string toy_object() {
  static const std::string bytes = [] {
    const auto image = build_toy(kToySource);
    EXPECT_TRUE(image) << said(image);
    return image ? image->bytes : std::string();
  }();
  return bytes;
}

fs::path only_file(const fs::path& folder) {
  fs::path found;
  for (const auto& e : fs::recursive_directory_iterator(folder))
    if (e.is_regular_file()) found = e.path();
  return found;
}

TEST(Builder, BuildsAnImage) {
  const auto image = build_toy(kToySource);
  ASSERT_TRUE(image) << said(image);
  EXPECT_EQ(image->sha256, sha256_hex(image->bytes));
  EXPECT_EQ(image->plan.launches.at(0).entry, "scale");
  EXPECT_GT(image->build.seconds, 0);
  EXPECT_FALSE(image->build.sandbox.empty());
  const auto& flags = image->build.flags;
  EXPECT_NE(std::find(flags.begin(), flags.end(), "-march=x86-64-v3"), flags.end());
}

TEST(Builder, SameSourceSameBytes) {
  const std::string source =
      std::string(kToySource) + "extern const char* const when; const char* const when = __DATE__ __TIME__ __FILE__;\n";
  const auto a = build_toy(source), b = build_toy(source);
  ASSERT_TRUE(a) << said(a);
  ASSERT_TRUE(b) << said(b);
  EXPECT_EQ(a->sha256, b->sha256);
}

TEST(Builder, FaultsOfThePlanAreNamed) {
  const auto malformed = build_toy(kToySource, "speed = 9\n" + std::string(kToyPlan));
  ASSERT_FALSE(malformed);
  EXPECT_EQ(malformed.error().reason, Reason::plan_invalid);
  EXPECT_NE(malformed.error().detail.find("speed"), std::string::npos) << malformed.error().detail;
  const auto missing = build_toy(kToySource, std::string(kToyPlan) + "\n[[launch]]\nentry = \"second\"\ngrid = \"1\"\n");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().reason, Reason::plan_invalid);
  EXPECT_NE(missing.error().detail.find("second"), std::string::npos) << missing.error().detail;
}

TEST(Builder, CompilesOnceForTheSameContent) {
  const auto cache = *TempDir::make();
  FakeCompiler fake;
  fake.next = Image{.bytes = toy_object(),
                    .sha256 = {},
                    .plan = {},
                    .build = {.compiler = "fake 1", .flags = {"-x"}, .log = "warned", .seconds = 1.5, .sandbox = {"none"}}};
  Builder builder(fake, cache.path());
  const auto first = builder.build(toy_package(), toy_definition(), avx2());
  ASSERT_TRUE(first) << said(first);
  const auto again = builder.build(toy_package(), toy_definition(), avx2());
  ASSERT_TRUE(again);
  EXPECT_EQ(fake.calls, 1);
  EXPECT_EQ(again->bytes, first->bytes);
  EXPECT_EQ(again->sha256, first->sha256);
  EXPECT_EQ(again->build.log, "warned");
  EXPECT_EQ(again->build.seconds, 1.5);
  EXPECT_EQ(again->build.sandbox, std::vector<std::string>{"none"});
  EXPECT_EQ(again->plan.launches.size(), 1u);
  // Any change of source, plan, definition or target is another build.
  ASSERT_TRUE(builder.build(toy_package(std::string(kToySource) + "\n"), toy_definition(), avx2()));
  EXPECT_EQ(fake.calls, 2);
  auto other = avx2();
  other.flags.push_back("-mtune=znver4");
  ASSERT_TRUE(builder.build(toy_package(), toy_definition(), other));
  EXPECT_EQ(fake.calls, 3);
}

TEST(Builder, CorruptedCacheEntriesAreBuiltAgain) {
  const auto cache = *TempDir::make();
  FakeCompiler fake;
  fake.next = Image{.bytes = toy_object(), .sha256 = {}, .plan = {}, .build = {}};
  Builder builder(fake, cache.path());
  const auto build = [&] { return builder.build(toy_package(), toy_definition(), avx2()); };
  ASSERT_TRUE(build());
  const fs::path file = only_file(cache.path());
  const std::string good = *read_file(file);
  std::string flipped = good;
  flipped[good.size() - 5] ^= 1;
  int calls = 1;
  for (const std::string& bad : {std::string(), std::string("{}\n"), std::string("[1]\nx"), good.substr(0, good.size() / 2), flipped,
                                 "{\"format\":1,\"sha256\":7}\n" + toy_object(), std::string("no json at all")}) {
    ASSERT_TRUE(write_file_atomic(file, bad));
    const auto image = build();
    ASSERT_TRUE(image) << said(image);
    EXPECT_EQ(image->bytes, toy_object());
    EXPECT_EQ(fake.calls, ++calls);
    EXPECT_EQ(*read_file(file), good);
  }
}

TEST(Builder, CacheDoesNotHelpARefusedImageIn) {
  const auto cache = *TempDir::make();
  FakeCompiler fake;
  fake.next = Image{.bytes = "not an object", .sha256 = {}, .plan = {}, .build = {}};
  Builder builder(fake, cache.path());
  const auto refused = builder.build(toy_package(), toy_definition(), avx2());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, Reason::not_admitted);
  EXPECT_TRUE(only_file(cache.path()).empty());
}

TEST(Builder, UnwritableCacheIsSaidAndSurvived) {
  const auto folder = *TempDir::make();
  ASSERT_TRUE(write_file_atomic(folder.path() / "file", "in the way"));
  FakeCompiler fake;
  fake.next = Image{.bytes = toy_object(), .sha256 = {}, .plan = {}, .build = {}};
  const auto image = Builder(fake, folder.path() / "file").build(toy_package(), toy_definition(), avx2());
  ASSERT_TRUE(image) << said(image);
  EXPECT_NE(image->build.log.find("not cached"), std::string::npos);
}

TEST(PackageFolder, RoundTrip) {
  const auto folder = *TempDir::make();
  const KernelPackage package = toy_package();
  ASSERT_TRUE(write_package_folder(package, folder.path() / "p"));
  const auto back = read_package_folder(folder.path() / "p");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(package_hash(*back), package_hash(package));
}

TEST(PackageFolder, StrangersAndGapsAreNamed) {
  const auto folder = *TempDir::make();
  EXPECT_EQ(read_package_folder(folder.path() / "absent").error().code, Code::not_found);
  EXPECT_NE(read_package_folder(folder.path()).error().text().find("kernel.cpp"), std::string::npos);
  ASSERT_TRUE(write_file_atomic(folder.path() / "kernel.cpp", kToySource));
  EXPECT_NE(read_package_folder(folder.path()).error().text().find("launch.toml"), std::string::npos);
  ASSERT_TRUE(write_file_atomic(folder.path() / "launch.toml", kToyPlan));
  EXPECT_TRUE(read_package_folder(folder.path()));
  ASSERT_TRUE(write_file_atomic(folder.path() / "build.sh", "#!/bin/sh"));
  EXPECT_NE(read_package_folder(folder.path()).error().text().find("build.sh"), std::string::npos);
  fs::remove(folder.path() / "build.sh");
  fs::remove(folder.path() / "kernel.cpp");
  fs::create_symlink("/etc/passwd", folder.path() / "kernel.cpp");
  EXPECT_FALSE(read_package_folder(folder.path()));
}

}  // namespace
}  // namespace forge
