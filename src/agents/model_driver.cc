// SPDX-License-Identifier: Apache-2.0
#include "agents/model_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "agents/model_json.h"
#include "agents/tools.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr const char* k_nudge =
    "That message called no tool, so nothing was done. Call submit with a kernel, or give_up with the reason. Your turn ends after "
    "another message without a call.";

class ModelDriver final : public Driver {
 public:
  ModelDriver(std::unique_ptr<Model> model, std::string instructions, double seconds)
      : m_model(std::move(model)), m_instructions(std::move(instructions)), m_seconds(seconds) {}
  std::string identity() const override { return m_model->identity(); }
  bool uses_tokens() const override { return true; }
  Result<Turn> next(const Assignment&, const std::vector<Exchange>&) override;

 private:
  Result<ModelRequest> conversation(const Assignment&, const std::vector<Exchange>&) const;

  std::unique_ptr<Model> m_model;
  std::string m_instructions;
  double m_seconds;
};

ModelMessage from_user(std::vector<ModelBlock> blocks) { return {.from_model = false, .blocks = std::move(blocks)}; }
ModelBlock text(std::string words) { return {.kind = ModelBlock::Kind::text, .text = std::move(words), .id = {}, .tool = {}}; }

Result<ModelRequest> ModelDriver::conversation(const Assignment& assignment, const std::vector<Exchange>& so_far) const {
  ModelRequest request;
  request.system = m_instructions;
  for (const ToolSpec& spec : workbench_tools()) request.tools.push_back(spec.tool);
  // A conversation is one milestone long, so the kernel that an earlier one made has to be in it.
  std::string brief = assignment.brief;
  for (const auto& [file, content] : assignment.starter)
    if (file.starts_with("kernel.") && brief.find(content) == std::string::npos)
      brief += fmt::format("\n## {} as it stands\n\n```cpp\n{}\n```\n", file, content);
  request.messages.push_back(from_user({text(std::move(brief))}));
  for (const Exchange& exchange : so_far) {
    FORGE_TRY_ASSIGN(ModelReply said, read_model_reply(exchange.turn.said));
    request.messages.push_back({.from_model = true, .blocks = said.blocks});
    std::vector<ModelBlock> answers;
    for (std::size_t i = 0; i < exchange.turn.calls.size() && i < exchange.results.size(); ++i)
      answers.push_back({.kind = ModelBlock::Kind::tool_result,
                         .text = exchange.results[i].text,
                         .id = exchange.turn.calls[i].id,
                         .tool = exchange.turn.calls[i].tool,
                         .error = exchange.results[i].error});
    if (answers.empty())
      answers.push_back(text(said.end == ModelReply::End::length
                                 ? "Your answer was cut off at the limit of its length. Write less in one message; call one tool."
                                 : k_nudge));
    request.messages.push_back(from_user(std::move(answers)));
  }
  if (assignment.tokens_left > 0) request.max_output = std::min(request.max_output, assignment.tokens_left);
  return request;
}

Result<Turn> ModelDriver::next(const Assignment& assignment, const std::vector<Exchange>& so_far) {
  FORGE_TRY_ASSIGN(const ModelRequest request, conversation(assignment, so_far));
  FORGE_TRY_ASSIGN(const ModelReply reply, m_model->ask(request, m_seconds));
  Turn turn;
  turn.said = model_reply_to_json(reply);
  turn.use = reply.use;
  std::string words;
  for (const ModelBlock& block : reply.blocks) {
    if (block.kind == ModelBlock::Kind::tool_call) turn.calls.push_back({.id = block.id, .tool = block.tool, .arguments = block.text});
    if (block.kind == ModelBlock::Kind::text) words += block.text;
  }
  if (!turn.calls.empty()) return turn;
  const bool second = !so_far.empty() && so_far.back().turn.calls.empty();
  if (reply.end == ModelReply::End::refusal || second) {
    turn.ended = true;
    turn.why = fmt::format("{}: {}", reply.end == ModelReply::End::refusal ? "the model refused" : "the model stopped calling tools",
                           utf8_head(words, 200));
  }
  return turn;
}

}  // namespace

std::unique_ptr<Driver> make_model_driver(std::unique_ptr<Model> model, std::string instructions, double seconds) {
  return std::make_unique<ModelDriver>(std::move(model), std::move(instructions), seconds);
}

}  // namespace forge
