// SPDX-License-Identifier: Apache-2.0
// One run of a command line agent over one milestone: its files, its process, the socket that its calls come over, and what it has
// used. Private to command_driver.cc and its tests.
#pragma once
#include <memory>
#include <optional>

#include "agents/agent_process.h"
#include "agents/call_socket.h"
#include "agents/command_driver.h"

namespace forge {

class CommandSession {
 public:
  static Result<std::unique_ptr<CommandSession>> start(const CommandSettings&, const Assignment&, const std::vector<Exchange>& so_far);

  // The agent's next call, or its end. Code::interrupted: Ctrl-C.
  Result<Turn> turn(const Assignment&, const std::vector<Exchange>& so_far);
  void deliver(const ToolResult&);  // of the last call
  TokenUse settle();                // lets it end by itself for a while, then ends it

 private:
  CommandSession(const CommandSettings& s, TempDir folder, CallListener listener)
      : m_settings(s), m_folder(std::move(folder)), m_listener(std::move(listener)), m_usage(make_usage_reader(s.agent.usage)) {}
  Status lay_out(const Assignment&, const std::vector<Exchange>& so_far);
  Status launch(const Assignment&);
  void read_output();
  TokenUse take_use();                      // since the last time
  std::string why_stop(const Assignment&);  // empty: go on
  Turn ended(const std::string& why);

  const CommandSettings& m_settings;
  TempDir m_folder;  // socket and prompt; outside the workspace, where its links could lead us astray
  CallListener m_listener;
  std::unique_ptr<UsageReader> m_usage;
  std::unique_ptr<AgentProcess> m_process;
  fs::path m_workspace, m_log;
  TemplateValues m_values;
  std::string m_said;  // of the start, for the record; said with the first turn
  TokenUse m_reported;
  double m_started = 0, m_last_sign = 0, m_until = 0;
  int m_ticket = 0;
};

}  // namespace forge
