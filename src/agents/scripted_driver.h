// SPDX-License-Identifier: Apache-2.0
// The fake of drivers: plays back turns that a test wrote down, and keeps what it was asked.
#pragma once
#include <deque>
#include <functional>

#include "agents/driver.h"

namespace forge {

// Out of turns, it ends. A turn may be an error.
class ScriptedDriver final : public Driver {
 public:
  explicit ScriptedDriver(std::deque<Result<Turn>> turns, bool tokens = false) : m_turns(std::move(turns)), m_tokens(tokens) {}
  std::string identity() const override { return "scripted driver"; }
  bool uses_tokens() const override { return m_tokens; }
  Result<Turn> next(const Assignment&, const std::vector<Exchange>& so_far) override;
  void leave() override { ++left; }

  std::vector<Assignment> asked;
  std::vector<std::vector<Exchange>> seen;
  int left = 0;

 private:
  std::deque<Result<Turn>> m_turns;
  bool m_tokens;
};

Turn calls(const std::string& tool, const std::string& arguments);  // one call
Turn ends(const std::string& why);
Turn submits(const std::string& source, const std::string& plan = "format = 1\n");

}  // namespace forge
