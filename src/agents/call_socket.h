// SPDX-License-Identifier: Apache-2.0
// How `forge mcp`, a child of an agent, reaches the run that the agent works for: a Unix socket, one connection a call, one line each
// way. {"tool": NAME, "arguments": OBJECT} -> {"text": TEXT, "error": BOOL}. Whoever closes a connection early gives its call up.
// Format: docs/formats/agent.md.
#pragma once
#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "agents/driver.h"
#include "util/fs.h"

namespace forge {

// The run's end. Several clients may call at once: their calls are handed out one by one, in the order in which they were complete.
// What is no call is answered with what is wrong and never seen by the caller. One thread.
class CallListener {
 public:
  static Result<CallListener> open(const fs::path& socket);  // only its owner may connect; removed on destruction
  CallListener(CallListener&&) noexcept = default;
  CallListener& operator=(CallListener&&) = delete;
  ~CallListener();

  struct Call {
    int ticket = 0;
    ToolCall call;  // without an id
  };
  // The next call whose client still waits. None: `seconds` are over, or one of `also` can be read or has ended.
  std::optional<Call> wait(double seconds, std::span<const int> also);
  // False: the client has gone, which harms nobody: the result is on record, and the same call gets it again.
  bool answer(int ticket, const ToolResult&);

 private:
  struct Client {
    Fd fd;
    int ticket = 0;
    std::string heard;
    std::optional<ToolCall> call;
    bool taken = false;
  };
  CallListener(Fd, fs::path);
  void accept_all();
  void hear(Client&);  // closes its descriptor when there is nothing more to expect
  std::optional<Call> next();

  Fd m_listen;
  fs::path m_path;
  std::vector<Client> m_clients;  // oldest first
  int m_tickets = 0;
};

// The agent's end. Errors: not_found (nobody listens: the run has ended), crashed (it ended before it answered), interrupted (cancelled).
Result<ToolResult> call_over_socket(const fs::path& socket, const ToolCall&, const std::atomic<bool>& cancelled);

}  // namespace forge
