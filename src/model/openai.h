// SPDX-License-Identifier: Apache-2.0
// Private to src/model: chat completions as many servers speak them (OpenAI, vLLM, SGLang, llama.cpp, Ollama).
#pragma once
#include "model/wire.h"

namespace forge {

// What servers differ in; learnt from their refusals.
struct OpenAiDialect {
  bool completion_tokens = false;  // "max_completion_tokens", not "max_tokens"
  bool stream_options = true;
};
Result<std::string> openai_body(const Endpoint&, const ModelSettings&, const ModelRequest&, const OpenAiDialect&);

class OpenAiAnswer : public AnswerReader {
 public:
  explicit OpenAiAnswer(const Endpoint&);
  ~OpenAiAnswer() override;
  void event(const std::string& data) override;
  void document(const std::string& text) override;
  bool whole() const override;
  void finish();  // puts the reply together

 private:
  struct Parts;
  std::unique_ptr<Parts> m_parts;
};

}  // namespace forge
