// SPDX-License-Identifier: Apache-2.0
#include "mcp/server.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/json_io.h"
#include "util/fs.h"

namespace forge {
namespace {

// A client over two pipes. The tool "slow" runs until it is cancelled or `release` is set; "fast" answers at once.
struct Client {
  explicit Client(McpServerOptions options = {})
      : protocol({{{"slow", "", "{}"}, "", false}, {{"fast", "", "{}"}, "", true}}, {"f", "1", ""}) {
    signal(SIGPIPE, SIG_IGN);
    int to[2], from[2];
    EXPECT_EQ(pipe(to), 0);
    EXPECT_EQ(pipe(from), 0);
    in = Fd(to[0]), write_end = Fd(to[1]), read_end = Fd(from[0]), out = Fd(from[1]);
    server = std::thread([this, options] {
      serve_mcp(protocol, perform, in.get(), out.get(), options, [](const std::string&) {});
      ended = true;
      out = Fd();
    });
  }
  ~Client() {
    write_end = Fd();
    server.join();
  }
  void say(const std::string& line) { EXPECT_GT(write(write_end.get(), (line + "\n").data(), line.size() + 1), 0); }
  void call(int id, const std::string& tool, const std::string& meta = "{}") { say(fmt(id, tool, meta)); }
  static std::string fmt(int id, const std::string& tool, const std::string& meta) {
    return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":"tools/call","params":{"name":")" + tool + R"(","_meta":)" +
           meta + "}}";
  }
  Json hear() {  // the next line; null at the end
    while (heard.find('\n') == std::string::npos) {
      char b[4096];
      const ssize_t n = read(read_end.get(), b, sizeof b);
      if (n <= 0) return nullptr;
      heard.append(b, static_cast<std::size_t>(n));
    }
    const std::size_t end = heard.find('\n');
    const Json j = Json::parse(heard.substr(0, end));
    heard.erase(0, end + 1);
    return j;
  }

  McpProtocol protocol;
  std::atomic<bool> release{false}, ended{false};
  std::atomic<int> cancelled_calls{0};
  PerformCall perform = [this](const ToolCall& c, const std::atomic<bool>& cancelled) {
    while (c.tool == "slow" && !release && !cancelled) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (cancelled) ++cancelled_calls;
    return ToolResult{R"({"tool":")" + c.tool + "\"}", false};
  };
  Fd in, write_end, read_end, out;
  std::string heard;
  std::thread server;
};

TEST(McpServer, HearsItsClientWhileACallRuns) {
  Client c;
  c.call(1, "slow");
  c.say(R"({"jsonrpc":"2.0","id":2,"method":"ping"})");
  EXPECT_EQ(c.hear()["id"], 2);
  c.call(3, "fast");
  EXPECT_EQ(c.hear()["id"], 3);
  c.release = true;
  const Json last = c.hear();
  EXPECT_EQ(last["id"], 1);
  EXPECT_EQ(last["result"]["structuredContent"]["tool"], "slow");
}

TEST(McpServer, ProgressOnlyWithATokenAndNoneAfterTheResult) {
  Client c({.progress_seconds = 0.02});
  c.call(1, "slow", R"({"progressToken":"t"})");
  for (int n = 1; n <= 3; ++n) {
    const Json p = c.hear();
    EXPECT_EQ(p["method"], "notifications/progress");
    EXPECT_EQ(p["params"]["progressToken"], "t");
    EXPECT_EQ(p["params"]["progress"], n);
  }
  c.release = true;
  Json j;
  while ((j = c.hear()).contains("method")) {
  }
  EXPECT_EQ(j["id"], 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  c.release = false;
  c.call(2, "slow");  // no token
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  c.release = true;
  EXPECT_EQ(c.hear()["id"], 2);
}

TEST(McpServer, ACancelledCallIsNotAnswered) {
  Client c;
  c.call(1, "slow");
  c.say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}})");
  c.say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  while (c.cancelled_calls == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  c.call(2, "fast");
  EXPECT_EQ(c.hear()["id"], 2);
}

TEST(McpServer, EndsAtTheEndOfInputAndCancelsWhatRuns) {
  Client c;
  c.call(1, "slow");
  c.call(2, "slow");
  c.write_end = Fd();
  EXPECT_TRUE(c.hear().is_null());
  EXPECT_TRUE(c.ended);
  EXPECT_EQ(c.cancelled_calls, 2);
}

TEST(McpServer, TooManyCallsAndReusedIdsAreRefused) {
  Client c({.calls_at_once = 2});
  c.call(1, "slow");
  c.call(1, "slow");
  EXPECT_EQ(c.hear()["error"]["code"], -32600);
  c.call(2, "slow");
  c.call(3, "fast");
  const Json busy = c.hear();
  EXPECT_EQ(busy["id"], 3);
  EXPECT_EQ(busy["result"]["isError"], true);
  c.release = true;
  EXPECT_TRUE(c.hear().contains("result"));
  EXPECT_TRUE(c.hear().contains("result"));
}

TEST(McpServer, AMessageBeyondTheCapIsRefusedAndTheNextOneHeard) {
  Client c({.line_cap = 1000});
  c.say(std::string(200000, 'x'));
  EXPECT_EQ(c.hear()["error"]["code"], -32700);
  c.say(R"({"jsonrpc":"2.0","id":2,"method":"ping"})");
  EXPECT_EQ(c.hear()["id"], 2);
}

}  // namespace
}  // namespace forge
