// SPDX-License-Identifier: Apache-2.0
// forge mcp: the workbench of a running run for any MCP client. It holds nothing itself: every call goes over the run's socket.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <memory>

#include "agents/call_socket.h"
#include "cli/command.h"
#include "core/json_io.h"
#include "core/version.h"
#include "mcp/server.h"

namespace forge {

namespace {

constexpr const char* kInstructions =
    "You write one compute kernel for one milestone. Call read_milestone first; submit hands a kernel in and answers with a verdict. A "
    "call may take minutes. Stop when a result says that the milestone is accepted or over.";

// Some clients hand their whole environment on, keys included. Nothing of it is needed here, and nobody finds it in this process.
void scrub_environment() {
  for (char** e = environ; e && *e; ++e) std::memset(*e, 0, std::strlen(*e));
  clearenv();
}

ToolResult unavailable(const Error& e) {
  return {dump(Json{{"verdict", "unavailable"}, {"detail", e.message}, {"fix", e.fix.empty() ? "stop: nobody judges any more" : e.fix}}),
          true};
}

int serve(const std::string& socket) {
  scrub_environment();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, SIG_DFL);  // clients end a server so; nothing is lost with it
  signal(SIGINT, SIG_DFL);
  const McpProtocol protocol(workbench_tools(), {.name = "forge", .version = forge_version(), .instructions = kInstructions});
  const auto perform = [&socket](const ToolCall& call, const std::atomic<bool>& cancelled) {
    const auto result = call_over_socket(socket, call, cancelled);
    return result ? *result : unavailable(result.error());
  };
  serve_mcp(protocol, perform, STDIN_FILENO, STDOUT_FILENO, {},
            [](const std::string& line) { fmt::print(stderr, "forge mcp: {}\n", line); });
  return kOk;
}

}  // namespace

void add_mcp(CLI::App& app, Action& action) {
  auto socket = std::make_shared<std::string>();
  CLI::App* mcp = app.add_subcommand("mcp", "offer the workbench of a running run to an MCP client, over standard input and output");
  mcp->add_option("--socket", *socket, "the run's socket");
  mcp->footer(
      "A run with a command line agent attaches this by itself:\n  forge run softmax_f32 --coder command:claude-code --tokens 500000\n"
      "Example of a client's configuration:\n  {\"command\": \"forge\", \"args\": [\"mcp\", \"--socket\", \"/tmp/forge-agent-x/run\"]}");
  mcp->callback([socket, &action] {
    action = [socket](Context& c) -> int {
      if (!socket->empty()) return serve(*socket);
      return c.fail(Error{.code = Code::bad_input,
                          .message = "which run? A workbench belongs to a milestone of a running run",
                          .file = {},
                          .line = 0,
                          .field = "--socket",
                          .fix =
                              "forge run OP --coder command:NAME starts an agent with this server attached; agents/NAME.toml says how: its "
                              "{{socket}} is what --socket takes"});
    };
  });
}

}  // namespace forge
