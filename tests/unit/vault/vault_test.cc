// SPDX-License-Identifier: Apache-2.0
#include "vault/vault.h"

#include <gtest/gtest.h>

#include "core/package.h"

namespace forge {
namespace {

Generation sealable(int number, const std::string& parent) {
  Generation g;
  g.package = {.source_name = "kernel.cpp", .source = "int one;\n", .plan_text = "format = 1\n", .origin = "a test"};
  g.id = package_hash(g.package);
  g.operator_name = "softmax_f32", g.target = "cpu:x86-64-avx2", g.number = number, g.parent = parent, g.run_id = "by hand";
  g.verdict = Verdict::passed(CorrectnessReport{}, Measurement{});
  return g;
}

TEST(Vault, OfAKernelThatIsSealedTheEarlierRecordStays) {
  const auto folder = TempDir::make("vault");
  ASSERT_TRUE(folder);
  auto vault = Vault::open(folder->path());
  ASSERT_TRUE(vault);
  const Generation first = sealable(0, "expert:a");
  auto none = vault->sealed(first.operator_name, first.target, first.id);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  const auto sealed = vault->seal(first);
  ASSERT_TRUE(sealed) << sealed.error().text();
  EXPECT_EQ(sealed->number, 0);
  const auto again = vault->seal(sealable(1, "gen:abc"));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->number, 0);
  EXPECT_EQ(again->parent, "expert:a");
  const auto found = vault->sealed(first.operator_name, first.target, first.id);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->number, 0);
  EXPECT_FALSE(*vault->sealed(first.operator_name, "cpu:x86-64-avx512", first.id));  // another target is another kernel
}

TEST(Vault, WhoOnlyLooksMakesNothing) {
  const auto folder = TempDir::make();
  ASSERT_TRUE(folder);
  const auto vault = Vault::open(folder->path() / "home");
  ASSERT_TRUE(vault);
  EXPECT_TRUE(vault->all()->empty());
  EXPECT_FALSE(*vault->promoted("softmax_f32", "cpu:x86-64-avx2"));
  EXPECT_FALSE(fs::exists(folder->path() / "home"));
}

TEST(Vault, WhatCannotBeListedIsNoEmptyVault) {
  const auto folder = TempDir::make();
  ASSERT_TRUE(folder);
  ASSERT_TRUE(write_file_atomic(folder->path() / "vault", "a file"));  // fails for root too
  const auto all = Vault::open(folder->path())->all();
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, Code::io);
}

}  // namespace
}  // namespace forge
