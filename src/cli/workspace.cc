// SPDX-License-Identifier: Apache-2.0
// forge init | new operator: files to begin with.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "core/json_io.h"
#include "core/target.h"
#include "model/model.h"
#include "util/shell.h"
#include "util/text.h"

namespace forge {

namespace {

// Every key of read_config() with its default, commented out: what is absent follows the program's defaults, whatever they become.
std::string config_text() {
  const Config d;
  return fmt::format(
      R"(# Defaults of runs (docs/formats/config.md). A flag of a command wins over this file. To set a key, remove the # before it, and
# before the [table] that it is in. A key that is unknown is an error: no misspelling passes in silence.
format = 1

# {}; default: the widest of the machine.
#target = "{}"

# A run stops when it is this many times as fast as its reference; 0: no goal.
#goal = {:.1f}

# Of the agents. The judge's seeds come from the operating system.
#seed = {}

# Of one run.
#[budget]
# Kernels that are handed in.
#candidates = {}
# The gate's time.
#gate_seconds = {:.0f}
# All of it.
#wall_seconds = {:.0f}
)",
      join(known_targets(), ", "), known_targets().front(), d.goal, d.seed, d.budget.candidates, d.budget.gate_seconds,
      d.budget.wall_seconds);
}

std::string models_text() {
  const ModelSettings d;
  return fmt::format(
      R"(# What models cost (docs/formats/models.md), for budgets in dollars (--dollars). Prices are the vendor's and change: look them up.
# Without this file tokens are counted and dollars are 0. Secrets do not belong here: ANTHROPIC_API_KEY and OPENAI_API_KEY hold them.
format = 1

# One table a model; its name as in --coder anthropic:NAME.
#[[model]]
#name = "some-model"
# Dollars for a million tokens.
#dollars_per_million_input = {:.1f}
#dollars_per_million_output = {:.1f}
#dollars_per_million_cache_read = {:.1f}
#dollars_per_million_cache_write = {:.1f}
# Tokens of one answer.
#max_output = {}
# How often one question is asked, where the protocol says that it may be asked again.
#attempts = {}
)",
      d.dollars_per_million_input, d.dollars_per_million_output, d.dollars_per_million_cache_read, d.dollars_per_million_cache_write,
      d.max_output, d.attempts);
}

Error workspace_problem(const std::string& message, const fs::path& file, const std::string& fix) {
  return Error{.code = Code::bad_input, .message = message, .file = file.string(), .line = 0, .field = {}, .fix = fix};
}

int init(const Context& c, const std::string& wanted) {
  std::error_code error;
  const fs::path folder = fs::absolute(wanted.empty() ? c.paths.home : fs::path(wanted), error).lexically_normal();
  const std::vector<std::pair<fs::path, std::string>> files = {{folder / "config.toml", config_text()},
                                                               {folder / "models.toml", models_text()}};
  for (const auto& [file, text] : files)
    if (fs::exists(fs::symlink_status(file, error)))
      return c.fail(
          workspace_problem("exists already, and nothing was written", file, "edit it, or name another folder: forge init FOLDER"));
  if (const Status made = make_dirs(folder); !made) return c.fail(made.error());
  Json written = Json::array();
  for (const auto& [file, text] : files) {
    if (const Status done = write_file_atomic(file, text); !done) return c.fail(done.error());
    written.push_back(file.string());
    c.out(file.string());
  }
  const bool in_use = fs::equivalent(folder, c.paths.home, error);
  c.out(in_use
            ? "Every key is there, commented out. Next: forge doctor"
            : fmt::format("Every key is there, commented out. To work in this folder: export FORGE_HOME={}", shell_word(folder.string())));
  return c.finish(dump(Json{{"folder", folder.string()}, {"written", written}, {"in_use", in_use}}));
}

}  // namespace

void add_workspace(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("init", "a workspace: a folder for state, with a configuration that names every key");
  sub->add_option("folder", *folder, "default: $FORGE_HOME");
  sub->footer("Examples:\n  forge init\n  forge init mine && export FORGE_HOME=$PWD/mine");
  sub->callback([folder, &action] { action = [folder](Context& c) { return init(c, *folder); }; });
}

}  // namespace forge
