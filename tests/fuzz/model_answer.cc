// SPDX-License-Identifier: Apache-2.0
// What a server of either protocol answers, streamed or whole; and the refusals of one. What was understood is sent back to it.
// Input: an answer.
// link: forge_model
#include <ctime>

#include "fuzz/target.h"
#include "model/anthropic.h"
#include "model/openai.h"
#include "model/sse.h"

namespace forge {

static void look_at_reply(const Endpoint& e, ModelReply reply) {
  clean(e, reply);
  ModelRequest request;
  request.tools.push_back({"submit", "d", R"({"type":"object"})"});
  request.messages.push_back({.from_model = false, .blocks = {{.kind = ModelBlock::Kind::text, .text = "do"}}});
  repair_ids(request, reply);
  settle({}, 100, false, reply);
  HOLDS(reply.use.total() >= 0);
  request.messages.push_back({.from_model = true, .blocks = reply.blocks});
  for (const ModelBlock& b : reply.blocks)
    if (b.kind == ModelBlock::Kind::tool_call) request.messages.push_back({.blocks = {{ModelBlock::Kind::tool_result, "{}", b.id}}});
  const auto body = e.protocol == "openai" ? openai_body(e, {}, request, {}) : anthropic_body(e, {}, request, {});
  HOLDS(!body || body->find(e.key) == std::string::npos);
}

template <class Reader, class Finish>
static void read_answer(const Endpoint& e, std::string_view bytes, const Finish& finish) {
  {
    Reader streamed(e);
    EventSplitter splitter;
    splitter.feed(bytes, [&](const ServerEvent& event) {
      streamed.event(event.data);
      return !streamed.ended && !streamed.problem;
    });
    (void)streamed.whole();
    finish(streamed);
    look_at_reply(e, streamed.reply);
  }
  Reader whole(e);
  whole.document(std::string(bytes));
  finish(whole);
  look_at_reply(e, whole.reply);
}

FORGE_FUZZ_TARGET(model_answer) {
  Endpoint e{.protocol = "anthropic", .model = "m", .base_url = "https://api", .vendors = true, .key = "sk-0123456789"};
  read_answer<AnthropicAnswer>(e, bytes, [](AnthropicAnswer& a) { (void)a.paused(); });
  e.protocol = "openai";
  read_answer<OpenAiAnswer>(e, bytes, [](OpenAiAnswer& a) { a.finish(); });
  const std::string text(bytes);
  const double wait = parse_retry_after(text, 1700000000);
  HOLDS(wait >= 0);
  HOLDS(backoff_seconds(3, wait, 0.5) >= 0);
  const ServerError error = read_server_error(text);
  for (const int status : {200, 400, 401, 413, 429, 529}) (void)setback_of(e, status, error, wait);
}

}  // namespace forge
