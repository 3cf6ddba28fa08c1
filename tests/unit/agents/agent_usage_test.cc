// SPDX-License-Identifier: Apache-2.0
// Lines in the words of the real programs.
#include "agents/agent_usage.h"

#include <gtest/gtest.h>

namespace forge {
namespace {

TokenUse read(UsageFormat f, const std::vector<std::string>& lines, UsageReader** out = nullptr) {
  static std::unique_ptr<UsageReader> reader;
  reader = make_usage_reader(f);
  for (const std::string& l : lines) reader->line(l);
  reader->end();
  if (out) *out = reader.get();
  return reader->use();
}
void expect(const TokenUse& u, std::int64_t input, std::int64_t read, std::int64_t write, std::int64_t output) {
  EXPECT_EQ(u.input, input);
  EXPECT_EQ(u.cache_read, read);
  EXPECT_EQ(u.cache_write, write);
  EXPECT_EQ(u.output, output);
}

const std::string kClaudeMessage =
    R"({"type":"assistant","message":{"id":"msg_1","role":"assistant","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":1}}})";
const std::string kClaudeResult =
    R"({"type":"result","subtype":"success","is_error":false,"num_turns":3,"total_cost_usd":0.25,"usage":{"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":40},"modelUsage":{"big":{"inputTokens":100,"outputTokens":40,"cacheReadInputTokens":300,"cacheCreationInputTokens":20,"costUSD":0.2,"contextWindow":200000},"small":{"inputTokens":9,"outputTokens":2,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"costUSD":0.05}},"permission_denials":[],"session_id":"x"})";

TEST(AgentUsage, ClaudeCodeSaysItAllInItsResult) {
  UsageReader* r = nullptr;
  const TokenUse u =
      read(UsageFormat::claude_code, {R"({"type":"system","subtype":"init"})", kClaudeMessage, kClaudeMessage, kClaudeResult}, &r);
  expect(u, 109, 300, 20, 42);
  EXPECT_DOUBLE_EQ(u.dollars, 0.25);
  EXPECT_FALSE(u.estimated);
  EXPECT_EQ(r->last_words(), "success");
  EXPECT_TRUE(r->hopeless().empty());
}

TEST(AgentUsage, WhatAKilledClaudeCodeLeavesIsALowerBoundAndSaysSo) {
  const TokenUse u = read(UsageFormat::claude_code, {kClaudeMessage, kClaudeMessage});  // the same message, told twice
  expect(u, 10, 7, 5, 1);
  EXPECT_TRUE(u.estimated);
}

TEST(AgentUsage, NothingThatWasUsedIsTakenBack) {
  const std::string nothing = R"({"type":"result","subtype":"success","usage":{}})";
  const TokenUse u = read(UsageFormat::claude_code, {kClaudeResult, nothing});
  expect(u, 109, 300, 20, 42);
  EXPECT_DOUBLE_EQ(u.dollars, 0.25);
  const std::string gemini = R"({"type":"result","status":"success","stats":{"input_tokens":10,"output_tokens":5,"total_tokens":15}})";
  expect(read(UsageFormat::gemini, {gemini, R"({"type":"result","stats":{}})"}), 10, 0, 0, 5);
}

TEST(AgentUsage, ClaudeCodeRetriesARefusedKeyForMinutes) {
  const auto retry = [](const char* status) {
    UsageReader* r = nullptr;
    read(UsageFormat::claude_code,
         {std::string(R"({"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":500,"error_status":)") +
          status + "}"},
         &r);
    return r->hopeless();
  };
  EXPECT_NE(retry("401").find("401"), std::string::npos);
  EXPECT_NE(retry("403").find("403"), std::string::npos);
  EXPECT_EQ(retry("529"), "");
  EXPECT_EQ(retry("null"), "");
}

TEST(AgentUsage, CodexCountsCachedTokensIntoItsInput) {
  UsageReader* r = nullptr;
  const TokenUse u = read(
      UsageFormat::codex,
      {R"({"type":"thread.started","thread_id":"t"})",
       R"({"type":"item.completed","item":{"id":"i","type":"agent_message","text":"done"}})",
       R"({"type":"turn.completed","usage":{"input_tokens":1000,"cached_input_tokens":600,"cache_write_input_tokens":0,"output_tokens":50,"reasoning_output_tokens":30}})"},
      &r);
  expect(u, 400, 600, 0, 50);
  EXPECT_EQ(u.total(), 1050);
  EXPECT_EQ(r->last_words(), "done");
  read(UsageFormat::codex, {R"({"type":"turn.failed","error":{"message":"401 Unauthorized"}})"}, &r);
  EXPECT_EQ(r->last_words(), "turn failed: 401 Unauthorized");
}

TEST(AgentUsage, GeminiAsAStreamAndAsADocument) {
  expect(
      read(
          UsageFormat::gemini,
          {R"({"type":"init"})",
           R"({"type":"result","status":"success","stats":{"total_tokens":180,"input_tokens":100,"output_tokens":50,"cached":30,"input":70,"duration_ms":1,"tool_calls":2}})"}),
      70, 30, 0, 80);
  expect(
      read(
          UsageFormat::gemini,
          {"{", R"("response": "ok",)",
           R"("stats": {"models": {"a": {"tokens": {"input":70,"prompt":100,"candidates":50,"total":180,"cached":30,"thoughts":30,"tool":0}}}})",
           "}"}),
      70, 30, 0, 80);
}

TEST(AgentUsage, OpencodeIsSummedOverItsSteps) {
  const std::string step =
      R"({"type":"step_finish","part":{"type":"step-finish","tokens":{"total":113,"input":70,"output":10,"reasoning":3,"cache":{"read":30,"write":0}},"cost":0.01}})";
  const TokenUse u = read(UsageFormat::opencode, {step, R"({"type":"text","part":{"text":"hello"}})", step});
  expect(u, 140, 60, 0, 26);
  EXPECT_DOUBLE_EQ(u.dollars, 0.02);
}

TEST(AgentUsage, WhatIsNotUnderstoodIsPassedOver) {
  for (const UsageFormat f :
       {UsageFormat::none, UsageFormat::claude_code, UsageFormat::codex, UsageFormat::gemini, UsageFormat::opencode}) {
    const TokenUse u =
        read(f, {"", "warning: {", "{}", "[1]", R"({"type":7})", R"({"type":"result","usage":3,"stats":[],"modelUsage":"x"})",
                 R"({"type":"turn.completed","usage":{"input_tokens":-5,"output_tokens":1e300}})",
                 R"({"type":"step_finish","part":{"tokens":"many","cost":"dear"}})", "\xff\xfe{"});
    EXPECT_EQ(u.total(), 0) << name(f);
    EXPECT_EQ(u.dollars, 0);
  }
}

}  // namespace
}  // namespace forge
