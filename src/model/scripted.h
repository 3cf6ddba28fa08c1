// SPDX-License-Identifier: Apache-2.0
// The fake of a model: plays back what a test wrote down, and keeps what it was asked.
#pragma once
#include <vector>

#include "model/model.h"

namespace forge {

class ScriptedModel : public Model {
 public:
  explicit ScriptedModel(std::vector<Result<ModelReply>> replies, std::string name = "scripted model")
      : m_replies(std::move(replies)), m_name(std::move(name)) {}
  std::string identity() const override { return m_name; }
  Result<ModelReply> ask(const ModelRequest&, double seconds) override;  // beyond the script: Code::internal

  std::vector<ModelRequest> asked;
  std::vector<double> seconds;  // granted with each
  std::size_t left() const { return m_replies.size() - m_next; }

 private:
  std::vector<Result<ModelReply>> m_replies;
  std::size_t m_next = 0;
  std::string m_name;
};

// Replies for scripts. Each costs 100 tokens of input and 10 of output.
ModelReply says(const std::string& text);
struct ScriptedCall {
  std::string tool, arguments, id;  // id "": "call_1", "call_2", ... by its place in the reply
};
ModelReply calls(const std::vector<ScriptedCall>&, const std::string& text = {});

}  // namespace forge
