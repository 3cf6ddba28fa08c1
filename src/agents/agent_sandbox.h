// SPDX-License-Identifier: Apache-2.0
// What a command line agent can see and touch: its workspace, the system's programs, what its template adds, and the network, which it
// needs to reach its model. By bubblewrap, else by Landlock. Never in view: the run's state (vault, journal, other runs) and the
// installation's operators, experts and blueprints.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "util/fs.h"

namespace forge {

struct AgentView {
  fs::path workspace;                                 // read, written, the working folder
  fs::path home;                                      // inside the workspace
  fs::path socket_folder;                             // holds the socket to the run
  fs::path program;                                   // the agent's
  fs::path forge;                                     // ours, which it starts as its MCP server
  std::vector<fs::path> read;                         // further paths
  std::vector<std::pair<fs::path, fs::path>> config;  // of the user's home, and where in `home`
  bool config_writable = false;
  std::vector<fs::path> hidden;  // whatever else would show them
};

enum class Cage { bubblewrap, landlock, none };
struct AgentCage {
  std::vector<std::string> prefix;   // of the command
  std::function<int()> before_exec;  // may be empty
  std::string program;               // path of the agent's own, to be started
  std::string forge;                 // path of ours, as the agent sees it
  std::vector<std::string> path;     // folders of PATH
  std::string words;                 // for the record: "bubblewrap, network open"
};
Cage best_cage();
Result<AgentCage> make_cage(const AgentView&, Cage);

}  // namespace forge
