// SPDX-License-Identifier: Apache-2.0
#include "mcp/protocol.h"

#include <gtest/gtest.h>

#include "core/json_io.h"

namespace forge {
namespace {

McpProtocol protocol() {
  const std::string schema = R"({"type":"object","properties":{"source":{"type":"string"}},"required":["source"]})";
  return McpProtocol(
      {{{"submit", "Hands in.", schema}, "Hand in", false}, {{"read_milestone", "Reads.", R"({"type":"object"})"}, "Read", true}},
      {"forge", "1.2", "Read the milestone first."});
}
Json ask(const std::string& line) {
  const McpIncoming in = protocol().receive(line);
  EXPECT_FALSE(in.call) << line;
  EXPECT_EQ(in.reply.find('\n'), std::string::npos);
  return in.reply.empty() ? Json(nullptr) : Json::parse(in.reply);
}
std::string modern(const std::string& method, const std::string& more = "", const std::string& version = "2026-07-28") {
  return R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":")" +
         version + R"(","io.modelcontextprotocol/clientCapabilities":{}})" + more + "}}";
}

TEST(McpProtocol, LegacyClientsGetTheVersionTheyAskForOrTheLatest) {
  for (const char* v : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    const Json r = ask(std::string(R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":")") + v +
                       R"(","capabilities":{},"clientInfo":{"name":"c","version":"1"}}})");
    EXPECT_EQ(r["id"], 0);
    EXPECT_EQ(r["result"]["protocolVersion"], v);
    EXPECT_TRUE(r["result"]["capabilities"]["tools"].is_object());
    EXPECT_EQ(r["result"]["serverInfo"]["name"], "forge");
    EXPECT_EQ(r["result"]["instructions"], "Read the milestone first.");
  }
  for (const char* v : {"1999-01-01", "2026-07-28"})
    EXPECT_EQ(ask(std::string(R"({"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":")") + v +
                  "\"}}")["result"]["protocolVersion"],
              "2025-11-25");
}

TEST(McpProtocol, LegacyListAndPing) {
  EXPECT_EQ(ask(R"({"jsonrpc":"2.0","id":"p","method":"ping"})"), Json::parse(R"({"jsonrpc":"2.0","id":"p","result":{}})"));
  const Json r = ask(R"({"jsonrpc":"2.0","id":2,"method":"tools/list"})")["result"];
  EXPECT_FALSE(r.contains("resultType"));
  EXPECT_FALSE(r.contains("ttlMs"));
  ASSERT_EQ(r["tools"].size(), 2u);
  EXPECT_EQ(r["tools"][0]["name"], "submit");
  EXPECT_EQ(r["tools"][0]["inputSchema"]["required"][0], "source");
  EXPECT_FALSE(r["tools"][0].contains("outputSchema"));
  EXPECT_EQ(r["tools"][0]["annotations"]["readOnlyHint"], false);
  EXPECT_EQ(r["tools"][0]["annotations"]["destructiveHint"], false);
  EXPECT_EQ(r["tools"][1]["annotations"]["readOnlyHint"], true);
  EXPECT_EQ(r["tools"][1]["annotations"]["idempotentHint"], true);
  EXPECT_EQ(r["tools"][1]["annotations"]["openWorldHint"], false);
}

TEST(McpProtocol, ModernClientsDiscoverAndGetResultTypes) {
  const Json d = ask(modern("server/discover"))["result"];
  EXPECT_EQ(d["resultType"], "complete");
  EXPECT_EQ(d["supportedVersions"][0], "2026-07-28");
  EXPECT_EQ(d["supportedVersions"].size(), 5u);
  EXPECT_TRUE(d["ttlMs"].is_number_integer());
  EXPECT_EQ(d["cacheScope"], "private");
  EXPECT_EQ(d["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "forge");
  const Json l = ask(modern("tools/list"))["result"];
  EXPECT_EQ(l["resultType"], "complete");
  EXPECT_TRUE(l["ttlMs"].is_number_integer());
  EXPECT_EQ(l["cacheScope"], "private");
  EXPECT_EQ(ask(modern("tools/list")), ask(modern("tools/list")));
}

TEST(McpProtocol, ModernErrors) {
  const Json v = ask(modern("tools/list", "", "2031-01-01"))["error"];
  EXPECT_EQ(v["code"], -32022);
  EXPECT_EQ(v["data"]["requested"], "2031-01-01");
  EXPECT_EQ(v["data"]["supported"][0], "2026-07-28");
  EXPECT_EQ(ask(R"({"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}})")["error"]["code"], -32602);
  EXPECT_EQ(
      ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})")
          ["error"]["code"],
      -32602);
  EXPECT_EQ(ask(modern("ping"))["error"]["code"], -32601);
}

TEST(McpProtocol, ACallCarriesItsArgumentsAndToken) {
  const auto in = protocol().receive(
      R"({"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"submit","arguments":{"source":"x\ny"},"_meta":{"progressToken":7}}})");
  ASSERT_TRUE(in.call);
  EXPECT_TRUE(in.reply.empty());
  EXPECT_EQ(in.call->id, "\"a\"");
  EXPECT_EQ(in.call->progress_token, "7");
  EXPECT_FALSE(in.call->modern);
  EXPECT_EQ(in.call->call.tool, "submit");
  EXPECT_EQ(Json::parse(in.call->call.arguments)["source"], "x\ny");
  const auto bare = protocol().receive(modern("tools/call", R"(,"name":"read_milestone")"));
  ASSERT_TRUE(bare.call);
  EXPECT_EQ(bare.call->call.arguments, "{}");
  EXPECT_TRUE(bare.call->progress_token.empty());
  EXPECT_TRUE(bare.call->modern);
}

TEST(McpProtocol, BothHalvesOfAResultAreTheSame) {
  McpCall call{.id = "3", .progress_token = "\"t\"", .modern = false, .call = {}};
  for (const bool error : {false, true}) {
    const Json r = Json::parse(McpProtocol::call_reply(call, {R"({"verdict":"rejected", "b":[1]})", error}));
    EXPECT_EQ(r["id"], 3);
    ASSERT_EQ(r["result"]["content"].size(), 1u);
    EXPECT_EQ(r["result"]["content"][0]["text"], r["result"]["structuredContent"].dump());
    EXPECT_EQ(r["result"]["structuredContent"]["verdict"], "rejected");
    EXPECT_EQ(r["result"].value("isError", false), error);
    EXPECT_FALSE(r["result"].contains("resultType"));
  }
  call.modern = true;
  const Json plain = Json::parse(McpProtocol::call_reply(call, {"no json \xff", false}));
  EXPECT_EQ(plain["result"]["resultType"], "complete");
  EXPECT_TRUE(plain["result"]["structuredContent"]["text"].is_string());
  const Json p = Json::parse(McpProtocol::progress(call, 2, "works"));
  EXPECT_EQ(p["method"], "notifications/progress");
  EXPECT_EQ(p["params"]["progressToken"], "t");
  EXPECT_EQ(p["params"]["progress"], 2);
  EXPECT_FALSE(p.contains("id"));
}

TEST(McpProtocol, WhatIsWrongIsSaidWithTheRightCode) {
  const auto code = [](const std::string& line) { return ask(line)["error"]["code"].get<int>(); };
  EXPECT_EQ(code("not json"), -32700);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"submit","arguments":{"a":)" +
                 std::string(1000000, '[') + std::string(1000000, ']') + "}}}"),
            -32700);  // deeper than a stack is
  EXPECT_EQ(code("[]"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":null,"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"1.0","id":1,"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[1]})"), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"resources/list"})"), -32601);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}})"), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}})"), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"submit","arguments":"x"}})"), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"2"}})"), -32602);
}

TEST(McpProtocol, NotificationsAndAnswersAreNotAnswered) {
  EXPECT_TRUE(ask(R"({"jsonrpc":"2.0","method":"notifications/initialized"})").is_null());
  EXPECT_TRUE(ask(R"({"jsonrpc":"2.0","method":"no/such"})").is_null());
  EXPECT_TRUE(ask(R"({"jsonrpc":"2.0","id":4,"result":{}})").is_null());
  EXPECT_EQ(protocol().receive(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}})").cancelled, "\"q\"");
  EXPECT_EQ(protocol().receive(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{}})").cancelled, "");
}

}  // namespace
}  // namespace forge
