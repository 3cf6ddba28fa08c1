// SPDX-License-Identifier: Apache-2.0
// Runs the protocol over two descriptors: one message a line, each call on a thread of its own, so that the client is heard while
// calls run: cancellation, ping, further calls. Ends at the end of input; calls that still run then are cancelled.
#pragma once
#include <atomic>
#include <functional>

#include "mcp/protocol.h"

namespace forge {

// Performs one call; returns early, with anything, once `cancelled` is set. Called from several threads at once.
using PerformCall = std::function<ToolResult(const ToolCall&, const std::atomic<bool>& cancelled)>;

struct McpServerOptions {
  double progress_seconds = 5;     // between two notes of progress
  std::size_t line_cap = 8 << 20;  // a longer message is refused
  int calls_at_once = 16;
};

// Blocks until `in` ends or `out` can no longer be written. Logs go to `log`.
void serve_mcp(const McpProtocol&, const PerformCall&, int in, int out, const McpServerOptions&,
               const std::function<void(const std::string&)>& log);

}  // namespace forge
