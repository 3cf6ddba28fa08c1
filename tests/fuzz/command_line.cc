// SPDX-License-Identifier: Apache-2.0
// The words of a command line, up to the function that they choose, which is not called; and each word as an arm of `forge compare` and as
// a positive number. Input: a word a line.
// link: forge_cli
#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/command.h"
#include "cli/compare.h"
#include "cli/task_flags.h"
#include "fuzz/target.h"
#include "util/text.h"

namespace forge {

FORGE_FUZZ_TARGET(command_line) {
  static Context context;
  static Action action;
  static CLI::App app{"forge"};
  static const bool made = (add_all_commands(app, context, action), true);
  HOLDS(made);
  std::vector<std::string> words = split(std::string(bytes.substr(0, bytes.find('\0'))), '\n');
  for (const std::string& word : words) {
    if (const auto arm = parse_arm(word)) HOLDS(!arm->parts.empty() && !arm->apply(Task{}).coder.empty());
    if (positive(word).empty()) HOLDS(std::atof(word.c_str()) > 0);
  }
  action = nullptr;
  std::vector<std::string> last_first(words.rbegin(), words.rend());
  try {
    app.parse(last_first);
    HOLDS(action != nullptr);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0)
      if (const auto unknown = unknown_command(app, words)) HOLDS(!unknown->fix.empty());
  }
}

}  // namespace forge
