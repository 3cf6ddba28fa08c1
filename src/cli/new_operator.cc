// SPDX-License-Identifier: Apache-2.0
// forge new operator NAME: the worked example of docs/add-an-operator.md under another name. It passes admission, so whoever changes it
// step by step always knows which step a judge did not like.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "core/json_io.h"
#include "gate/gate.h"
#include "util/scratch.h"
#include "util/shell.h"

namespace forge {

namespace {

constexpr const char* kExample = "scaled_add_f32";

// It becomes a C++ string, a CMake target and a folder.
bool is_operator_word(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name[0] >= 'a' && name[0] <= 'z' &&
         std::all_of(name.begin(), name.end(), [](char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '_'; });
}

std::string renamed(std::string text, const std::string& name) {
  const std::string from = kExample;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + name.size()))
    text.replace(at, from.size(), name);
  return text;
}

// The example's files under the new name, by their path within the folder.
Result<std::vector<std::pair<fs::path, std::string>>> example_files(const Paths& paths, const std::string& name) {
  const fs::path from = paths.data / "docs" / "examples" / kExample;
  std::vector<std::pair<fs::path, std::string>> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(from, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file(error)) continue;
    FORGE_TRY_ASSIGN(std::string text, read_file(it->path()));
    files.emplace_back(it->path().lexically_relative(from), renamed(std::move(text), name));
  }
  if (files.empty())
    return fail(Error{.code = Code::not_found,
                      .message = "the example that new operators begin as is not there",
                      .file = from.string(),
                      .line = 0,
                      .field = {},
                      .fix = "copy docs/examples of the source tree there, or install again"});
  std::sort(files.begin(), files.end());
  return files;
}

// What builds it and lets the gate try to break it, where the folder lies.
std::vector<std::string> steps_after(const Context& c, const fs::path& folder, const std::string& name) {
  std::error_code error;
  const std::string admission = fmt::format("selftest admission --operator {}", name);
  const fs::path operators = folder.parent_path(), data = operators.parent_path();
  if (fs::equivalent(data, c.paths.data, error) && fs::exists(data / "CMakeLists.txt", error))
    return {fmt::format("cd {} && cmake --preset release && cmake --build --preset release", shell_word(data.string())),
            "build/forge " + admission};
  const fs::path tree = c.paths.data / "include";
  const std::string include = fs::is_directory(tree, error) ? " -I " + shell_word(tree.string()) : "";
  const std::string compile = fmt::format("g++ -std=c++20 -O3 -mavx2 -mfma -fopenmp -shared -fPIC{}", include);
  const fs::path plugins = data / "plugins" / name;
  const auto at = [](const fs::path& path) { return shell_word(path.string()); };
  return {"mkdir -p " + at(plugins), fmt::format("{} {} -o {}", compile, at(folder / "oracle.cc"), at(plugins / "oracle.so")),
          fmt::format("{} {} -o {} -ldnnl  # from libdnnl-dev", compile, at(folder / "experts/cpu/onednn.cc"),
                      at(plugins / "expert-onednn.so")),
          fmt::format("FORGE_DATA={} FORGE_PLUGINS={} forge {}", at(data), at(plugins.parent_path()), admission)};
}

int new_operator(const Context& c, const std::string& name, const std::string& into) {
  const auto refuse = [&](const std::string& message, const std::string& file, const std::string& fix) {
    return c.fail(Error{.code = Code::bad_input, .message = message, .file = file, .line = 0, .field = {}, .fix = fix});
  };
  if (!is_operator_word(name))
    return refuse(fmt::format("'{}' is no name for an operator", name), "", "begin with a letter; small letters, digits and _ only");
  std::error_code error;
  const fs::path folder = fs::absolute(into.empty() ? c.paths.data / "operators" : fs::path(into), error).lexically_normal() / name;
  if (fs::exists(fs::symlink_status(folder, error))) return refuse("exists already", folder.string(), "choose another name, or remove it");
  if (fs::exists(c.paths.data / "knowledge" / "operators" / name, error))
    return refuse("a probe of the knowledge base has that name", (c.paths.data / "knowledge/operators" / name).string(),
                  "choose another name");
  const auto files = example_files(c.paths, name);
  if (!files) return c.fail(files.error());
  Json written = Json::array();
  if (const Status done = write_folder(folder, *files); !done) {
    Error e = done.error();
    if (e.code != Code::disk_full) e.fix = "name a folder that you may write to: --into mine/operators";
    return c.fail(e);
  }
  for (const auto& [file, text] : *files) {
    written.push_back(file.string());
    c.out((folder / file).string());
  }
  const std::vector<std::string> steps = steps_after(c, folder, name);
  c.out("It computes z = s * x + y, as the worked example of docs/add-an-operator.md does, and passes admission. Build it and see:");
  for (const std::string& step : steps) c.out("  " + step);
  c.out(
      "Then make it yours, in this order, with admission after each:\n"
      "  definition.json   axes, tensors, the function in Python\n"
      "  task.toml         what is timed, each output's judge and where its bound is written down, the exact symmetries, the cost\n"
      "  oracle.cc         the truth in fp64, and content made to break this operator's shortcuts\n"
      "  experts/cpu/      a library's implementation, the first to beat; remove it where none has the operator");
  return c.finish(dump(Json{{"operator", name}, {"folder", folder.string()}, {"written", written}, {"next", steps}}));
}

}  // namespace

void add_new(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("new", "something of your own to begin with");
  sub->require_subcommand(1);
  auto name = std::make_shared<std::string>();
  auto into = std::make_shared<std::string>();
  CLI::App* op = sub->add_subcommand("operator", "an operator's folder that passes admission as it is, to be changed step by step");
  op->add_option("name", *name, "small letters, digits and _")->required();
  op->add_option("--into", *into, "the folder that holds operators (default: this installation's operators/)");
  op->footer("Examples:\n  forge new operator swiglu_f32\n  forge new operator swiglu_f32 --into mine/operators");
  op->callback([name, into, &action] { action = [name, into](Context& c) { return new_operator(c, *name, *into); }; });
}

}  // namespace forge
