// SPDX-License-Identifier: Apache-2.0
// The commands as data, read from the CLI11 tree that also parses them: what completion scripts and the manual page are made of.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace forge {

struct CommandOption {
  std::vector<std::string> names;  // "-o", "--output"; of a positional its one name
  std::string description, default_value;
  bool positional = false, required = false, takes_value = false;
  bool many = false;                 // a positional that takes all that follow, or an option that may stand several times
  std::vector<std::string> choices;  // where only these are taken
  std::string words;                 // else which of completion_words() fit, "files", or "kernels": generations and files; empty: none
};

struct CommandNode {
  std::string path, name, description, footer;  // path "kb list"; empty: the program itself
  std::vector<CommandOption> options;
  std::vector<CommandNode> commands;
};

CommandNode command_tree(const CLI::App&);

// The text of `forge completion bash`, `forge completion zsh`, `forge man`.
std::string bash_completion(const CommandNode&);
std::string zsh_completion(const CommandNode&);
std::string manual_page(const CommandNode&);

}  // namespace forge
