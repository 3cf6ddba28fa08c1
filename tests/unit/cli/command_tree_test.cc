// SPDX-License-Identifier: Apache-2.0
// The scripts and the page themselves are tried by tests/suites/comfort.sh; here is what a description may hold.
#include "cli/command_tree.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace forge {
namespace {

struct Toy {
  CLI::App app{"forge: tries things"};
  bool flag = false;
  std::string text;
  std::vector<std::string> many;
  Toy() {
    app.footer("of the program");
    CLI::App* a = app.add_subcommand("try", "it's [odd]: C:\\x");
    a->add_option("operator", text, ".begins with a dot");
    a->add_option("--shell", text, "which")->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh"}));
    a->add_option("-o,--output", text, "where");
    a->add_flag("--fast", flag, "sooner");
    CLI::App* b = app.add_subcommand("kb", "more");
    b->add_subcommand("show", "one")->footer("of show");
    app.add_subcommand("all", "every one")->add_option("operators", many, "some");
  }
};

const CommandOption& option_of(const CommandNode& node, const std::string& name) {
  for (const CommandOption& o : node.options)
    if (o.names.back() == name) return o;
  throw std::runtime_error("no option " + name);
}

TEST(CommandTree, ReadsWhatTheParserKnows) {
  Toy toy;
  const CommandNode root = command_tree(toy.app);
  ASSERT_EQ(root.commands.size(), 3u);
  const CommandNode& tried = root.commands[0];
  EXPECT_EQ(tried.path, "try");
  EXPECT_EQ(tried.footer, "") << "inherited, so not its own";
  EXPECT_TRUE(option_of(tried, "operator").positional);
  EXPECT_EQ(option_of(tried, "operator").words, "operators");
  EXPECT_EQ(option_of(tried, "--shell").choices, (std::vector<std::string>{"bash", "zsh"}));
  EXPECT_EQ(option_of(tried, "--output").names, (std::vector<std::string>{"-o", "--output"}));
  EXPECT_EQ(option_of(tried, "--output").words, "files");
  EXPECT_FALSE(option_of(tried, "--fast").takes_value);
  EXPECT_FALSE(option_of(tried, "--output").many);
  EXPECT_TRUE(option_of(root.commands[2], "operators").many);
  EXPECT_EQ(root.commands[1].commands[0].path, "kb show");
  EXPECT_EQ(root.commands[1].commands[0].footer, "of show");
}

TEST(CommandTree, BashTellsFlagsFromValues) {
  Toy toy;
  const std::string script = bash_completion(command_tree(toy.app));
  EXPECT_NE(script.find("'try/-o' | 'try/--output') kind='files'"), std::string::npos);
  EXPECT_NE(script.find("'try/--shell') kind='=bash zsh'"), std::string::npos);
  EXPECT_EQ(script.find("'try/--fast')"), std::string::npos);
  EXPECT_NE(script.find("'all/'[0-9]*) kind='operators'"), std::string::npos);
}

TEST(CommandTree, ZshQuotesDescriptions) {
  Toy toy;
  const std::string script = zsh_completion(command_tree(toy.app));
  EXPECT_NE(script.find(R"('try:it'\''s [odd]: C:\x')"), std::string::npos) << script;
  EXPECT_NE(script.find(R"('(--fast)--fast[sooner]')"), std::string::npos) << script;
  EXPECT_NE(script.find(R"('*:operators:_forge_words operators')"), std::string::npos) << script;
}

TEST(CommandTree, RoffTakesNoTextForMacros) {
  Toy toy;
  const std::string page = manual_page(command_tree(toy.app));
  EXPECT_NE(page.find("it\\(aqs [odd]: C:\\ex"), std::string::npos) << page;
  EXPECT_NE(page.find("\n\\&.begins with a dot"), std::string::npos) << page;
  EXPECT_NE(page.find("\\fB\\-o\\fR, \\fB\\-\\-output\\fR"), std::string::npos) << page;
}

}  // namespace
}  // namespace forge
