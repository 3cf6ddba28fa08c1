// SPDX-License-Identifier: Apache-2.0
// The workbench as tools: the one door for every coding agent that is not built in, whether it calls over HTTP, MCP or a folder.
// A package is given as text (`source`, `plan`) or as a `folder` of the workspace. Results are short, verdict first, and reveal
// nothing that the design keeps from a coding agent: no vault, no expert, no seed, no hidden shape, no expected output beyond the one
// element that a refusal quotes.
#pragma once
#include <string>
#include <vector>

#include "agents/driver.h"

namespace forge {

// read_milestone, submit, check, build, time, search_knowledge, read_knowledge, propose_finding, give_up: annotated for MCP.
struct ToolSpec {
  ModelTool tool;
  std::string title;
  bool read_only = false;
};
const std::vector<ToolSpec>& workbench_tools();

// The brief of a milestone: its decisions, acceptance, the interface with forge_args.h and a launch plan's rules, entries cited.
std::string brief_of(const Workbench&);

// What to begin with, name and content: the branch's best, or a skeleton that builds and has the work still to do; and its forge_args.h.
std::vector<std::pair<std::string, std::string>> starter_of(const Workbench&);

// Never an error of its own for what an agent did wrong: that is a result which says how to do it right. An error is the world's
// (interrupted, disk full) and ends the run's step.
Result<ToolResult> call_tool(Workbench&, const ToolCall&, const std::string& workspace);

}  // namespace forge
