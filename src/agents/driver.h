// SPDX-License-Identifier: Apache-2.0
// Coding agents that are not built in. A driver says what the agent does next: calls of the workbench's tools, or the end of its turn.
// Every turn is a step of the journal, and a driver gets all turns so far with every question, so it has no state that a resume could
// lose: a resumed run reads the recorded turns, and asks the driver only where the record ends. Drivers: a model over HTTP, a command
// line agent over MCP, a folder that a person works in, and a script for tests.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agents/agent.h"
#include "model/model.h"
#include "store/journal.h"

namespace forge {

struct ToolCall {
  std::string id, tool;
  std::string arguments;  // JSON text, unchecked
};

struct ToolResult {
  std::string text;  // a JSON object, verdict first, under 8 KB; long logs are files that it names
  bool error = false;
};

struct Turn {
  std::vector<ToolCall> calls;
  bool ended = false;   // the agent will do no more for this milestone
  bool finish = false;  // with ended: nor for any other; the run ends with the best that it has
  std::string why;      // of the end, for people
  std::string said;     // the agent's own message: JSON text that only its driver understands
  TokenUse use;
};

struct Exchange {
  Turn turn;
  std::vector<ToolResult> results;  // one per call
};

// What an agent is told at the start of a milestone.
struct Assignment {
  std::string milestone;         // id
  std::string brief;             // Markdown: the milestone, the interface, what is known
  int attempt = 0;               // how often this milestone was assigned before, over all revisions
  std::string workspace;         // folder of the run's agent; "" when nothing may be written (replay)
  std::int64_t tokens_left = 0;  // of the budget; 0: none are granted
  // To begin with, name and content: the kernel and launch.toml (the branch's best, or a skeleton that builds), and forge_args.h.
  std::vector<std::pair<std::string, std::string>> starter;
};

class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string identity() const = 0;
  virtual bool uses_tokens() const { return false; }
  virtual bool patient() const { return false; }  // may take as many turns between two hand-ins as it likes: a person
  // Code::interrupted: not now; the run stops here and a resume asks again (a person has not handed in yet).
  virtual Result<Turn> next(const Assignment&, const std::vector<Exchange>& so_far) = 0;
  // An agent that goes on working between its turns, as a process does, settles: when the milestone is over, `so_far` holds its last
  // results, it is told, waited for a little, and what no turn held of its tokens is returned. A step of the journal, before leave().
  virtual bool settles() const { return false; }
  virtual Result<TokenUse> settle(const std::vector<Exchange>&) { return TokenUse{}; }
  // What came of the turn that next() has just given, with all before it. Not called for what a resumed run repeats from the record.
  virtual void answered(const Assignment&, const std::vector<Exchange>&) {}
  virtual void leave() {}  // the milestone is over; called where next() was called before
};

// Tokens and dollars of all agents of a run, from its recorded turns.
struct Meter {
  TokenUse used;
  std::int64_t tokens_left(const Budget& b) const { return std::max<std::int64_t>(0, b.tokens - used.total()); }
  bool spent(const Budget& b) const { return tokens_left(b) == 0 || (b.dollars > 0 && used.dollars >= b.dollars); }
};

// Drives the workbench: brief, turns, tool calls, until the milestone is over. `workspace`: "" on a replay.
std::unique_ptr<CodingAgent> make_driven_coder(std::unique_ptr<Driver>, Journal&, Meter&, const Budget&, const std::string& workspace);

}  // namespace forge
