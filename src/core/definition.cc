// SPDX-License-Identifier: Apache-2.0
// FlashInfer-Trace's Definition. What its loader refuses is refused here, but for what only a Python parser can tell:
// the syntax of `reference` and of `constraints`.
#include <fmt/format.h>

#include <set>

#include "core/json_reader.h"
#include "core/operator.h"
#include "util/text.h"

namespace forge {
namespace {

Axis get_axis(JsonReader r, const std::string& name) {
  Axis axis{.name = name, .constant = false, .value = 0};
  std::string type, description;
  r.ignore_unknown_keys();
  r.need("type", type);
  if (type == "const") {
    axis.constant = true;
    r.need("value", axis.value);
    r.check(axis.value >= 0, "value", "must not be negative");
  } else if (r.has("type")) {
    r.check(type == "var", "type", fmt::format("'{}' is not one of const, var", type));
  }
  r.maybe("description", description);
  return axis;
}

TensorSpec get_tensor(JsonReader r, const std::string& name, const std::set<std::string>& axes) {
  TensorSpec tensor{.name = name, .dtype = DType::f32, .scalar = false, .shape = {}};
  std::string type, description;
  r.ignore_unknown_keys();
  if (r.present() && !r.value().contains("shape")) r.add_error("shape", "missing", "null means a scalar, [] a tensor without axes");
  tensor.scalar = !r.has("shape");
  r.maybe("shape", tensor.shape);
  for (std::size_t i = 0; i < tensor.shape.size(); i++)
    r.check(axes.count(tensor.shape[i]) != 0, fmt::format("shape[{}]", i), fmt::format("no axis is called '{}'", tensor.shape[i]));
  r.need("dtype", type);
  const auto dtype = parse_dtype(type);
  // uint8 exists in workspaces' tensor maps only.
  if (r.has("dtype")) r.check(dtype && *dtype != DType::u8, "dtype", fmt::format("'{}' is no dtype of FlashInfer-Trace", type));
  tensor.dtype = dtype.value_or(DType::f32);
  r.maybe("description", description);
  return tensor;
}

std::vector<std::string> get_lines(JsonReader& r, const std::string& key) {
  std::vector<std::string> lines;
  if (r.present() && r.value().contains(key)) r.need(key, lines);
  for (std::size_t i = 0; i < lines.size(); i++) r.check(!lines[i].empty(), fmt::format("{}[{}]", key, i), "must not be empty");
  return lines;
}

// A function `run` at the top level: a line that begins with "def run" and an opening parenthesis.
bool has_run(const std::string& python) {
  for (const std::string& line : split(python, '\n')) {
    if (line.rfind("def", 0) != 0 || line.size() < 4 || (line[3] != ' ' && line[3] != '\t')) continue;
    const std::string rest = trim(line.substr(3));
    if (rest.rfind("run", 0) == 0 && trim(rest.substr(3)).rfind('(', 0) == 0) return true;
  }
  return false;
}

Definition get_definition(JsonReader r) {
  Definition d;
  r.ignore_unknown_keys();
  r.need("name", d.name);
  if (r.has("name")) r.check(!d.name.empty(), "name", "must not be empty");
  r.need("op_type", d.op_type);
  if (r.has("op_type")) r.check(!d.op_type.empty(), "op_type", "must not be empty");
  r.maybe("description", d.description);
  d.tags = get_lines(r, "tags");
  d.constraints = get_lines(r, "constraints");

  std::set<std::string> axes, tensors;
  JsonReader axes_reader = r.need_object("axes");
  if (axes_reader.present()) {
    axes_reader.ignore_unknown_keys();
    for (const auto& [key, value] : axes_reader.value().items()) {
      axes_reader.check(!key.empty(), "", "an axis has an empty name");
      d.axes.push_back(get_axis(axes_reader.need_object(key), key));
      axes.insert(key);
    }
  }
  for (auto [key, list] : {std::pair{"inputs", &d.inputs}, std::pair{"outputs", &d.outputs}}) {
    JsonReader group = r.need_object(key);
    if (!group.present()) continue;
    group.ignore_unknown_keys();
    for (const auto& [tensor, value] : group.value().items()) {
      group.check(!tensor.empty(), "", "a tensor has an empty name");
      group.check(tensors.insert(tensor).second, tensor, "is an input and an output");
      list->push_back(get_tensor(group.need_object(tensor), tensor, axes));
    }
  }

  r.need("reference", d.reference);
  if (r.has("reference"))
    r.check(has_run(d.reference), "reference", "has no function 'run' at the top level", "begin a line with def run(");
  return d;
}

}  // namespace

Result<Definition> parse_definition(const std::string& json, const std::string& file) { return parse_with(get_definition, json, file); }

}  // namespace forge
