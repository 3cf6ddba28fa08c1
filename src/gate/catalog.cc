// SPDX-License-Identifier: Apache-2.0
#include "gate/catalog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "gate/numeric.h"
#include "util/text.h"

namespace forge {
namespace {

bool is_plain_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

Error unknown_operator(const Paths& paths, const std::string& name) {
  const auto known = operator_names(paths);
  const std::string near = closest(name, known);
  Error error{.code = Code::not_found, .message = fmt::format("there is no operator '{}'", name)};
  error.file = (paths.data / "operators").string();
  if (!near.empty()) error.fix = fmt::format("did you mean '{}'? ", near);
  error.fix += known.empty() ? "no operator folders are here; set FORGE_DATA to the folder that holds operators/"
                             : "known operators: " + join(known, ", ");
  return error;
}

// The expert plugins of a family beside the oracle, by name. On a GPU a library (.so) or a Python callable (.py).
std::vector<std::pair<std::string, fs::path>> find_experts(const fs::path& plugins, const std::string& family) {
  const std::string prefix = family == "cpu" ? "expert-" : family + "-expert-";
  std::vector<std::pair<std::string, fs::path>> experts;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(plugins, ignored)) {
    const std::string stem = entry.path().stem().string(), suffix = entry.path().extension().string();
    if (stem.size() <= prefix.size() || !stem.starts_with(prefix) || !(suffix == ".so" || (suffix == ".py" && family != "cpu"))) continue;
    experts.emplace_back(stem.substr(prefix.size()), entry.path());
  }
  std::sort(experts.begin(), experts.end());
  return experts;
}

struct Texts {
  Definition definition;
  TaskFile task;
};

Result<Texts> read_folder(const fs::path& folder, const std::string& name) {
  Texts texts;
  std::error_code status;
  const fs::path definition_file = folder / "definition.json", task_file = folder / "task.toml";
  for (const fs::path& file : {definition_file, task_file}) {
    if (fs::exists(file, status)) continue;
    Error error{.code = Code::not_found, .message = fmt::format("operator '{}' has no {}", name, file.filename().string())};
    error.file = file.string();
    error.fix = "write it as docs/formats says";
    return fail(error);
  }
  FORGE_TRY_ASSIGN(const std::string definition_text, read_file(definition_file));
  FORGE_TRY_ASSIGN(texts.definition, parse_definition(definition_text, definition_file.string()));
  FORGE_TRY_ASSIGN(const std::string task_text, read_file(task_file));
  FORGE_TRY_ASSIGN(texts.task, parse_task_file(task_text, task_file.string(), texts.definition));
  return texts;
}

// The operands of the timed workload, once, against this machine's memory: more can only end in a failed allocation.
Status check_memory(const OperatorFolder& op) {
  FORGE_TRY_ASSIGN(const AxisValues axes, complete_axes(op.definition, op.task.timed.axes));
  double bytes = 0;
  for (const auto* list : {&op.definition.inputs, &op.definition.outputs})
    for (const TensorSpec& tensor : *list) {
      double size = judge_supports(tensor.dtype) ? static_cast<double>(bytes_of(tensor.dtype)) : 1;
      for (const std::string& axis : tensor.shape) size *= static_cast<double>(axes.at(axis));
      bytes += size;
    }
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (bytes <= memory / 2) return {};
  return fail(Error{.code = Code::unsupported,
                    .message = fmt::format("the tensors of the timed workload hold {:.3g} GB, and this machine has {:.3g} GB", bytes * 1e-9,
                                           memory * 1e-9),
                    .file = (op.folder / "task.toml").string(),
                    .line = 0,
                    .field = "timed.axes",
                    .fix = "time a smaller workload, or check the constant axes in definition.json"});
}

}  // namespace

std::vector<std::string> operator_names(const Paths& paths) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(paths.data / "operators", ignored)) {
    std::error_code status;
    if (fs::exists(entry.path() / "definition.json", status)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> operator_names(const Paths& paths, const std::string& family) {
  std::vector<std::string> names = operator_names(paths);
  std::erase_if(names, [&](const std::string& name) {
    const auto texts = read_folder(paths.data / "operators" / name, name);
    return !texts || std::ranges::count(texts->task.families, family) == 0;
  });
  return names;
}

Paths with_probe_operators(const Paths& paths, const std::string& name) {
  Paths p = paths;
  std::error_code ignored;
  if (is_plain_name(name) && !fs::exists(paths.data / "operators" / name, ignored) &&
      fs::exists(paths.data / "knowledge/operators" / name / "definition.json", ignored))
    p.data = paths.data / "knowledge";
  return p;
}

Result<OperatorFolder> read_operator(const Paths& paths, const std::string& name, const std::string& family) {
  if (!is_plain_name(name)) return fail(Code::bad_input, fmt::format("'{}' is not an operator name", name), "use letters, digits, _ and -");
  OperatorFolder result;
  result.folder = paths.data / "operators" / name;
  std::error_code status;
  if (!fs::is_directory(result.folder, status)) return fail(unknown_operator(paths, name));
  FORGE_TRY_ASSIGN(Texts texts, read_folder(result.folder, name));
  result.definition = std::move(texts.definition), result.task = std::move(texts.task);
  result.family = family.empty() ? result.task.families.front() : family;
  if (std::ranges::count(result.task.families, result.family) == 0) {
    Error error{
        .code = Code::unsupported,
        .message = fmt::format("operator '{}' is made for {} only, not for {}", name, join(result.task.families, ", "), result.family)};
    error.file = (result.folder / "task.toml").string(), error.field = "families";
    error.fix = fmt::format("take a target of that family: --target {}:...", result.task.families.front());
    return fail(error);
  }
  result.task.timed = timed_workload(result.task, result.family);
  return result;
}

Result<OperatorFolder> load_operator(const Paths& paths, const std::string& name, const std::string& family) {
  FORGE_TRY_ASSIGN(OperatorFolder result, read_operator(paths, name, family));
  if (result.family == "cpu") FORGE_TRY(check_memory(result));

  std::error_code status;
  result.oracle = paths.plugins / name / "oracle.so";
  if (!fs::exists(result.oracle, status)) {
    Error error{.code = Code::not_found, .message = fmt::format("the oracle plugin of operator '{}' is not built", name)};
    error.file = result.oracle.string();
    error.fix = fs::exists(result.folder / "oracle.cc", status) ? "build the project again: cmake --build build"
                                                                : "write oracle.cc in the operator's folder, then build";
    return fail(error);
  }
  result.experts = find_experts(paths.plugins / name, result.family);
  return result;
}

}  // namespace forge
