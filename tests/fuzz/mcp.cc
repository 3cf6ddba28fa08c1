// SPDX-License-Identifier: Apache-2.0
// Lines of a client of the Model Context Protocol, and the calls of tools in them. Input: lines.
// link: forge_mcp
#include "agents/tool_arguments.h"
#include "fuzz/target.h"
#include "mcp/protocol.h"
#include "util/text.h"

namespace forge {

static void look_at_call(const ToolCall& call) {
  const auto ready = ready_call(call, fuzz::folder().string());
  HOLDS(ready.has_value());
  const auto a = Arguments::read(ready->arguments);
  if (!a) return;
  (void)a->only({"source", "plan", "decisions"});
  for (const char* key : {"query", "text", "why", "source"})
    if (const auto t = a->text(key, false)) HOLDS(utf8_prefix(*t) == t->size() && t->find('\0') == std::string::npos);
  (void)a->decisions();
  (void)a->package("cpu");
  (void)list_of(*a, "variants", 1, 8);
  (void)list_of(*a, "packages", 1, 8);
}

FORGE_FUZZ_TARGET(mcp) {
  static const McpProtocol protocol(workbench_tools(), {.name = "forge", .version = "0", .instructions = "do"});
  for (const std::string& line : split(std::string(bytes), '\n')) {
    const McpIncoming in = protocol.receive(line);
    HOLDS(in.reply.find('\n') == std::string::npos);
    if (!in.call) continue;
    const std::string reply = McpProtocol::call_reply(*in.call, {line, false});
    HOLDS(reply.find('\n') == std::string::npos);
    if (!in.call->progress_token.empty()) (void)McpProtocol::progress(*in.call, 1, line);
    look_at_call(in.call->call);
  }
  look_at_call({.id = "1", .tool = "submit", .arguments = std::string(bytes)});
}

}  // namespace forge
