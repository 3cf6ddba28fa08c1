// SPDX-License-Identifier: Apache-2.0
// The Messages API's request. The order tools, system, messages is that of its prompt cache, whose prefix is marked in three places:
// after the system prompt, after the last message (where the next request reads on), and after the user's message before it (where
// this request reads on, however many results stand between).
#include <algorithm>

#include "core/loose_json.h"
#include "model/anthropic.h"

namespace forge {
namespace {

const Json kMark = {{"type", "ephemeral"}};

Result<Json> object_from(const std::string& text, const std::string& what) {
  FORGE_TRY_ASSIGN(Json j, parse_json(text, what));
  if (!j.is_object()) return fail(Code::internal, what + " is no JSON object");
  return j;
}

Result<Json> block_json(const ModelBlock& block) {
  switch (block.kind) {
    case ModelBlock::Kind::text:
      return Json{{"type", "text"}, {"text", block.text}};
    case ModelBlock::Kind::tool_call: {
      // What the model wrote may be no JSON: the protocol wants an object, and the result tells the model what was wrong.
      auto input = object_from(block.text, "arguments");
      return Json{{"type", "tool_use"}, {"id", block.id}, {"name", block.tool}, {"input", input ? *input : Json::object()}};
    }
    case ModelBlock::Kind::tool_result: {
      Json j{{"type", "tool_result"}, {"tool_use_id", block.id}, {"content", block.text}};
      if (block.error) j["is_error"] = true;
      return j;
    }
    case ModelBlock::Kind::opaque:
      return object_from(block.text, "a block that the protocol wants back");
  }
  return fail(Code::internal, "a block of no kind");
}

// Appends to `messages`, to the last one where the same side goes on speaking.
Status add_message(Json& messages, const ModelMessage& message) {
  const char* role = message.from_model ? "assistant" : "user";
  std::vector<const ModelBlock*> blocks;
  for (const ModelBlock& block : message.blocks)
    if (block.kind != ModelBlock::Kind::text || block.text.find_first_not_of(" \t\r\n") != std::string::npos)
      blocks.push_back(&block);  // blank text is refused by the server
  // Results come before text, or the server misses them.
  if (!message.from_model)
    std::stable_partition(blocks.begin(), blocks.end(), [](const ModelBlock* b) { return b->kind == ModelBlock::Kind::tool_result; });
  if (blocks.empty()) return {};
  if (messages.empty() || messages.back()["role"] != role) messages.push_back({{"role", role}, {"content", Json::array()}});
  for (const ModelBlock* block : blocks) {
    FORGE_TRY_ASSIGN(Json j, block_json(*block));
    messages.back()["content"].push_back(std::move(j));
  }
  return {};
}

void mark_cache(Json& messages) {
  int marks = 2;
  for (auto message = messages.rbegin(); message != messages.rend() && marks > 0; ++message) {
    const bool last = message == messages.rbegin();
    Json& block = (*message)["content"].back();
    const std::string type = text_of(block, "type");
    if ((*message)["role"] != "user" && !last) continue;
    if (type == "text" || type == "tool_result" || type == "tool_use") block["cache_control"] = kMark, marks--;
  }
}

}  // namespace

Result<std::string> anthropic_body(const Endpoint& endpoint, const ModelSettings& settings, const ModelRequest& request,
                                   const std::vector<ModelBlock>& unfinished) {
  Json j{{"model", endpoint.model}, {"max_tokens", std::min(request.max_output, settings.max_output)}};
  Json tools = Json::array();
  for (const ModelTool& tool : request.tools) {
    FORGE_TRY_ASSIGN(Json schema, object_from(tool.schema, "the schema of " + tool.name));
    tools.push_back({{"name", tool.name}, {"description", tool.description}, {"input_schema", std::move(schema)}});
  }
  if (!tools.empty()) {
    if (request.system.empty()) tools.back()["cache_control"] = kMark;
    j["tools"] = std::move(tools);
  }
  if (!request.system.empty()) j["system"] = Json::array({Json{{"type", "text"}, {"text", request.system}, {"cache_control", kMark}}});
  Json messages = Json::array();
  for (const ModelMessage& message : request.messages) FORGE_TRY(add_message(messages, message));
  FORGE_TRY(add_message(messages, ModelMessage{.from_model = true, .blocks = unfinished}));
  mark_cache(messages);
  j["messages"] = std::move(messages);
  j["stream"] = true;
  return dump(j);
}

}  // namespace forge
