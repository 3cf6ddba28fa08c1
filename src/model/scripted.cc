// SPDX-License-Identifier: Apache-2.0
#include "model/scripted.h"

namespace forge {

Result<ModelReply> ScriptedModel::ask(const ModelRequest& request, double granted) {
  asked.push_back(request);
  seconds.push_back(granted);
  if (m_next == m_replies.size()) return fail(Code::internal, "the scripted model was asked more often than its script tells");
  return m_replies[m_next++];
}

ModelReply says(const std::string& text) {
  return {.blocks = {{.kind = ModelBlock::Kind::text, .text = text}}, .use = {.input = 100, .output = 10}, .model = "scripted"};
}

ModelReply calls(const std::vector<ScriptedCall>& all, const std::string& text) {
  ModelReply reply = says(text);
  if (text.empty()) reply.blocks.clear();
  reply.end = ModelReply::End::tool_calls;
  int n = 0;
  for (const ScriptedCall& call : all) {
    const std::string made = "call_" + std::to_string(++n);
    reply.blocks.push_back(
        {.kind = ModelBlock::Kind::tool_call, .text = call.arguments, .id = call.id.empty() ? made : call.id, .tool = call.tool});
  }
  return reply;
}

}  // namespace forge
