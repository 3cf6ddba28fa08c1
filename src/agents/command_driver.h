// SPDX-License-Identifier: Apache-2.0
// A command line agent in the coder's seat: started at the first turn of a milestone, in a sandbox, with our MCP server attached. Each
// of its calls is a turn, one at a time; its exit ends the milestone, its exit code says nothing. A resume starts it afresh and tells it
// what it had done. One thread: the process dies with the thread that started it.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/agent_sandbox.h"
#include "agents/command_template.h"
#include "agents/driver.h"
#include "core/record.h"

namespace forge {

struct CommandSettings {
  CommandTemplate agent;
  std::string model;                     // empty: the agent's own default
  std::vector<fs::path> hidden;          // state and data of ours that lie near what the agent may see
  fs::path forge;                        // our program; empty: on a replay, where nobody is asked
  std::function<double()> seconds_left;  // of the wall-clock budget; empty: no limit but the template's
  std::optional<Cage> cage;              // empty: the best of this machine
};
std::unique_ptr<Driver> make_command_driver(CommandSettings);

// "command:NAME" or "command:NAME@MODEL".
bool is_command_seat(const std::string& spec);
// All that can be known before a run: the template, its program, its key, a sandbox.
Status check_command_seat(const Paths&, const std::string& spec, const Budget&);
Result<std::unique_ptr<Driver>> make_command_seat(const Paths&, const std::string& spec, std::function<double()> seconds_left, bool replay);

}  // namespace forge
