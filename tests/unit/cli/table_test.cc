// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <gtest/gtest.h>

#include <fstream>

#include "cli/command.h"

namespace forge {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) { EXPECT_EQ(format_table({"a", "bb"}, {{"ccc", "d"}}), "a    bb\n---  --\nccc  d\n"); }

TEST(ExitCodes, FollowTheDocumentedMeaning) {
  EXPECT_EQ(exit_code(Code::bad_input), kUsage);
  EXPECT_EQ(exit_code(Code::disk_full), kEnvironment);
  EXPECT_EQ(exit_code(Code::interrupted), kInterrupted);
  EXPECT_EQ(exit_code(Code::diverged), kNegative);
  EXPECT_EQ(exit_code(Code::internal), kBroken);
}

TEST(Config, DefaultsThenFileAndUnknownKeysAreNamed) {
  TempDir dir = std::move(*TempDir::make());
  EXPECT_EQ(read_config(dir.path())->seed, 1u);
  std::ofstream(dir.path() / "config.toml") << "format = 1\nseed = 7\n[budget]\ncandidates = 3\n";
  const auto config = read_config(dir.path());
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->seed, 7u);
  EXPECT_EQ(config->budget.candidates, 3);
  std::ofstream(dir.path() / "config.toml") << "format = 1\nsede = 7\n";
  const auto bad = read_config(dir.path());
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().line, 2);
  EXPECT_NE(bad.error().text().find("seed"), std::string::npos);
}

}  // namespace
}  // namespace forge
