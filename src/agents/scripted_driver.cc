// SPDX-License-Identifier: Apache-2.0
#include "agents/scripted_driver.h"

#include "core/json_io.h"

namespace forge {

Result<Turn> ScriptedDriver::next(const Assignment& assignment, const std::vector<Exchange>& so_far) {
  asked.push_back(assignment);
  seen.push_back(so_far);
  if (m_turns.empty()) return ends("the script is at its end");
  Result<Turn> turn = std::move(m_turns.front());
  m_turns.pop_front();
  return turn;
}

Turn calls(const std::string& tool, const std::string& arguments) {
  Turn t;
  t.calls.push_back({.id = "call", .tool = tool, .arguments = arguments});
  return t;
}

Turn ends(const std::string& why) {
  Turn t;
  t.ended = true;
  t.why = why;
  return t;
}

Turn submits(const std::string& source, const std::string& plan) { return calls("submit", dump(Json{{"source", source}, {"plan", plan}})); }

}  // namespace forge
