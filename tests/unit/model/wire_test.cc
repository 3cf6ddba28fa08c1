// SPDX-License-Identifier: Apache-2.0
// What a refusal means, in either protocol.
#include <utility>

#include "util/progress.h"
#include "world.h"

namespace forge {
namespace {

class WireTest : public ModelTest, public testing::WithParamInterface<const char*> {
 protected:
  Result<ModelReply> ask(double seconds = 600) { return ModelTest::ask(GetParam(), seconds); }
  static std::string answer(int status, const std::string& message = "no", const std::string& rest = "") {
    return R"({"status":)" + std::to_string(status) + R"(,"message":")" + message + "\"" + rest + "}\n";
  }
};
INSTANTIATE_TEST_SUITE_P(Protocols, WireTest, testing::Values("anthropic", "openai"));

TEST_P(WireTest, WhatMayPassIsAskedAgain) {
  for (int status : {429, 500, 502, 503, 504, 529}) {
    serve(answer(status) + answer(status) + R"({"text":"at last"})");
    const auto reply = ask();
    ASSERT_TRUE(reply) << status << reply.error().text();
    EXPECT_EQ(server->seen().size(), 3u);
  }
}

TEST_P(WireTest, WhatWillNotChangeIsAskedOnce) {
  for (int status : {400, 401, 402, 403, 404, 413, 422, 307}) {
    serve(answer(status, "because") + R"({"text":"never"})");
    const auto reply = ask();
    ASSERT_FALSE(reply) << status;
    EXPECT_EQ(reply.error().code, status == 413 ? Code::out_of_range : Code::bad_input) << status;
    EXPECT_NE(reply.error().message.find(std::to_string(status)), std::string::npos);
    EXPECT_NE(reply.error().message.find("because"), std::string::npos);
    EXPECT_EQ(server->left(), 1) << status;
  }
}

TEST_P(WireTest, RetryAfterIsTheLeastWait) {
  serve(answer(429, "slower", R"(,"retry_after":37)") + R"({"text":"at last"})");
  ASSERT_TRUE(ask());
  ASSERT_EQ(waiter.waits.size(), 1u);
  EXPECT_GE(waiter.waits[0], 37);
  EXPECT_LT(waiter.waits[0], 45);
}

TEST_P(WireTest, AWaitBeyondTheGrantedSecondsIsNotBegun) {
  serve(answer(429, "slower", R"(,"retry_after":3700)") + R"({"text":"never"})");
  const auto reply = ask(60);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::timeout);
  EXPECT_TRUE(waiter.waits.empty());
}

TEST_P(WireTest, AServerThatStaysBrokenEndsInATimeout) {
  serve(answer(500, "broken", R"(,"times":0)"));
  const auto reply = ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::timeout);
  EXPECT_EQ(server->seen().size(), 6u);
  EXPECT_NE(reply.error().message.find("broken"), std::string::npos);
}

TEST_P(WireTest, ASilentServerEndsWhenTheSecondsDo) {
  serve(R"({"stall":30,"times":0})");
  const double start = monotonic_seconds();
  settings.attempts = 1;
  EXPECT_EQ(ask(0.5).error().code, Code::timeout);
  EXPECT_LT(monotonic_seconds() - start, 5);
}

TEST_P(WireTest, TheKeyIsInNoError) {
  // A server that quotes it: as the message of a refusal, of a temporary failure, inside an error page.
  serve(answer(401, "invalid key {{key}}, {{key}}") + answer(500, "{{key}}", R"(,"times":6)") +
        answer(400, std::string(5000, 'x') + "{{key}}") + answer(400, std::string(590, 'x') + "{{key}}"));
  for (int n = 0; n < 4; ++n) {
    const auto reply = ask();
    ASSERT_FALSE(reply);
    const std::string text = reply.error().text();
    EXPECT_EQ(text.find(kKey), std::string::npos) << text;
    EXPECT_EQ(text.find("sk-test"), std::string::npos) << text;  // nor the beginning of one that was cut
    if (n == 0) {
      EXPECT_NE(text.find("invalid key [key], [key]"), std::string::npos) << text;
      EXPECT_NE(text.find("check "), std::string::npos) << text;
    }
  }
  EXPECT_EQ(server->left(), 0);
}

TEST_P(WireTest, TheKeyIsInNoReply) {
  serve(std::string(R"({"text":"you sent )") + kKey + R"(","fragment":3})" + "\n" + R"({"calls":[{"tool":"x","arguments":{"key":")" + kKey +
        R"("}}],"thinking":")" + kKey + R"("})");
  for (int n = 0; n < 2; ++n) {
    const auto reply = ask();
    ASSERT_TRUE(reply);
    for (const ModelBlock& block : reply->blocks) EXPECT_EQ(block.text.find(kKey), std::string::npos) << block.text;
  }
}

TEST_P(WireTest, APromptThatIsTooLongIsAnErrorOfItsOwn) {
  for (const char* message :
       {"prompt is too long: 213462 tokens > 200000 maximum", "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
        "the request exceeds the available context size, try increasing it"}) {
    serve(answer(400, message));
    const auto reply = ask();
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, Code::out_of_range) << message;
  }
  serve(answer(429, "too many tokens in your context window a minute") + R"({"text":"at last"})");
  EXPECT_TRUE(ask());  // not this one
}

TEST_P(WireTest, AnEmptyAccountIsNotWaitedFor) {
  serve(answer(429, "You exceeded your current quota", R"(,"error":"insufficient_quota")"));
  EXPECT_EQ(ask().error().code, Code::bad_input);
  EXPECT_EQ(server->seen().size(), 1u);
}

TEST_P(WireTest, AStopIsNotTakenForAFailure) {
  serve(R"({"text":"never"})");
  request_stop();
  const auto reply = ask();
  reset_stop();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::interrupted);
  EXPECT_TRUE(waiter.waits.empty());
}

TEST(RealWaiter, WaitsAndStops) {
  const double start = real_waiter().now();
  EXPECT_TRUE(real_waiter().wait(0.05));
  EXPECT_GE(real_waiter().now() - start, 0.05);
  request_stop();
  EXPECT_FALSE(real_waiter().wait(60));
  reset_stop();
  EXPECT_LT(real_waiter().now() - start, 10);
  for (int i = 0; i < 100; ++i) EXPECT_LT(std::abs(real_waiter().uniform() - 0.5), 0.5001);
}

TEST(ServerErrors, AreReadInEveryShapeInUse) {
  const auto read = [](const char* body) {
    const ServerError e = read_server_error(body);
    return e.type + "|" + e.code + "|" + e.message;
  };
  EXPECT_EQ(read(R"({"type":"error","error":{"type":"api_error","message":"m"}})"), "api_error||m");
  EXPECT_EQ(read(R"({"error":{"message":"m","type":"t","param":null,"code":"c"}})"), "t|c|m");
  EXPECT_EQ(read(R"({"object":"error","message":"m","type":"BadRequestError","param":null,"code":400})"), "BadRequestError|400|m");
  EXPECT_EQ(read(R"({"error":"m"})"), "||m");
  EXPECT_EQ(read(R"({"detail":"m"})"), "||m");
  EXPECT_EQ(read("<html>m"), "||<html>m");
  EXPECT_EQ(read(""), "||");
  EXPECT_EQ(read("[1]"), "||[1]");
}

}  // namespace
}  // namespace forge
