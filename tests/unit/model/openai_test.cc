// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "world.h"

namespace forge {
namespace {

class OpenAiTest : public ModelTest {
 protected:
  Result<ModelReply> ask(double seconds = 60) { return ModelTest::ask("openai", seconds); }
  // A body as some server sends it, word for word.
  void serve_raw(const std::string& body) { serve(dump(Json{{"raw", body}, {"times", 0}})); }
};

TEST_F(OpenAiTest, ReadsTextAndCallsFromFragments) {
  for (const char* how : {R"("fragment":1)", R"("fragment":3,"tear":1)", R"("plain":true)"}) {
    serve(std::string(R"({"text":"Grüße, kernel","calls":[{"tool":"submit","arguments":{"source":"a\"b","n":[1,2]},"id":"t1"},)") +
          R"({"tool":"submit","arguments":{},"id":"t2"}],)" + how + "}");
    const auto reply = ask();
    ASSERT_TRUE(reply) << how << reply.error().text();
    EXPECT_EQ(reply->end, ModelReply::End::tool_calls);
    EXPECT_EQ(reply->model, "m-1");
    ASSERT_EQ(reply->blocks.size(), 3u) << how;
    EXPECT_EQ(reply->blocks[0].text, "Grüße, kernel");
    EXPECT_EQ(reply->blocks[1].text, R"({"source":"a\"b","n":[1,2]})");
    EXPECT_EQ(reply->blocks[1].id, "t1");
    EXPECT_EQ(reply->blocks[2].text, "{}");
    EXPECT_EQ(reply->blocks[2].tool, "submit");
  }
}

TEST_F(OpenAiTest, WritesTheConversationAsTheProtocolWantsIt) {
  serve(R"({"text":"ok"})");
  request.messages.push_back({.from_model = true,
                              .blocks = {{.kind = ModelBlock::Kind::opaque, .text = R"({"type":"thinking"})"},
                                         call("t1", "submit", R"({"a":1})"),
                                         call("t2", "submit", R"({"a":)")}});
  request.messages.push_back({.blocks = {result("t1", "fine"), result("t2", "no JSON", true), user("Go on.").blocks[0]}});
  settings.max_output = 4096;
  ASSERT_TRUE(ask());
  EXPECT_EQ(server->seen()[0].path, "/v1/chat/completions");
  EXPECT_EQ(server->seen()[0].key, kKey);
  EXPECT_EQ(server->seen()[0].body.find(kKey), std::string::npos);
  const Json j = sent(0);
  EXPECT_EQ(j["max_tokens"], 4096);
  EXPECT_EQ(dump(j["stream_options"]), R"({"include_usage":true})");
  EXPECT_EQ(j["tools"][0]["function"]["parameters"]["type"], "object");
  ASSERT_EQ(j["messages"].size(), 6u);
  EXPECT_EQ(dump(j["messages"][0]), R"({"role":"system","content":"You write kernels."})");
  EXPECT_EQ(j["messages"][2]["tool_calls"].size(), 2u);
  EXPECT_EQ(j["messages"][2]["tool_calls"][0]["function"]["arguments"], R"({"a":1})");
  EXPECT_EQ(j["messages"][2]["tool_calls"][1]["function"]["arguments"], "{}");  // servers parse it, and fail
  EXPECT_EQ(dump(j["messages"][3]), R"({"role":"tool","tool_call_id":"t1","content":"fine"})");
  EXPECT_EQ(j["messages"][4]["content"], "error: no JSON");
  EXPECT_EQ(dump(j["messages"][5]), R"({"role":"user","content":"Go on."})");
}

TEST_F(OpenAiTest, CountsTokensAndDollars) {
  settings.dollars_per_million_input = 2, settings.dollars_per_million_output = 8, settings.dollars_per_million_cache_read = 0.5;
  serve(R"({"text":"ok","usage":{"input":1000,"cache_read":20000,"cache_write":500,"output":200}})");
  const auto reply = ask();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->use.input, 1000);  // the prompt's count less what was cached
  EXPECT_EQ(reply->use.cache_read, 20000);
  EXPECT_EQ(reply->use.cache_write, 500);
  EXPECT_EQ(reply->use.output, 200);
  EXPECT_NEAR(reply->use.dollars, (1000 * 2 + 20000 * 0.5 + 500 * 2 + 200 * 8) / 1e6, 1e-12);
}

TEST_F(OpenAiTest, EstimatesWhereTheServerDoesNotCount) {
  for (const char* how : {"true", "false"}) {
    serve(std::string(R"({"text":"0123456789abcdef","usage":null,"plain":)") + how + "}");
    const auto reply = ask();
    ASSERT_TRUE(reply);
    EXPECT_TRUE(reply->use.estimated);
    EXPECT_GT(reply->use.input, 50);
    EXPECT_EQ(reply->use.output, 5);
  }
}

TEST_F(OpenAiTest, NamesWhyTheModelStopped) {
  serve(R"({"text":"cut off","stop":"length"})"
        "\n"
        R"({"text":"no","stop":"refusal"})"
        "\n"
        R"({"calls":[{"tool":"submit"}],"stop":"stop"})"
        "\n"
        R"({"text":"x","stop":"turn"})");
  EXPECT_EQ(ask()->end, ModelReply::End::length);
  EXPECT_EQ(ask()->end, ModelReply::End::refusal);
  EXPECT_EQ(ask()->end, ModelReply::End::tool_calls);  // some servers say "stop" after calls too
  EXPECT_EQ(ask()->end, ModelReply::End::turn);
}

TEST_F(OpenAiTest, MalformedArgumentsAreKeptAsTheyAre) {
  serve(R"({"calls":[{"tool":"submit","arguments":"{\"source\": oops","id":"t1"}]})");
  const auto reply = ask();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->blocks[0].text, "{\"source\": oops");
}

TEST_F(OpenAiTest, IdsThatAreMissingOrTakenAreReplaced) {
  serve(R"({"calls":[{"tool":"a","id":"call_0"},{"tool":"b","id":""},{"tool":"c","id":"call_0"}]})");
  request.messages.push_back({.from_model = true, .blocks = {call("call_0", "submit", "{}")}});
  request.messages.push_back({.blocks = {result("call_0", "fine")}});
  const auto reply = ask();
  ASSERT_TRUE(reply);
  std::set<std::string> ids = {"call_0", ""};
  for (const ModelBlock& block : reply->blocks) EXPECT_TRUE(ids.insert(block.id).second) << block.id;
}

TEST_F(OpenAiTest, ACutStreamIsAskedAgain) {
  serve(R"({"text":"half","cut":2})"
        "\n"
        R"({"text":"whole"})");
  EXPECT_EQ(ask()->blocks[0].text, "whole");
}

TEST_F(OpenAiTest, AStreamThatEndsAtAnyEventIsEitherWholeOrAskedAgain) {
  const std::string line = R"("text":"some text","calls":[{"tool":"submit","arguments":{"n":1}}],"fragment":4)";
  for (int cut = 0; cut < 11; ++cut) {
    serve("{" + line + ",\"cut\":" + std::to_string(cut) + "}\n{" + line + "}");
    const auto reply = ask();
    ASSERT_TRUE(reply) << cut << reply.error().text();
    ASSERT_EQ(reply->blocks.size(), 2u) << cut;
    EXPECT_EQ(reply->blocks[1].text, R"({"n":1})") << cut;
  }
}

TEST_F(OpenAiTest, ErrorsInsideAStreamCountAsTheirStatus) {
  serve(R"({"text":"x","fail":"server_error"})"
        "\n"
        R"({"text":"whole"})");
  EXPECT_EQ(ask()->blocks[0].text, "whole");
  serve_raw("data: {\"object\":\"error\",\"message\":\"bad schema\",\"code\":400}\n\n");  // vLLM
  const auto reply = ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::bad_input);
  EXPECT_NE(reply.error().message.find("bad schema"), std::string::npos);
}

TEST_F(OpenAiTest, LearnsTheDialectOfAServer) {
  serve(R"({"status":400,"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."})"
        "\n"
        R"({"status":422,"message":"extra fields not permitted: stream_options"})"
        "\n"
        R"({"text":"ok","must":"max_completion_tokens","must_not":["\"max_tokens\"","stream_options"],"times":2})");
  auto model = client("openai");
  ASSERT_TRUE(model->ask(request, 60));
  ASSERT_TRUE(model->ask(request, 60));  // remembered
  EXPECT_EQ(server->seen().size(), 4u);
  // A server that takes neither is not asked for ever.
  serve(R"({"status":400,"message":"max_tokens and max_completion_tokens are both odd","times":0})");
  EXPECT_EQ(ask().error().code, Code::bad_input);
  EXPECT_EQ(server->seen().size(), 2u);
}

TEST_F(OpenAiTest, UnderstandsWholeCallsWithoutAnIndexAndObjectsAsArguments) {  // Ollama, older llama.cpp
  serve_raw(
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":{\"n\":1}}}]}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"b\",\"function\":{\"name\":\"y\",\"arguments\":\"{}\"}}]}}]}\n\n"
      "data: [DONE]\n\n");
  const auto reply = ask();
  ASSERT_TRUE(reply) << reply.error().text();
  ASSERT_EQ(reply->blocks.size(), 2u);
  EXPECT_EQ(reply->blocks[0].text, R"({"n":1})");
  EXPECT_EQ(reply->blocks[1].tool, "y");
  EXPECT_EQ(reply->end, ModelReply::End::tool_calls);
}

TEST_F(OpenAiTest, OddFieldsDoNotCrash) {
  for (const char* body :
       {R"({"choices":[{"message":{"content":null,"tool_calls":{}},"finish_reason":"stop"}],"usage":[]})",
        R"({"choices":[{"message":{"content":[{"type":"text","text":"a"},7],"tool_calls":[3,null]}}],"usage":{"prompt_tokens":-5}})",
        "data: {\"choices\":[7]}\n\ndata: {\"choices\":[{\"delta\":[]}]}\n\ndata: []\n\ndata: "
        "{\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n"}) {
    serve_raw(body);
    const auto reply = ask();
    ASSERT_TRUE(reply) << body << reply.error().text();
    EXPECT_GE(reply->use.input, 0);
  }
}

TEST_F(OpenAiTest, WhatIsNoAnswerIsNotAskedAgain) {
  serve_raw("<html>Welcome to the hotel's network</html>");
  const auto reply = ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::bad_input);
  EXPECT_NE(reply.error().message.find("hotel"), std::string::npos);
  EXPECT_EQ(server->seen().size(), 1u);
}

}  // namespace
}  // namespace forge
