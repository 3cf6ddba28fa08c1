// SPDX-License-Identifier: Apache-2.0
// Private to src/model: the Messages API in three files, its request, its answer, and the conversation between them.
#pragma once
#include "model/wire.h"

namespace forge {

// `unfinished`: what the model said of its turn before it paused.
Result<std::string> anthropic_body(const Endpoint&, const ModelSettings&, const ModelRequest&, const std::vector<ModelBlock>& unfinished);

class AnthropicAnswer : public AnswerReader {
 public:
  explicit AnthropicAnswer(const Endpoint&);
  ~AnthropicAnswer() override;
  void event(const std::string& data) override;
  void document(const std::string& text) override;
  bool whole() const override;
  bool paused() const;  // to be sent back, so that the model goes on

 private:
  void finish(const std::string& explanation);
  struct Parts;
  std::unique_ptr<Parts> m_parts;
};

}  // namespace forge
