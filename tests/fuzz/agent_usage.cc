// SPDX-License-Identifier: Apache-2.0
// What command line agents say of themselves. Input: lines.
// link: forge_agents
#include "agents/agent_usage.h"

#include "fuzz/target.h"
#include "util/text.h"

namespace forge {

FORGE_FUZZ_TARGET(agent_usage) {
  for (const UsageFormat f :
       {UsageFormat::none, UsageFormat::claude_code, UsageFormat::codex, UsageFormat::gemini, UsageFormat::opencode}) {
    const auto reader = make_usage_reader(f);
    std::int64_t before = 0;
    for (const std::string& line : split(std::string(bytes), '\n')) {
      reader->line(line);
      HOLDS(reader->use().total() >= before);  // never falls
      before = reader->use().total();
    }
    reader->end();
    HOLDS(reader->use().total() >= before && reader->use().dollars >= 0);
    HOLDS(utf8_prefix(reader->last_words()) == reader->last_words().size());
  }
}

}  // namespace forge
