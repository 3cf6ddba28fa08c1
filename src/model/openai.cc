// SPDX-License-Identifier: Apache-2.0
// Chat completions as a Model: the request, and the conversation with a server whose dialect is learnt.
#include "model/openai.h"

#include <algorithm>

#include "core/loose_json.h"

namespace forge {
namespace {

// Servers parse what they get back, and refuse a conversation over it: malformed arguments go back as none, and the result tells the
// model what was wrong.
std::string arguments_of(const ModelBlock& call) {
  const auto read = parse_json(call.text, "");
  return read && read->is_object() ? call.text : "{}";
}

// A message of ours is one message there for what the model said, or one for every result and one for the text.
void add_chat_message(Json& messages, const ModelMessage& message) {
  std::string text;
  Json calls = Json::array();
  for (const ModelBlock& block : message.blocks) {
    if (block.kind == ModelBlock::Kind::text) text += (text.empty() ? "" : "\n\n") + block.text;
    if (block.kind == ModelBlock::Kind::tool_call)
      calls.push_back({{"id", block.id}, {"type", "function"}, {"function", {{"name", block.tool}, {"arguments", arguments_of(block)}}}});
    if (block.kind == ModelBlock::Kind::tool_result)
      messages.push_back({{"role", "tool"}, {"tool_call_id", block.id}, {"content", block.error ? "error: " + block.text : block.text}});
  }  // opaque blocks are another protocol's
  if (text.empty() && calls.empty()) return;
  Json j{{"role", message.from_model ? "assistant" : "user"}, {"content", text}};
  if (!calls.empty()) j["tool_calls"] = std::move(calls);
  messages.push_back(std::move(j));
}

class OpenAiModel : public Model {
 public:
  explicit OpenAiModel(Wire wire) : m_wire(std::move(wire)) { m_dialect.completion_tokens = m_wire.endpoint.vendors; }
  std::string identity() const override { return m_wire.endpoint.identity(); }

  Result<ModelReply> ask(const ModelRequest& request, double seconds) override {
    const double end = m_wire.waiter->now() + seconds;
    for (int tries = 0;; ++tries) {
      FORGE_TRY_ASSIGN(const std::string body, openai_body(m_wire.endpoint, m_wire.settings, request, m_dialect));
      const auto attempt = [&](double left) { return once(body, left); };
      auto reply = ask_with_retries(attempt, end - m_wire.waiter->now(), m_wire.settings.attempts, *m_wire.waiter);
      if (!reply && tries < 2 && reply.error().code == Code::bad_input && learn(reply.error().message)) continue;
      if (!reply) return fail(std::move(reply.error()));
      repair_ids(request, *reply);
      return reply;
    }
  }

 private:
  // True when the refusal names a field that can be had otherwise.
  bool learn(const std::string& refusal) {
    if (m_dialect.stream_options && refusal.find("stream_options") != std::string::npos) {
      m_dialect.stream_options = false;
      return true;
    }
    if (refusal.find("max_tokens") == std::string::npos && refusal.find("max_completion_tokens") == std::string::npos) return false;
    const bool learnt = !m_other_limit;
    if (learnt) m_dialect.completion_tokens = !m_dialect.completion_tokens;
    m_other_limit = true;
    return learnt;
  }

  tl::expected<ModelReply, Setback> once(const std::string& body, double seconds) {
    HttpRequest http{.url = m_wire.endpoint.base_url + "/chat/completions",
                     .headers = {{"content-type", "application/json"}},
                     .body = body,
                     .total_seconds = seconds};
    if (!m_wire.endpoint.key.empty()) http.headers.emplace_back("authorization", "Bearer " + m_wire.endpoint.key);
    OpenAiAnswer answer(m_wire.endpoint);
    if (auto done = exchange(m_wire, http, answer); !done) return tl::unexpected(std::move(done.error()));
    answer.finish();
    clean(m_wire.endpoint, answer.reply);
    settle(m_wire.settings, body.size(), answer.counted, answer.reply);
    return std::move(answer.reply);
  }

  Wire m_wire;
  OpenAiDialect m_dialect;
  bool m_other_limit = false;  // both names of the limit were tried
};

}  // namespace

Result<std::string> openai_body(const Endpoint& endpoint, const ModelSettings& settings, const ModelRequest& request,
                                const OpenAiDialect& dialect) {
  Json messages = Json::array();
  if (!request.system.empty()) messages.push_back({{"role", "system"}, {"content", request.system}});
  for (const ModelMessage& message : request.messages) add_chat_message(messages, message);
  Json j{{"model", endpoint.model}, {"messages", std::move(messages)}};
  Json tools = Json::array();
  for (const ModelTool& tool : request.tools) {
    FORGE_TRY_ASSIGN(Json schema, parse_json(tool.schema, "the schema of " + tool.name));
    tools.push_back(
        {{"type", "function"}, {"function", {{"name", tool.name}, {"description", tool.description}, {"parameters", std::move(schema)}}}});
  }
  if (!tools.empty()) j["tools"] = std::move(tools);
  j[dialect.completion_tokens ? "max_completion_tokens" : "max_tokens"] = std::min(request.max_output, settings.max_output);
  j["stream"] = true;
  if (dialect.stream_options) j["stream_options"] = {{"include_usage", true}};
  return dump(j);
}

std::unique_ptr<Model> make_openai(Wire wire) { return std::make_unique<OpenAiModel>(std::move(wire)); }

}  // namespace forge
