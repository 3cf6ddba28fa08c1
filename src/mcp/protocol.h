// SPDX-License-Identifier: Apache-2.0
// The Model Context Protocol's server side as text in, text out: no threads, no files. Both eras at once: a client that sends
// `initialize` (2024-11-05 to 2025-11-25), and one that says its version with every request (2026-07-28). Only tools are offered.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agents/tools.h"

namespace forge {

struct McpSettings {
  std::string name, version;
  std::string instructions;  // for the model behind the client
};

// A tools/call to be performed. Ids are JSON text ("7", "\"a\""), as the client wrote them: what is echoed is the same.
struct McpCall {
  std::string id;
  std::string progress_token;  // JSON text; empty: the client wants no progress
  bool modern = false;
  ToolCall call;
};

// What one line from the client means for the server.
struct McpIncoming {
  std::string reply;            // a line to send at once; may stand alone
  std::optional<McpCall> call;  // to be performed; its reply comes from call_reply()
  std::string cancelled;        // id of a request that the client gave up
};

class McpProtocol {
 public:
  McpProtocol(std::vector<ToolSpec>, McpSettings);
  McpIncoming receive(const std::string& line) const;

  // The result in both halves: content[0].text is structuredContent as text, of errors too, because each client shows its model
  // another half. A text that is no JSON object becomes one.
  static std::string call_reply(const McpCall&, const ToolResult&);
  static std::string progress(const McpCall&, int n, const std::string& message);  // n rises
  static std::string error_reply(const std::string& id, int code, const std::string& message);

 private:
  std::vector<ToolSpec> m_tools;
  McpSettings m_settings;
};

}  // namespace forge
