// SPDX-License-Identifier: Apache-2.0
// KernelBench: one Python file with class Model, get_inputs and get_init_inputs. Its shapes are declared nowhere; they are taken
// where get_inputs is plain enough to be read.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "exchange/axis_maker.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr const char* kKernelBench = "KernelBench";

Error cannot_take(const fs::path& file, int line, std::string message, std::string fix) {
  return Error{
      .code = Code::unsupported, .message = std::move(message), .file = file.string(), .line = line, .field = {}, .fix = std::move(fix)};
}

const char* const kByHand = "write a definition.json by hand (docs/formats/definition.md), and import that";

// Modules whose weights would be inputs of a kernel, though forward does not take them.
std::optional<PythonLine> weights_of(const PythonFunction& init) {
  static const std::vector<std::string> kWith = {"Linear",     "Conv1d",     "Conv2d",      "Conv3d",    "ConvTranspose", "BatchNorm",
                                                 "LayerNorm",  "GroupNorm",  "RMSNorm",     "Embedding", "LSTM",          "GRU",
                                                 "RNN",        "Multihead",  "Transformer", "Bilinear",  "Parameter",     "PReLU",
                                                 "Sequential", "ModuleList", "Module("};
  for (const PythonLine& line : init.body)
    for (const std::string& word : kWith)
      if (line.text.find("nn." + word) != std::string::npos) return line;
  return {};
}

const TensorSpec* input_called(const Definition& d, const std::string& name) {
  for (const TensorSpec& t : d.inputs)
    if (t.name == name) return &t;
  return nullptr;
}

std::optional<std::vector<std::string>> product_shape(const TensorSpec& a, const TensorSpec& b) {
  if (a.shape.size() < 2 || b.shape.size() < 2 || a.shape.back() != b.shape[b.shape.size() - 2]) return {};
  std::vector<std::string> shape(a.shape.begin(), a.shape.end() - 1);
  if (b.shape.size() > 2 && (a.shape.size() != b.shape.size() || !std::equal(b.shape.begin(), b.shape.end() - 2, a.shape.begin())))
    return {};
  shape.push_back(b.shape.back());
  return shape;
}

// The output's shape, for a forward that is one plain call. `forward` uses its own parameter names, inputs are in that order.
std::optional<TensorSpec> output_of(const PythonFunction& forward, const Definition& d) {
  if (forward.body.size() != 1 || !forward.body[0].text.starts_with("return ")) return {};
  const std::string text = trim(forward.body[0].text.substr(7));
  static const std::set<std::string> kSame = {"relu",     "sigmoid",    "tanh",    "exp",         "abs",      "gelu",
                                              "silu",     "selu",       "elu",     "softplus",    "softsign", "hardsigmoid",
                                              "hardtanh", "leaky_relu", "softmax", "log_softmax", "cumsum",   "cumprod"};
  TensorSpec out{.name = "out", .dtype = DType::f32, .scalar = false, .shape = {}};
  const std::size_t open = text.find('(');
  if (const auto sides = split_top(text, '@'); sides.size() == 2) {
    const TensorSpec *a = input_called(d, sides[0]), *b = input_called(d, sides[1]);
    const auto shape = a && b ? product_shape(*a, *b) : std::nullopt;
    if (!shape) return {};
    out.dtype = a->dtype, out.shape = *shape;
    return out;
  }
  if (open == std::string::npos || python_closing(text, open) != text.size() - 1) return {};  // f(x).sum() is another shape
  std::string function = text.substr(0, open);
  for (const char* prefix : {"torch.nn.functional.", "torch.", "F."})
    if (function.starts_with(prefix)) {
      function = function.substr(std::string(prefix).size());
      break;
    }
  const std::vector<std::string> arguments = split_top(text.substr(open + 1, text.size() - open - 2), ',');
  const TensorSpec* a = arguments.empty() ? nullptr : input_called(d, arguments[0]);
  if (!a) return {};
  out.dtype = a->dtype;
  static const std::set<DType> kFloats = {DType::f32, DType::f16, DType::bf16};  // of integers, exp is a float
  if (kSame.count(function) && kFloats.count(a->dtype) && std::all_of(arguments.begin() + 1, arguments.end(), [&](const std::string& s) {
        return !input_called(d, s) && !s.starts_with("dtype");
      })) {
    out.shape = a->shape;
    return out;
  }
  const TensorSpec* b = arguments.size() == 2 ? input_called(d, arguments[1]) : nullptr;
  const auto shape = b && (function == "matmul" || function == "mm" || function == "bmm") ? product_shape(*a, *b) : std::nullopt;
  if (!shape) return {};
  out.shape = *shape;
  return out;
}

// What get_inputs returns, as tensors in order; the error names the line that cannot be read.
Result<std::vector<PythonTensor>> tensors_of(const PythonFunction& f, PythonConstants constants, const fs::path& file) {
  for (const std::string& parameter : f.parameters) constants.erase(parameter);
  std::map<std::string, PythonTensor> made;
  const auto unreadable = [&](const PythonLine& line) {
    return fail(
        cannot_take(file, line.number, fmt::format("what '{}' makes is not known without running it", utf8_head(line.text, 80)), kByHand));
  };
  const auto read = [&](const std::string& text) -> std::optional<PythonTensor> {
    if (const auto known = made.find(text); known != made.end()) return known->second;
    const std::vector<std::string> factors = split_top(text, '*');  // predictions * scale
    if (factors.size() == 2 && made.count(factors[0]) && made.count(factors[1]) && made[factors[1]].dims.empty()) return made[factors[0]];
    return python_tensor(text, constants, {});
  };
  for (const PythonLine& line : f.body) {
    if (line.text.starts_with("return")) {
      std::string list = trim(line.text.substr(6));
      if (list.size() < 2 || list[0] != '[' || list.back() != ']') return unreadable(line);
      std::vector<PythonTensor> out;
      for (const std::string& item : split_top(list.substr(1, list.size() - 2), ',')) {
        if (item.empty()) continue;
        const auto tensor = read(item);
        if (!tensor) return unreadable(line);
        out.push_back(*tensor);
      }
      return out;
    }
    const auto assigned = python_assignment(line);
    const auto tensor = assigned ? read(assigned->second) : std::nullopt;
    if (!tensor) return unreadable(line);
    forget_bound(python_bindings(line), constants);
    made[assigned->first] = *tensor;
  }
  return fail(cannot_take(file, f.number, "get_inputs returns nothing that can be read", kByHand));
}

Result<ImportedOperator> read_problem(const fs::path& file) {
  FORGE_TRY_ASSIGN(const std::string text, read_file(file));
  const std::vector<PythonLine> lines = python_lines(text);
  const PythonConstants constants = python_constants(lines);
  const auto forward = python_function(lines, "forward", "Model"), init = python_function(lines, "__init__", "Model");
  const auto get_inputs = python_function(lines, "get_inputs");
  if (!forward || !get_inputs)
    return fail(cannot_take(file, 0, "has no class Model with forward, or no get_inputs", "a KernelBench problem has both"));
  if (init)
    if (const auto line = weights_of(*init))
      return fail(cannot_take(file, line->number,
                              fmt::format("the model makes weights of its own ('{}'); a kernel would need them as inputs, and only running "
                                          "the model tells their shapes",
                                          utf8_head(line->text, 60)),
                              kByHand));
  std::vector<std::string> names = forward->parameters;
  if (!names.empty() && names[0] == "self") names.erase(names.begin());
  FORGE_TRY_ASSIGN(const std::vector<PythonTensor> tensors, tensors_of(*get_inputs, constants, file));
  if (tensors.size() != names.size())
    return fail(cannot_take(file, forward->number,
                            fmt::format("forward takes {} arguments and get_inputs gives {}", names.size(), tensors.size()), kByHand));
  OperatorDraft d;
  d.source = file.string(), d.format = kKernelBench;
  d.definition.name = operator_name_of("kernelbench_" + file.stem().string());
  d.definition.op_type = "kernelbench";
  d.definition.description = "KernelBench problem " + file.stem().string();
  AxisMaker axes(d);
  for (std::size_t i = 0; i < names.size(); i++) axes.add_input(names[i], tensors[i], names);
  if (const auto out = output_of(*forward, d.definition))
    d.definition.outputs.push_back(*out);
  else
    d.missing.push_back(
        "the outputs: what forward returns is not known without running it; add name, shape and dtype to definition.json, then a judge for "
        "each");
  d.workloads.push_back({.name = "the problem's shape", .axes = axes.timed, .generator = "normal"});
  d.definition.reference = with_run(text, join(names, ", "), fmt::format("Model(*get_init_inputs()).forward({})", join(names, ", ")));
  d.definition_json = definition_to_json(d.definition);
  d.files.push_back({"reference.py", text});
  d.notes.push_back(
      "KernelBench has one shape; the first axis of the first input, and batches, vary here, so that hidden shapes are possible");
  if (init && init->parameters.size() > 1)
    d.missing.push_back(fmt::format("what the constructor is given ({}): get_init_inputs decides it, and the kernel must do the same",
                                    join({init->parameters.begin() + 1, init->parameters.end()}, ", ")));
  return finish_draft(std::move(d));
}

}  // namespace

ImportItem import_kernelbench(const fs::path& file) {
  auto op = read_problem(file);
  if (!op) return refused_item(file.string(), kKernelBench, op.error());
  return {.source = file.string(), .format = kKernelBench, .taken = std::move(*op), .refused = {}};
}

}  // namespace forge
