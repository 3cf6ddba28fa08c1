// SPDX-License-Identifier: Apache-2.0
// The Messages API's answer: a stream of blocks in fragments, or one message.
#include <algorithm>
#include <map>

#include "core/loose_json.h"
#include "model/anthropic.h"

namespace forge {

namespace {

int status_of(const std::string& type) {
  static const std::map<std::string, int> known = {
      {"invalid_request_error", 400}, {"authentication_error", 401}, {"billing_error", 402},    {"permission_error", 403},
      {"not_found_error", 404},       {"request_too_large", 413},    {"rate_limit_error", 429}, {"api_error", 500},
      {"timeout_error", 504},         {"overloaded_error", 529}};
  const auto at = known.find(type);
  return at == known.end() ? 500 : at->second;
}

void append(Json& block, const char* key, const std::string& text) { block[key] = text_of(block, key) + text; }

}  // namespace

struct AnthropicAnswer::Parts {
  const Endpoint& endpoint;
  struct Block {
    Json json = Json::object();
    std::string arguments;  // fragments of a tool's input
  };
  std::map<std::int64_t, Block> blocks;  // by their index in the stream
  std::string stop;                      // why the model stopped
};

AnthropicAnswer::AnthropicAnswer(const Endpoint& endpoint) : m_parts(new Parts{endpoint, {}, {}}) {}
AnthropicAnswer::~AnthropicAnswer() = default;

bool AnthropicAnswer::whole() const { return !m_parts->stop.empty(); }
bool AnthropicAnswer::paused() const { return m_parts->stop == "pause_turn"; }

namespace {

// The counts grow through a stream; a field that is absent says nothing.
void read_use(const Json& usage, TokenUse& use, bool& counted) {
  if (!usage.is_object()) return;
  counted = true;
  use.input = std::max(use.input, count_of(usage, "input_tokens"));
  use.output = std::max(use.output, count_of(usage, "output_tokens"));
  use.cache_read = std::max(use.cache_read, count_of(usage, "cache_read_input_tokens"));
  use.cache_write = std::max(use.cache_write, count_of(usage, "cache_creation_input_tokens"));
}

void read_delta(const Json& delta, Json& block, std::string& arguments) {
  const std::string type = text_of(delta, "type");
  if (type == "text_delta") append(block, "text", text_of(delta, "text"));
  if (type == "thinking_delta") append(block, "thinking", text_of(delta, "thinking"));
  if (type == "signature_delta") append(block, "signature", text_of(delta, "signature"));
  if (type == "input_json_delta") arguments += text_of(delta, "partial_json");
  if (type == "citations_delta") {
    if (!field_of(block, "citations").is_array()) block["citations"] = Json::array();
    block["citations"].push_back(field_of(delta, "citation"));
  }
}

ModelBlock finished(Json block, const std::string& arguments) {
  const std::string type = text_of(block, "type");
  if (type == "text") return {.kind = ModelBlock::Kind::text, .text = text_of(block, "text")};
  if (type == "tool_use") {
    const std::string whole = arguments.empty() ? dump(field_of(block, "input")) : arguments;
    return {.kind = ModelBlock::Kind::tool_call,
            .text = whole == "null" ? "{}" : whole,
            .id = text_of(block, "id"),
            .tool = text_of(block, "name")};
  }
  // Thoughts, and the server's own tools: back they go as they came.
  if (auto input = parse_json(arguments, ""); !arguments.empty() && input) block["input"] = *input;
  return {.kind = ModelBlock::Kind::opaque, .text = dump(block)};
}

}  // namespace

void AnthropicAnswer::event(const std::string& data) {
  Parts& p = *m_parts;
  const auto read = parse_json(data, "");
  if (!read) {
    problem = broken_answer(p.endpoint, "an event of the stream is no JSON");
    return;
  }
  const std::string type = text_of(*read, "type");
  if (type == "message_start") {
    const Json& message = field_of(*read, "message");
    reply.model = text_of(message, "model");
    read_use(field_of(message, "usage"), reply.use, counted);
  } else if (type == "content_block_start") {
    Parts::Block& block = p.blocks[count_of(*read, "index")];
    if (const Json& start = field_of(*read, "content_block"); start.is_object()) block.json = start;
  } else if (type == "content_block_delta") {
    Parts::Block& block = p.blocks[count_of(*read, "index")];
    read_delta(field_of(*read, "delta"), block.json, block.arguments);
  } else if (type == "message_delta") {
    if (std::string stop = text_of(field_of(*read, "delta"), "stop_reason"); !stop.empty()) p.stop = stop;
    read_use(field_of(*read, "usage"), reply.use, counted);
    finish(text_of(field_of(field_of(*read, "delta"), "stop_details"), "explanation"));
  } else if (type == "message_stop") {
    ended = true;
  } else if (type == "error") {
    const ServerError error = read_server_error(data);
    problem = setback_of(p.endpoint, status_of(error.type), error, 0);
  }
}

void AnthropicAnswer::document(const std::string& text) {
  const auto read = parse_json(text, "");
  if (!read || !field_of(*read, "content").is_array()) {
    if (read && read->contains("error")) {
      const ServerError error = read_server_error(text);
      problem = setback_of(m_parts->endpoint, status_of(error.type), error, 0);
    }
    return;
  }
  reply.model = text_of(*read, "model");
  read_use(field_of(*read, "usage"), reply.use, counted);
  std::int64_t index = 0;
  for (const Json& block : field_of(*read, "content")) m_parts->blocks[index++].json = block;
  m_parts->stop = text_of(*read, "stop_reason");
  finish(text_of(field_of(*read, "stop_details"), "explanation"));
}

// The model has stopped: its blocks become the reply's.
void AnthropicAnswer::finish(const std::string& explanation) {
  Parts& p = *m_parts;
  reply.blocks.clear();
  bool calls = false;
  for (const auto& [index, block] : p.blocks) {
    ModelBlock b = finished(block.json, block.arguments);
    calls |= b.kind == ModelBlock::Kind::tool_call;
    if (b.kind != ModelBlock::Kind::text || !b.text.empty()) reply.blocks.push_back(std::move(b));
  }
  reply.end = calls ? ModelReply::End::tool_calls : ModelReply::End::turn;
  if (p.stop == "max_tokens") reply.end = ModelReply::End::length;
  if (p.stop == "refusal") {
    reply.end = ModelReply::End::refusal;
    if (reply.blocks.empty() && !explanation.empty()) reply.blocks.push_back({.kind = ModelBlock::Kind::text, .text = explanation});
  }
  if (p.stop == "model_context_window_exceeded") {
    Setback s = broken_answer(p.endpoint, "the conversation has filled the model's context window");
    s.again = false, s.error.code = Code::out_of_range, s.error.fix = "shorten the conversation";
    problem = std::move(s);
  }
}

}  // namespace forge
