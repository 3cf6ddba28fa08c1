// SPDX-License-Identifier: Apache-2.0
#include "agents/command_template.h"

#include <gtest/gtest.h>

#include "agents/command_driver.h"

namespace forge {
namespace {

const std::string kHead = "format = 1\ntitle = \"T\"\ncommand = [\"sh\", \"{{socket}}\"]\n";

std::string error_of(const std::string& text) {
  const auto t = parse_command_template(text, "t", "t.toml");
  return t ? "(none)" : t.error().text();
}

TEST(CommandTemplate, TheShippedOnesAreRead) {
  Paths paths;
  paths.data = FORGE_SOURCE_DIR;
  const auto names = command_template_names(paths);
  for (const char* name : {"claude-code", "codex", "gemini", "opencode"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end());
    const auto t = load_command_template(paths, name);
    ASSERT_TRUE(t) << t.error().text();
    EXPECT_TRUE(t->sandboxed);
    EXPECT_NE(t->usage, UsageFormat::none);
    EXPECT_FALSE(t->keys.empty());
    EXPECT_FALSE(t->files.empty());
    EXPECT_NE(t->files[0].text.find("{{socket}}"), std::string::npos);
  }
}

TEST(CommandTemplate, WhatIsWrongIsNamed) {
  EXPECT_EQ(error_of(kHead), "(none)");
  EXPECT_NE(error_of("format = 2\n").find("format"), std::string::npos);
  EXPECT_NE(error_of("format = 1\ntitle = \"T\"\ncommand = []\n").find("command"), std::string::npos);
  EXPECT_NE(error_of("format = 1\ntitle = \"T\"\ncommand = [\"{{sockett}}\"]\n").find("sockett"), std::string::npos);
  EXPECT_NE(error_of(kHead + "colour = 1\n").find("colour"), std::string::npos);
  for (const char* path : {"/etc/x", "../x", "a/../../x", "a/b/c"})
    EXPECT_NE(error_of(kHead + "[[file]]\npath = \"" + path + "\"\ntext = \"\"\n").find("path"), std::string::npos) << path;
  EXPECT_NE(error_of(kHead + "[environment]\nkeys = [\"KEY=sk-1\"]\n").find("names only"), std::string::npos);
  EXPECT_NE(error_of(kHead + "[environment]\nset = [\"novalue\"]\n").find("NAME=value"), std::string::npos);
  EXPECT_NE(error_of(kHead + "[sandbox]\nconfig = [\"/root\"]\n").find("config"), std::string::npos);
  EXPECT_NE(error_of(kHead + "[sandbox]\nconfig = [\"~/.\"]\n").find("config"), std::string::npos);
  EXPECT_NE(error_of(kHead + "[usage]\nformat = \"magic\"\n").find("magic"), std::string::npos);
  EXPECT_NE(error_of(kHead + "[limits]\nseconds = 0\n").find("seconds"), std::string::npos);
}

TEST(CommandTemplate, AUsersOwnGoesFirst) {
  const auto folder = TempDir::make("forge-test");
  Paths paths;
  paths.home = folder->path();
  paths.data = FORGE_SOURCE_DIR;
  ASSERT_TRUE(make_dirs(paths.home / "agents"));
  ASSERT_TRUE(write_file_atomic(paths.home / "agents/codex.toml", kHead));
  ASSERT_TRUE(write_file_atomic(paths.home / "agents/mine.toml", kHead));
  EXPECT_EQ(load_command_template(paths, "codex")->title, "T");
  EXPECT_EQ(load_command_template(paths, "mine")->title, "T");
  for (const char* name : {"none", "../agents/mine", "", "MINE"}) {
    const auto t = load_command_template(paths, name);
    ASSERT_FALSE(t) << name;
    EXPECT_NE(t.error().fix.find("claude-code"), std::string::npos);
  }
}

TEST(CommandSeat, IsCheckedBeforeARun) {
  const auto folder = TempDir::make("forge-test");
  Paths paths;
  paths.home = folder->path();
  ASSERT_TRUE(make_dirs(paths.home / "agents"));
  ASSERT_TRUE(write_file_atomic(paths.home / "agents/ok.toml", kHead));
  ASSERT_TRUE(write_file_atomic(paths.home / "agents/absent.toml", "format = 1\ntitle = \"T\"\ncommand = [\"no-such-agent\"]\n"));
  ASSERT_TRUE(write_file_atomic(paths.home / "agents/keyless.toml", kHead + "[environment]\nkeys = [\"FORGE_NO_SUCH_KEY\"]\n"));
  Budget granted;
  granted.tokens = 1000;
  EXPECT_TRUE(check_command_seat(paths, "command:ok", granted));
  EXPECT_NE(check_command_seat(paths, "command:ok", {}).error().fix.find("--tokens"), std::string::npos);
  EXPECT_EQ(check_command_seat(paths, "command:absent", granted).error().code, Code::unsupported);
  EXPECT_NE(check_command_seat(paths, "command:keyless", granted).error().fix.find("FORGE_NO_SUCH_KEY"), std::string::npos);
  EXPECT_EQ(check_command_seat(paths, "command:ok@some-model", granted).error().code, Code::bad_input);
  EXPECT_EQ(check_command_seat(paths, "command:", granted).error().code, Code::bad_input);
  const auto replayed = make_command_seat(paths, "command:gone@m", {}, true);
  ASSERT_TRUE(replayed);
  EXPECT_EQ((*replayed)->identity(), "command gone m");
  EXPECT_EQ((*replayed)->next({}, {}).error().code, Code::diverged);
}

}  // namespace
}  // namespace forge
