// SPDX-License-Identifier: Apache-2.0
// GPU MODE: a folder with task.yml and reference.py (or reference.cuh). The cases are taken as shapes; tensors where
// generate_input is plain enough to be read.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "exchange/axis_maker.h"
#include "exchange/task_yaml.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr const char* kGpuMode = "GPU MODE";

std::optional<std::int64_t> case_value(const std::string& text) {
  std::int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(v) : std::nullopt;
}

Error refusal(const fs::path& file, int line, std::string message, std::string fix) {
  return Error{
      .code = Code::unsupported, .message = std::move(message), .file = file.string(), .line = line, .field = {}, .fix = std::move(fix)};
}

// Another shape in place: x.t_(), x.data = y.
bool reshapes(const std::string& text) {
  static const std::vector<std::string> kWays = {"resize_", ".t_(", "transpose_", "squeeze_", ".set_", "as_strided_", "swap", ".data"};
  return std::any_of(kWays.begin(), kWays.end(), [&](const std::string& way) { return text.find(way) != std::string::npos; });
}

// Tensors that generate_input returns, where each is made by one plain call; true: all of them were read.
bool read_tensors(const PythonFunction& f, PythonConstants constants, OperatorDraft& d) {
  std::map<std::string, std::string> made;  // the expression that a name was given; empty: not plain
  std::set<std::string> bound;
  std::vector<std::string> parameters = f.parameters;  // those that still are what the caller gave
  for (const std::string& parameter : parameters) constants.erase(parameter);
  std::string returned;
  for (const PythonLine& line : f.body) {
    const PythonBindings bindings = python_bindings(line);
    const auto a = line.indent == f.body.front().indent ? python_assignment(line) : std::nullopt;
    const bool first = a && !bound.count(a->first);
    for (const std::string& name : bindings.names) bound.insert(name), made[name].clear();
    if (first) made[a->first] = a->second;
    if (reshapes(line.text))
      for (const std::string& name : bindings.touched) made[name].clear();
    forget_bound(bindings, constants);
    std::erase_if(parameters, [&](const std::string& p) { return bindings.everything || bound.count(p) > 0; });
    if (line.text.starts_with("return ")) returned = returned.empty() ? trim(line.text.substr(7)) : "?";
  }
  if (returned.size() > 2 && returned[0] == '(' && returned.back() == ')') returned = returned.substr(1, returned.size() - 2);
  const std::vector<std::string> names = split_top(returned, ',');
  std::vector<std::pair<std::string, PythonTensor>> tensors;
  for (const std::string& name : names) {
    const auto it = made.find(name);
    const auto tensor = it == made.end() ? std::nullopt : python_tensor(it->second, constants, parameters);
    if (!tensor) return false;
    tensors.emplace_back(name, *tensor);
  }
  AxisMaker axes(d);
  for (const auto& [name, tensor] : tensors) axes.add_input(name, tensor, names);
  return !tensors.empty();
}

struct Cases {
  std::set<std::string> axes;
  std::vector<Workload> workloads;
};

// Every case's whole numbers, but the seed. Words and lists are no axes: named once.
Cases read_cases(const std::map<std::string, YamlSection>& task, OperatorDraft& d) {
  Cases out;
  std::set<std::string> words;
  for (const char* list : {"tests", "benchmarks"}) {
    const auto section = task.find(list);
    if (section == task.end()) continue;
    for (const YamlMap& item : section->second.items) {
      Workload w{.name = std::string(list) == "tests" ? "test" : "benchmark", .axes = {}, .generator = "normal"};
      for (const auto& [key, value] : item) {
        if (key == "seed" || key.empty()) continue;
        if (const auto number = case_value(value))
          w.axes[key] = *number, out.axes.insert(key);
        else
          words.insert(key);
      }
      out.workloads.push_back(std::move(w));
    }
  }
  for (const std::string& word : words) {
    out.axes.erase(word);
    for (Workload& w : out.workloads) w.axes.erase(word);
    d.missing.push_back(
        fmt::format("what '{}' of the cases means: it is a word or a list, which no axis can be; make an operator for each value", word));
  }
  return out;
}

std::string read_beside(const fs::path& folder, const char* name) { return read_file(folder / name).value_or(""); }

Result<ImportedOperator> read_task(const fs::path& file) {
  FORGE_TRY_ASSIGN(const std::string text, read_file(file));
  FORGE_TRY_ASSIGN(const auto task, parse_task_yaml(text, file.string()));
  const auto word = [&](const char* key) { return task.count(key) ? task.at(key).word : std::string(); };
  if (!task.count("tests") && !task.count("benchmarks"))
    return fail(refusal(file, 0, "has neither tests nor benchmarks", "a GPU MODE task has both; docs/exchange.md says what is read"));
  if (word("multi_gpu") == "true")
    return fail(refusal(file, task.at("multi_gpu").line, "is a task for several GPUs, and forge judges kernels on one",
                        "take a part of it that runs on one GPU"));
  const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  OperatorDraft d;
  d.source = file.string(), d.format = kGpuMode;
  d.definition.name = operator_name_of(folder.filename().string());
  d.definition.op_type = "gpumode";
  d.definition.description = trim(word("description"));
  const Cases cases = read_cases(task, d);

  const bool cuda = word("lang") == "cu";
  const std::string reference = read_beside(folder, cuda ? "reference.cuh" : "reference.py");
  if (reference.empty())
    return fail(refusal(file, 0, fmt::format("there is no {} beside it", cuda ? "reference.cuh" : "reference.py"),
                        "import the task's folder as it was published"));
  bool known = false;
  if (!cuda) {
    const std::vector<PythonLine> lines = python_lines(reference);
    const auto generate = python_function(lines, "generate_input");
    known = generate && read_tensors(*generate, python_constants(lines), d);
    d.definition.reference = with_run(reference, "*data", "ref_kernel(data)");
    d.notes.push_back("inputs are what generate_input returns; where its last element is room for the output, move it to the outputs");
  } else {
    d.definition.reference = "# The reference is C++: reference.cuh.\n\n\ndef run(*data):\n    raise NotImplementedError\n";
  }
  d.files.push_back({cuda ? "reference.cuh" : "reference.py", reference});
  if (!known) {
    d.definition.inputs.clear(), d.definition.axes.clear();
    d.missing.push_back(
        "the inputs: what generate_input makes is not known without running it; add name, shape and dtype to definition.json");
  }
  // Axes that no tensor has are kept: a kernel is given them, and the reference needs them.
  for (const std::string& axis : cases.axes)
    if (!find_axis(d.definition, axis)) d.definition.axes.push_back({.name = axis, .constant = false, .value = 0});
  d.missing.push_back(
      "the outputs: name, shape and dtype in definition.json, then a judge for each; reference's check_implementation says how close they "
      "must be");
  d.workloads = cases.workloads;
  d.definition_json = definition_to_json(d.definition);
  return finish_draft(std::move(d));
}

}  // namespace

ImportItem import_gpumode(const fs::path& file) {
  auto op = read_task(file);
  if (!op) return refused_item(file.string(), kGpuMode, op.error());
  return {.source = file.string(), .format = kGpuMode, .taken = std::move(*op), .refused = {}};
}

}  // namespace forge
