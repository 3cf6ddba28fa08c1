// SPDX-License-Identifier: Apache-2.0
// Finds out what a file or a folder holds, by content rather than by name where it can.
#include "exchange/import.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json_io.h"
#include "exchange/draft.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr std::size_t kMostFiles = 20000;
constexpr std::uintmax_t kMostBytes = std::uintmax_t(64) << 20;  // of one file; recorded inputs lie in others

struct Found {
  std::vector<fs::path> definitions, workloads, problems, tasks;
  bool empty() const { return definitions.empty() && problems.empty() && tasks.empty(); }
};

bool is_definition(const fs::path& file) {
  const auto text = read_file(file);
  if (!text) return false;
  const auto json = parse_json(*text, file.string());
  if (!json) return file.parent_path().parent_path().filename() == "definitions";  // a broken one is worth a message
  return json->is_object() && json->contains("axes") && json->contains("inputs") && json->contains("outputs");
}

bool is_problem(const fs::path& file) {
  const auto text = read_file(file);
  return text && text->find("class Model") != std::string::npos && text->find("def get_inputs") != std::string::npos;
}

void look_at(const fs::path& file, Found& found) {
  const std::string extension = file.extension().string(), name = file.filename().string();
  std::error_code error;
  if (fs::file_size(file, error) > kMostBytes || error) return;
  if (name == "task.yml" || name == "task.yaml")
    found.tasks.push_back(file);
  else if (extension == ".json" && is_definition(file))
    found.definitions.push_back(file);
  else if (extension == ".jsonl")
    found.workloads.push_back(file);
  else if (extension == ".py" && is_problem(file))
    found.problems.push_back(file);
}

Status look_into(const fs::path& folder, Found& found) {
  std::error_code error;
  std::vector<fs::path> files;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  if (error) return fail_errno("cannot list the folder", folder.string(), error.value());
  for (const fs::recursive_directory_iterator end; it != end && files.size() < kMostFiles; it.increment(error)) {
    if (error) break;
    std::error_code ignored;
    if (it->path().filename().string().starts_with(".")) {
      it.disable_recursion_pending();
      continue;
    }
    if (it->is_regular_file(ignored)) files.push_back(it->path());
  }
  if (files.size() == kMostFiles)
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("holds {} files or more", kMostFiles),
                      .file = folder.string(),
                      .line = 0,
                      .field = {},
                      .fix = "name the part of it that you want"});
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) look_at(file, found);
  return {};
}

// A single definition of a dataset: its workloads lie at <root>/workloads/<op_type>/<name>.jsonl.
void find_workloads(const fs::path& definition, Found& found) {
  const fs::path at = fs::absolute(definition).lexically_normal();
  for (const fs::path& candidate :
       {at.parent_path().parent_path().parent_path() / "workloads" / at.parent_path().filename(), at.parent_path()})
    for (const std::string& name : {at.stem().string() + ".jsonl", std::string("workloads.jsonl"), std::string("workload.jsonl")}) {
      std::error_code ignored;
      if (fs::is_regular_file(candidate / name, ignored)) found.workloads.push_back(candidate / name);
    }
}

Error no_task(const fs::path& path, std::string message) {
  return Error{
      .code = Code::bad_input,
      .message = std::move(message),
      .file = path.string(),
      .line = 0,
      .field = {},
      .fix =
          "known are FlashInfer-Trace definitions (JSON with axes, inputs and outputs), KernelBench problems (Python with class Model "
          "and get_inputs) and GPU MODE tasks (task.yml)"};
}

}  // namespace

Result<std::vector<ImportItem>> import_tasks(const fs::path& path) {
  std::error_code error;
  Found found;
  if (fs::is_directory(path, error)) {
    FORGE_TRY(look_into(path, found));
    if (found.empty()) return fail(no_task(path, "holds no task that is known here"));
  } else {
    if (!fs::exists(path, error))
      return fail(Error{.code = Code::not_found, .message = "does not exist", .file = path.string(), .line = 0, .field = {}, .fix = {}});
    if (!fs::is_regular_file(path, error)) return fail(no_task(path, "is neither a file nor a folder"));  // a FIFO would be waited for
    if (const std::uintmax_t size = fs::file_size(path, error); !error && size > kMostBytes)
      return fail(Error{.code = Code::bad_input,
                        .message = fmt::format("has {} bytes, more than the {} MiB that a task's file may have", size, kMostBytes >> 20),
                        .file = path.string(),
                        .line = 0,
                        .field = {},
                        .fix = "name the file that holds the task itself; recorded inputs lie in others"});
    if (path.extension() == ".json") {
      FORGE_TRY_ASSIGN(const std::string text, read_file(path));
      FORGE_TRY(parse_json(text, path.string()));  // the line of what is broken
    }
    look_at(path, found);
    if (!found.workloads.empty()) return fail(no_task(path, "holds workloads, which say nothing without their definition"));
    if (found.empty()) return fail(no_task(path, "is no task that is known here"));
    for (const fs::path& definition : std::vector<fs::path>(found.definitions)) find_workloads(definition, found);
  }
  std::vector<ImportItem> items = import_flashinfer(found.definitions, found.workloads);
  for (const fs::path& problem : found.problems) items.push_back(import_kernelbench(problem));
  for (const fs::path& task : found.tasks) items.push_back(import_gpumode(task));
  return items;
}

}  // namespace forge
