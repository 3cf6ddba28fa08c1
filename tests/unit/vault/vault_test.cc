// SPDX-License-Identifier: Apache-2.0
#include "vault/vault.h"

#include <gtest/gtest.h>

#include "core/package.h"

namespace forge {
namespace {

Generation sealable(int number, const std::string& parent, const std::string& source = "int one;\n") {
  Generation g;
  g.package = {.source_name = "kernel.cpp", .source = source, .plan_text = "format = 1\n", .origin = "a test"};
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
  EXPECT_TRUE(vault->all()->kernels.empty());
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

class DamagedVault : public testing::Test {
 protected:
  TempDir m_home = std::move(*TempDir::make("vault"));
  Vault m_vault = std::move(*Vault::open(m_home.path()));
  Generation m_first, m_second;

  void SetUp() override {
    m_first = *m_vault.seal(sealable(0, "expert:a", "int one;\n"));
    m_second = *m_vault.seal(sealable(1, m_first.id, "int two;\n"));
    ASSERT_TRUE(m_vault.promote(m_second.operator_name, m_second.target, m_second.id));
  }
  fs::path place() const { return m_home.path() / "vault" / m_first.operator_name / "cpu-x86-64-avx2"; }
  fs::path record(const Generation& g) const { return place() / g.id / "record.json"; }
  // Only the second is left, and the first is named with its file and what to do.
  void expect_the_first_is_named() {
    const auto all = m_vault.all();
    ASSERT_TRUE(all) << all.error().text();
    ASSERT_EQ(all->kernels.size(), 1u);
    EXPECT_EQ(all->kernels[0].id, m_second.id);
    ASSERT_EQ(all->damaged.size(), 1u);
    const DamagedRecord& d = all->damaged[0];
    EXPECT_EQ(d.operator_name, m_first.operator_name);
    EXPECT_EQ(d.target, m_first.target);
    EXPECT_EQ(d.id, m_first.id);
    EXPECT_EQ(d.error.file, record(m_first).string());
    EXPECT_EQ(d.error.code, Code::bad_input);
    EXPECT_NE(d.error.fix, "");
    const auto other = m_vault.find(m_second.id.substr(0, 12));
    ASSERT_TRUE(other) << other.error().text();
    EXPECT_EQ(other->id, m_second.id);
    for (const auto& asked : {m_vault.find(m_first.id.substr(0, 12)), m_vault.seal(m_first)}) {
      ASSERT_FALSE(asked);
      EXPECT_EQ(asked.error().file, record(m_first).string());
    }
  }
};

TEST_F(DamagedVault, ATornRecordHidesNoOther) {
  const std::string text = *read_file(record(m_first));
  ASSERT_TRUE(write_file_atomic(record(m_first), text.substr(0, text.size() / 2)));
  expect_the_first_is_named();
}

TEST_F(DamagedVault, ARecordThatIsGoneIsNamed) {
  fs::remove(record(m_first));
  expect_the_first_is_named();
}

TEST_F(DamagedVault, ARecordOfOtherBytesIsNamed) {
  ASSERT_TRUE(write_file_atomic(record(m_first), std::string("\xff\x00\x01garbled", 10)));
  expect_the_first_is_named();
}

TEST_F(DamagedVault, APackageThatWasChangedIsNamed) {
  std::string text = *read_file(record(m_first));
  text.replace(text.find("int one"), 7, "int 0ne");
  ASSERT_TRUE(write_file_atomic(record(m_first), text));
  expect_the_first_is_named();
}

TEST_F(DamagedVault, AFileAmongTheFoldersIsNoKernel) {
  ASSERT_TRUE(write_file_atomic(m_home.path() / "vault" / "notes.txt", "mine"));
  ASSERT_TRUE(write_file_atomic(place() / "notes.txt", "mine"));
  const auto all = m_vault.all();
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_EQ(all->kernels.size(), 2u);
  EXPECT_TRUE(all->damaged.empty());
}

TEST_F(DamagedVault, APromotionThatNamesNothingIsNamedAndMendedByPromoting) {
  for (const char* word : {"\n", "../x\n", "0123abcd\n"}) {
    ASSERT_TRUE(write_file_atomic(place() / "promoted", word));
    const auto all = m_vault.all();
    ASSERT_TRUE(all) << all.error().text();
    EXPECT_EQ(all->kernels.size(), 2u) << word;
    ASSERT_EQ(all->damaged.size(), 1u) << word;
    EXPECT_EQ(all->damaged[0].id, "");
    EXPECT_EQ(all->damaged[0].error.file, (place() / "promoted").string());
    EXPECT_FALSE(m_vault.promoted(m_first.operator_name, m_first.target)) << word;
  }
  ASSERT_TRUE(m_vault.promote(m_first.operator_name, m_first.target, m_first.id));
  EXPECT_TRUE(m_vault.all()->damaged.empty());
}

TEST_F(DamagedVault, TheLineEndsWhereItCannotBeRead) {
  const std::vector<Generation> both = m_vault.all()->kernels;
  ASSERT_EQ(lineage(both, m_first.operator_name, m_first.target, m_second.id).size(), 2u);
  EXPECT_EQ(lineage(both, m_first.operator_name, m_first.target, m_second.id)[0].id, m_first.id);
  EXPECT_EQ(lineage(both, m_first.operator_name, m_first.target, m_first.id).size(), 1u);
  const std::vector<Generation> one = {m_second};
  EXPECT_EQ(lineage(one, m_first.operator_name, m_first.target, m_second.id).size(), 1u);
  EXPECT_EQ(lineage(one, m_first.operator_name, m_first.target, m_first.id).size(), 1u) << "the promoted one cannot be read: all that can";
  EXPECT_TRUE(lineage(both, "gemm_f32", m_first.target, "").empty());
}

}  // namespace
}  // namespace forge
