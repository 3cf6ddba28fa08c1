// SPDX-License-Identifier: Apache-2.0
#include "world.h"

namespace forge {
namespace {

class AnthropicTest : public ModelTest {
 protected:
  Result<ModelReply> ask(double seconds = 60) { return ModelTest::ask("anthropic", seconds); }
};

TEST_F(AnthropicTest, ReadsTextAndCallsFromFragments) {
  for (const char* how : {R"("fragment":1)", R"("fragment":3,"tear":1)", R"("plain":true)"}) {
    serve(std::string(R"({"text":"Grüße, kernel","calls":[{"tool":"submit","arguments":{"source":"a\"b","n":[1,2]},"id":"t1"},)") +
          R"({"tool":"submit","arguments":{},"id":"t2"}],)" + how + "}");
    const auto reply = ask();
    ASSERT_TRUE(reply) << how << reply.error().text();
    EXPECT_EQ(reply->end, ModelReply::End::tool_calls);
    EXPECT_EQ(reply->model, "m-1");
    ASSERT_EQ(reply->blocks.size(), 3u) << how;
    EXPECT_EQ(reply->blocks[0].text, "Grüße, kernel");
    EXPECT_EQ(reply->blocks[1].kind, ModelBlock::Kind::tool_call);
    EXPECT_EQ(reply->blocks[1].text, R"({"source":"a\"b","n":[1,2]})");
    EXPECT_EQ(reply->blocks[1].id, "t1");
    EXPECT_EQ(reply->blocks[1].tool, "submit");
    EXPECT_EQ(reply->blocks[2].text, "{}");
  }
}

TEST_F(AnthropicTest, SendsTheKeyInItsHeaderAlone) {
  serve(R"({"text":"ok"})");
  ASSERT_TRUE(ask());
  EXPECT_EQ(server->seen()[0].path, "/v1/messages");
  EXPECT_EQ(server->seen()[0].key, kKey);
  EXPECT_EQ(server->seen()[0].body.find(kKey), std::string::npos);
}

TEST_F(AnthropicTest, WritesTheConversationAsTheProtocolWantsIt) {
  serve(R"({"text":"ok"})");
  request.messages.push_back({.from_model = true, .blocks = {call("t1", "submit", R"({"a":1})"), call("t2", "submit", R"({"a":)")}});
  request.messages.push_back({.blocks = {user("Note this.").blocks[0], result("t1", "fine"), result("t2", "no JSON", true)}});
  request.messages.push_back(user("  \n"));  // blank text is refused by the real server
  request.messages.push_back(user("Go on."));
  settings.max_output = 4096;
  ASSERT_TRUE(ask());
  const Json j = sent(0);
  EXPECT_EQ(j["model"], "m-1");
  EXPECT_EQ(j["max_tokens"], 4096);
  EXPECT_EQ(j["stream"], true);
  EXPECT_EQ(j["tools"][0]["input_schema"]["properties"]["source"]["type"], "string");
  ASSERT_EQ(j["messages"].size(), 3u);  // sides take turns
  EXPECT_EQ(j["messages"][1]["role"], "assistant");
  EXPECT_EQ(dump(j["messages"][1]["content"][0]), R"({"type":"tool_use","id":"t1","name":"submit","input":{"a":1}})");
  EXPECT_EQ(dump(j["messages"][1]["content"][1]["input"]), "{}");
  const Json& last = j["messages"][2]["content"];
  ASSERT_EQ(last.size(), 4u);
  EXPECT_EQ(dump(last[0]), R"({"type":"tool_result","tool_use_id":"t1","content":"fine"})");  // results first
  EXPECT_EQ(last[1]["is_error"], true);
  EXPECT_EQ(last[2]["text"], "Note this.");
}

TEST_F(AnthropicTest, MarksThePrefixForThePromptCache) {
  serve(R"({"text":"ok"})");
  request.messages.push_back({.from_model = true, .blocks = {call("t1", "submit", "{}")}});
  request.messages.push_back({.blocks = {result("t1", "fine")}});
  ASSERT_TRUE(ask());
  const Json j = sent(0);
  EXPECT_EQ(j["system"][0]["cache_control"]["type"], "ephemeral");
  EXPECT_TRUE(j["messages"][0]["content"].back().contains("cache_control"));
  EXPECT_FALSE(j["messages"][1]["content"].back().contains("cache_control"));
  EXPECT_TRUE(j["messages"][2]["content"].back().contains("cache_control"));
  const std::string body = server->seen()[0].body;
  int marks = 0;
  for (std::size_t at = body.find("cache_control"); at != std::string::npos; at = body.find("cache_control", at + 1)) marks++;
  EXPECT_LE(marks, 4);  // more is an error there
}

TEST_F(AnthropicTest, CountsTokensAndDollars) {
  settings.dollars_per_million_input = 3, settings.dollars_per_million_output = 15, settings.dollars_per_million_cache_read = 0.3;
  serve(R"({"text":"ok","usage":{"input":1000,"cache_read":20000,"cache_write":500,"output":200}})");
  const auto reply = ask();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->use.input, 1000);
  EXPECT_EQ(reply->use.cache_read, 20000);
  EXPECT_EQ(reply->use.cache_write, 500);
  EXPECT_EQ(reply->use.output, 200);
  EXPECT_FALSE(reply->use.estimated);
  // Cache writes have no price of their own here: that of input.
  EXPECT_NEAR(reply->use.dollars, (1000 * 3 + 20000 * 0.3 + 500 * 3 + 200 * 15) / 1e6, 1e-12);
}

TEST_F(AnthropicTest, EstimatesWhereTheServerDoesNotCount) {
  serve(R"({"text":"0123456789abcdef","usage":null})");
  const auto reply = ask();
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->use.estimated);
  EXPECT_GT(reply->use.input, 50);
  EXPECT_EQ(reply->use.output, 5);
}

TEST_F(AnthropicTest, ThoughtsGoBackUnchanged) {
  serve(R"({"thinking":"hmm, registers","text":"ok","fragment":4})"
        "\n"
        R"({"text":"done"})");
  auto model = client("anthropic");
  const auto first = model->ask(request, 60);
  ASSERT_TRUE(first);
  ASSERT_EQ(first->blocks[0].kind, ModelBlock::Kind::opaque);
  request.messages.push_back({.from_model = true, .blocks = first->blocks});
  request.messages.push_back(user("Go on."));
  ASSERT_TRUE(model->ask(request, 60));
  EXPECT_EQ(dump(sent(1)["messages"][1]["content"][0]), R"({"type":"thinking","thinking":"hmm, registers","signature":"c2lnbmVk"})");
}

TEST_F(AnthropicTest, GoesOnWhereTheModelPaused) {
  serve(R"({"text":"first, ","stop":"pause","usage":{"output":5}})"
        "\n"
        R"({"text":"then","must":"first, ","usage":{"output":7}})");
  const auto reply = ask();
  ASSERT_TRUE(reply) << reply.error().text();
  ASSERT_EQ(reply->blocks.size(), 2u);
  EXPECT_EQ(reply->blocks[0].text + reply->blocks[1].text, "first, then");
  EXPECT_EQ(reply->end, ModelReply::End::turn);
  EXPECT_EQ(reply->use.output, 12);
  EXPECT_EQ(sent(1)["messages"].back()["role"], "assistant");
}

TEST_F(AnthropicTest, APauseForEverEnds) {
  serve(R"({"text":"and ","stop":"pause","times":0})");
  ASSERT_TRUE(ask());
  EXPECT_EQ(server->seen().size(), 9u);
}

TEST_F(AnthropicTest, NamesWhyTheModelStopped) {
  serve(R"({"text":"cut off","stop":"length"})"
        "\n"
        R"({"calls":[{"tool":"submit","arguments":"{\"sour"}],"stop":"length"})"
        "\n"
        R"({"text":"no","stop":"refusal"})"
        "\n"
        R"({"text":"full","stop":"context"})"
        "\n"
        R"({"text":"x","stop":"stop_sequence"})");
  EXPECT_EQ(ask()->end, ModelReply::End::length);
  const auto cut = ask();
  EXPECT_EQ(cut->end, ModelReply::End::length);
  EXPECT_EQ(cut->blocks[0].text, "{\"sour");  // as far as it was written
  EXPECT_EQ(ask()->end, ModelReply::End::refusal);
  EXPECT_EQ(ask().error().code, Code::out_of_range);
  EXPECT_EQ(ask()->end, ModelReply::End::turn);
}

TEST_F(AnthropicTest, MalformedArgumentsAreKeptAsTheyAre) {
  serve(R"({"calls":[{"tool":"submit","arguments":"{\"source\": oops","id":"t1"}]})");
  const auto reply = ask();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->blocks[0].text, "{\"source\": oops");
  EXPECT_EQ(reply->end, ModelReply::End::tool_calls);
}

TEST_F(AnthropicTest, ACutStreamIsAskedAgainAndItsTokensCount) {
  settings.dollars_per_million_input = 1e6;
  serve(R"({"text":"half","cut":4,"usage":{"input":70,"output":9}})"
        "\n"
        R"({"text":"whole","usage":{"input":70,"output":9}})");
  const auto reply = ask();
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->blocks[0].text, "whole");
  EXPECT_EQ(reply->use.input, 140);
  EXPECT_EQ(reply->use.dollars, 140);
  EXPECT_EQ(waiter.waits.size(), 1u);
}

TEST_F(AnthropicTest, AStreamThatEndsAtAnyEventIsEitherWholeOrAskedAgain) {
  const std::string line = R"("text":"some text","calls":[{"tool":"submit","arguments":{"n":1}}],"fragment":4)";
  for (int cut = 0; cut < 14; ++cut) {
    serve("{" + line + ",\"cut\":" + std::to_string(cut) + "}\n{" + line + "}");
    const auto reply = ask();
    ASSERT_TRUE(reply) << cut << reply.error().text();
    ASSERT_EQ(reply->blocks.size(), 2u) << cut;
    EXPECT_EQ(reply->blocks[1].text, R"({"n":1})") << cut;
  }
}

TEST_F(AnthropicTest, ErrorsInsideAStreamCountAsTheirStatus) {
  serve(R"({"text":"x","fail":"overloaded_error"})"
        "\n"
        R"({"text":"whole"})");
  EXPECT_EQ(ask()->blocks[0].text, "whole");
  serve(R"({"text":"x","fail":"invalid_request_error"})"
        "\n"
        R"({"text":"never"})");
  const auto reply = ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::bad_input);
  EXPECT_NE(reply.error().message.find("in the middle"), std::string::npos);
  EXPECT_EQ(server->left(), 1);
}

}  // namespace
}  // namespace forge
