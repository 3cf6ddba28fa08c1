// SPDX-License-Identifier: Apache-2.0
// From how a runner ended to a named reason. Judge's side: addresses are looked up in the judge's own map.
#pragma once
#include <string>
#include <vector>

#include "runner/protocol.h"
#include "runner/runner.h"
#include "runner/spawn.h"

namespace forge {

// A buffer that the runner had mapped, with the role that it played.
struct MappedBuffer {
  std::string role;
  const SharedBuffer* buffer = nullptr;
  bool writable = false;
};

RunnerFailure classify_fault(const wire::Fault&, const std::vector<MappedBuffer>&);
RunnerFailure classify_ending(const Ending&, const std::string& during);
std::string system_call_name(int number);  // "socket (41)"

}  // namespace forge
