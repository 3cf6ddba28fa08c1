// SPDX-License-Identifier: Apache-2.0
// What a command line agent says of itself on its standard output: tokens, the reason of an end, a key that is refused. Each agent in
// its own words; lines that are not understood are passed over. No exit code is looked at: agents end with 0 after failures.
#pragma once
#include <algorithm>
#include <memory>
#include <string>

#include "model/model.h"

namespace forge {

enum class UsageFormat {
  none,         // says nothing that we understand
  claude_code,  // claude --output-format stream-json: one `result` at the end, its messages before that are a lower bound
  codex,        // codex exec --json: one `turn.completed` a turn
  gemini,       // gemini -o json (one document) or stream-json (`result` at the end)
  opencode,     // opencode run --format json: one `step_finish` a step, to be summed
};
const char* name(UsageFormat);

class UsageReader {
 public:
  virtual ~UsageReader() = default;
  virtual void line(const std::string&) = 0;  // of standard output, without its end
  virtual void end() {}                       // of standard output
  TokenUse use() const { return m_use; }      // so far; never falls
  // Why going on is of no use ("the API refuses the key: HTTP 401"); empty: nothing known.
  const std::string& hopeless() const { return m_hopeless; }
  const std::string& last_words() const { return m_last_words; }  // of the agent about its end, for people; may be empty

 protected:
  // What is said anew takes the place of what was said, unless it is less: an agent cannot take back what it has used.
  void replace(const TokenUse& use) {
    const double dollars = std::max(use.dollars, m_use.dollars);
    if (use.total() >= m_use.total()) m_use = use;
    m_use.dollars = dollars;
  }
  TokenUse m_use;
  std::string m_hopeless, m_last_words;
};
std::unique_ptr<UsageReader> make_usage_reader(UsageFormat);

}  // namespace forge
