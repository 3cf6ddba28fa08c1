// SPDX-License-Identifier: Apache-2.0
#include "exchange/axis_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "util/text.h"

namespace forge {

std::string AxisMaker::axis_for(const PythonDim& dim, bool varies, const std::vector<std::string>& tensors) {
  std::string name = dim.name.empty() ? fmt::format("d{}", dim.value) : dim.name;
  if (std::find(tensors.begin(), tensors.end(), name) != tensors.end()) name += "_size";
  if (dim.name.find("batch") != std::string::npos || dim.value < 0) varies = true;
  if (dim.name.empty() && varies) name = "rows";
  if (const Axis* known = find_axis(m_draft.definition, name)) {
    if (known->constant ? known->value == dim.value : timed[name] == dim.value || dim.value < 0) return name;
    for (int i = 2;; i++) {  // another size under the same name: constants were rebound, or two inputs' rows differ
      const std::string next = fmt::format("{}_{}", name, i);
      const Axis* other = find_axis(m_draft.definition, next);
      if (other && (other->constant ? other->value : timed[next]) == dim.value) return next;
      if (!other) {
        name = next;
        break;
      }
    }
  }
  m_draft.definition.axes.push_back({.name = name, .constant = !varies, .value = varies ? 0 : dim.value});
  if (varies && dim.value >= 0) timed[name] = dim.value;
  return name;
}

void AxisMaker::add_input(const std::string& name, const PythonTensor& tensor, const std::vector<std::string>& tensors) {
  TensorSpec spec{.name = name, .dtype = tensor.dtype, .scalar = false, .shape = {}};
  for (std::size_t i = 0; i < tensor.dims.size(); i++)
    spec.shape.push_back(axis_for(tensor.dims[i], i == 0 && m_draft.definition.inputs.empty(), tensors));
  m_draft.definition.inputs.push_back(std::move(spec));
}

std::string operator_name_of(const std::string& text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "task_" + out;
  return utf8_head(out, 100);
}

std::string with_run(const std::string& python, const std::string& parameters, const std::string& call) {
  return fmt::format("{}{}\n\n\ndef run({}):\n    return {}\n", python, python.ends_with("\n") ? "" : "\n", parameters, call);
}

}  // namespace forge
