// SPDX-License-Identifier: Apache-2.0
// Shapes that were read from Python, as a definition's named axes. Private to this layer.
#pragma once
#include "exchange/draft.h"
#include "exchange/python_text.h"

namespace forge {

class AxisMaker {
 public:
  explicit AxisMaker(OperatorDraft& draft) : m_draft(draft) {}
  // Adds the input; a dimension without a name, or whose name is a tensor's, gets one of its own. The first dimension of the first
  // input varies, as do dimensions that are called a batch, and what has no value here.
  void add_input(const std::string& name, const PythonTensor&, const std::vector<std::string>& tensors);
  std::map<std::string, std::int64_t> timed;  // values of the axes that vary, where known

 private:
  std::string axis_for(const PythonDim&, bool varies, const std::vector<std::string>& tensors);
  OperatorDraft& m_draft;
};

// A name of the three sources as an operator's: letters, digits and _, no digit first.
std::string operator_name_of(const std::string& text);
// Python with the `run` that FlashInfer-Trace's form asks for. It is kept and never run.
std::string with_run(const std::string& python, const std::string& parameters, const std::string& call);

}  // namespace forge
