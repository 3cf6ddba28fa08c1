// SPDX-License-Identifier: Apache-2.0
// Who sits in the two seats of a run, from what the task says: "builtin", "anthropic:MODEL", "openai:MODEL@URL", "command:NAME",
// "folder". A further kind of agent is a further line in seats.cc.
#pragma once
#include <memory>
#include <string>

#include "agents/agent.h"
#include "agents/driver.h"
#include "core/record.h"
#include "util/fs.h"

namespace forge {

struct Seats {
  std::unique_ptr<ArchitectureAgent> architect;
  std::unique_ptr<CodingAgent> coder;
  std::unique_ptr<Meter> meter = std::make_unique<Meter>();
};

// All that can be known before a run begins: both names mean an agent, its blueprint exists, its key is set, tokens are granted. The
// error says which names there are.
Status check_seats(const Paths&, const Task&, const Machine&);

struct SeatOptions {
  fs::path workspace;  // of this run's agents; empty on a replay: agents then live from the record alone
  bool replay = false;
};
Result<Seats> take_seats(const Paths&, const Task&, const Machine&, Journal&, const SeatOptions&);

}  // namespace forge
