// SPDX-License-Identifier: Apache-2.0
// How one command line agent is started: a readable file, agents/NAME.toml of this installation or of $FORGE_HOME, which goes first.
// Format: docs/formats/agent.md.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "agents/agent_usage.h"
#include "util/fs.h"

namespace forge {

struct CommandTemplate {
  std::string name, title, file;
  std::vector<std::string> command;       // argv, with {{names}}
  std::vector<std::string> model_args;    // behind it, when a model is given
  std::string input = "{{prompt_file}}";  // a file for its standard input; empty: none
  std::string mcp_config;                 // path in the workspace of the file that attaches our server; may be empty
  struct File {
    std::string path, text;  // in the workspace; both with {{names}}
  };
  std::vector<File> files;
  std::string prompt;  // ahead of the milestone's brief: how this agent names our tools

  std::vector<std::string> pass;    // environment variables handed on, when set; values are never recorded
  std::vector<std::string> keys;    // one of these must be set; empty: none is needed
  std::vector<std::string> set;     // NAME=value, with {{names}}
  std::vector<std::string> read;    // further paths in view, read only ("~" is the user's home)
  std::vector<std::string> config;  // paths beneath the user's home that the agent finds in its own, read only
  bool config_writable = false;     // its logins are refreshed there
  bool sandboxed = true;            // false: as the user, with all that the user can read

  UsageFormat usage = UsageFormat::none;
  double seconds = 7200;       // for one milestone
  double quiet_seconds = 900;  // without a call and without output
  double grace_seconds = 30;   // to end by itself after the milestone is over
};

Result<CommandTemplate> parse_command_template(const std::string& text, const std::string& name, const std::string& file);
Result<CommandTemplate> load_command_template(const Paths&, const std::string& name);
std::vector<std::string> command_template_names(const Paths&);  // sorted

// What may stand in braces: prompt_file, mcp_config, workspace, home, forge, socket, model.
using TemplateValues = std::map<std::string, std::string>;

}  // namespace forge
