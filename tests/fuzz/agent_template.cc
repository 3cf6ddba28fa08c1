// SPDX-License-Identifier: Apache-2.0
// Input: agents/NAME.toml.
// link: forge_agents
#include "agents/command_template.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(agent_template) {
  if (const auto t = parse_command_template(std::string(bytes), "toy", "toy.toml")) {
    HOLDS(!t->command.empty() && t->seconds > 0);
    for (const auto& f : t->files) HOLDS(!f.path.empty());
  }
}

}  // namespace forge
