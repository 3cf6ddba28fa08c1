// SPDX-License-Identifier: Apache-2.0
// The answer of chat completions: chunks, or one document from a server that does not stream.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/loose_json.h"
#include "model/openai.h"

namespace forge {

struct OpenAiAnswer::Parts {
  const Endpoint& endpoint;
  struct Call {
    std::string id, name, arguments;
  };
  std::string text, refusal, finish;
  std::map<std::int64_t, Call> calls;  // by their index
};

OpenAiAnswer::OpenAiAnswer(const Endpoint& endpoint) : m_parts(new Parts{endpoint, {}, {}, {}, {}}) {}
OpenAiAnswer::~OpenAiAnswer() = default;

bool OpenAiAnswer::whole() const { return !m_parts->finish.empty(); }

namespace {

void read_chat_use(const Json& usage, TokenUse& use, bool& counted) {
  if (!usage.is_object() || !usage.contains("prompt_tokens")) return;
  counted = true;
  // Here the prompt's count includes what came from the cache, and what went there.
  const std::int64_t prompt = count_of(usage, "prompt_tokens");
  const Json& details = field_of(usage, "prompt_tokens_details");
  use.cache_read = std::min(prompt, count_of(details, "cached_tokens"));
  use.cache_write = std::min(prompt - use.cache_read, count_of(details, "cache_write_tokens"));
  use.input = prompt - use.cache_read - use.cache_write;
  use.output = count_of(usage, "completion_tokens");
}

// An error inside an answer of status 200: the status is its code, where that is one.
Setback setback_inside(const Endpoint& endpoint, const std::string& text) {
  const ServerError error = read_server_error(text);
  const int code = std::atoi(error.code.c_str());
  const int status = code >= 400 && code < 600 ? code : error.type == "rate_limit_error" ? 429 : 500;
  return setback_of(endpoint, status, error, 0);
}

bool is_error(const Json& j) { return !field_of(j, "error").is_null() || text_of(j, "object") == "error"; }

// `m` is a message, or a delta of one: both name the same fields.
template <class Parts>
void read_message(const Json& m, Parts& p) {
  if (const Json& content = field_of(m, "content"); content.is_array()) {
    for (const Json& part : content) p.text += text_of(part, "text");
  } else {
    p.text += text_of(m, "content");
  }
  p.refusal += text_of(m, "refusal");
  const Json& calls = field_of(m, "tool_calls");
  if (!calls.is_array()) return;
  for (const Json& call : calls) {
    // Some servers leave the index out, and send each call whole: one with a name begins.
    const Json& function = field_of(call, "function");
    const bool begins = !text_of(function, "name").empty();
    std::int64_t index = static_cast<std::int64_t>(p.calls.size()) - (begins || p.calls.empty() ? 0 : 1);
    if (field_of(call, "index").is_number_unsigned()) index = count_of(call, "index");
    auto& c = p.calls[index];
    if (c.id.empty()) c.id = text_of(call, "id");
    if (c.name.empty()) c.name = text_of(function, "name");
    c.arguments += text_of(function, "arguments");  // a server that sends an object here gets its JSON text
  }
}

}  // namespace

void OpenAiAnswer::event(const std::string& data) {
  Parts& p = *m_parts;
  if (data == "[DONE]") {
    // A server that never says why it stopped has stopped all the same.
    if (p.finish.empty() && (!p.text.empty() || !p.calls.empty())) p.finish = "stop";
    ended = true;
    return;
  }
  const auto read = parse_json(data, "");
  if (!read) {
    problem = broken_answer(p.endpoint, "an event of the stream is no JSON");
  } else if (is_error(*read)) {
    problem = setback_inside(p.endpoint, data);
  } else {
    if (reply.model.empty()) reply.model = text_of(*read, "model");
    read_chat_use(field_of(*read, "usage"), reply.use, counted);
    const Json& choices = field_of(*read, "choices");
    if (!choices.is_array() || choices.empty()) return;
    read_message(field_of(choices[0], "delta"), p);
    if (std::string finish = text_of(choices[0], "finish_reason"); !finish.empty()) p.finish = finish;
  }
}

void OpenAiAnswer::document(const std::string& text) {
  Parts& p = *m_parts;
  const auto read = parse_json(text, "");
  if (!read) return;
  if (is_error(*read)) {
    problem = setback_inside(p.endpoint, text);
    return;
  }
  const Json& choices = field_of(*read, "choices");
  if (!choices.is_array() || choices.empty()) return;
  reply.model = text_of(*read, "model");
  read_chat_use(field_of(*read, "usage"), reply.use, counted);
  read_message(field_of(choices[0], "message"), p);
  p.finish = text_of(choices[0], "finish_reason");
  if (p.finish.empty()) p.finish = "stop";
}

void OpenAiAnswer::finish() {
  Parts& p = *m_parts;
  if (!p.text.empty()) reply.blocks.push_back({.kind = ModelBlock::Kind::text, .text = p.text});
  if (!p.refusal.empty()) reply.blocks.push_back({.kind = ModelBlock::Kind::text, .text = p.refusal});
  for (const auto& [index, call] : p.calls)
    reply.blocks.push_back(
        {.kind = ModelBlock::Kind::tool_call, .text = call.arguments.empty() ? "{}" : call.arguments, .id = call.id, .tool = call.name});
  reply.end = p.calls.empty() ? ModelReply::End::turn : ModelReply::End::tool_calls;  // some say "stop" after calls too
  if (p.finish == "length") reply.end = ModelReply::End::length;
  if (p.finish == "content_filter" || !p.refusal.empty()) reply.end = ModelReply::End::refusal;
}

}  // namespace forge
