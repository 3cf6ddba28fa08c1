// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>

#include "cli/command.h"
#include "core/version.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {

std::optional<Error> unknown_command(CLI::App& app, const std::vector<std::string>& words) {
  CLI::App* at = &app;
  std::string path = "forge";
  for (const std::string& word : words) {
    if (word.starts_with("-")) continue;
    std::vector<std::string> known;
    for (const CLI::App* sub : at->get_subcommands([](CLI::App*) { return true; })) known.push_back(sub->get_name());
    if (known.empty()) return {};
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      const std::string near = closest(word, known);
      return Error{.code = Code::bad_input,
                   .message = fmt::format("{} has no command '{}'", path, word),
                   .file = {},
                   .line = 0,
                   .field = {},
                   .fix = near.empty() ? path + " --help lists them" : fmt::format("did you mean '{}'?", near)};
    }
    at = at->get_subcommand(word);
    path += " " + word;
  }
  return {};
}

void add_all_commands(CLI::App& app, Context& context, Action& action) {
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", std::string("forge ") + forge_version());
  app.add_flag("--json", context.json, "print one JSON document on stdout, nothing else");
  app.add_flag("-q,--quiet", context.quiet, "no lines of progress");
  app.footer(
      "Start with:\n  forge doctor             what works on this machine, what does not, and how to mend it\n"
      "  forge suite cpu          forge kernels for the operators of a CPU and show what happened\n"
      "  forge run gemm_f32       one operator, against the best expert library here\n"
      "Exit codes: 0 yes, 1 no (rejected, not faster, failed), 2 usage or bad input, 3 this machine cannot, 4 interrupted, 5 broken.\n"
      "State lives in $FORGE_HOME (default ~/.local/share/forge).");
  add_doctor(app, action);
  add_operators(app, action);
  add_run(app, action);
  add_folder(app, action);
  add_suite(app, action);
  add_package(app, action);
  add_history(app, action);
  add_trace(app, action);
  add_serve(app, action);
  add_knowledge(app, action);
  add_selftest(app, action);
  add_compare(app, action);
  add_mcp(app, action);
  add_exchange(app, action);
  add_workspace(app, action);
  add_new(app, action);
  add_shell(app, action);
}

int main_of_forge(int argc, char** argv) {
  install_stop_handler();
  // A closed standard descriptor would be the next file that is opened. One that only fails takes its place.
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", fd == 0 ? O_WRONLY : fd == 1 ? O_RDONLY : O_RDWR);
  Context context;
  Action action;
  CLI::App app{"forge: makes compute kernels faster than the best known one, behind a gate that nothing fools"};
  add_all_commands(app, context, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    context.json = std::any_of(argv + 1, argv + argc, [](const char* a) { return std::string_view(a) == "--json"; });
    if (e.get_exit_code() != 0)
      if (const auto unknown = unknown_command(app, {argv + 1, argv + argc})) return Context::close_output(context.fail(*unknown));
    if (context.json && e.get_exit_code() != 0)
      return context.fail(Error{
          .code = Code::bad_input, .message = e.what(), .file = {}, .line = 0, .field = {}, .fix = "`forge COMMAND --help` has examples"});
    return Context::close_output(app.exit(e) == 0 ? kOk : kUsage);
  }
  Progress::enable(!context.json && !context.quiet);
  // mcp runs inside an agent's sandbox, where nothing of ours is in view; texts are asked for while the program is being built, too.
  const bool bare = app.got_subcommand("mcp") || app.got_subcommand("completion") || app.got_subcommand("man");
  if (auto found = context.find(); !found && !bare) return context.fail(found.error());
  try {
    return Context::close_output(action ? action(context) : kUsage);
  } catch (const std::bad_alloc&) {
    return context.fail(Error{.code = Code::unsupported,
                              .message = "this machine has not enough memory for that",
                              .file = {},
                              .line = 0,
                              .field = {},
                              .fix = "free some, or use smaller shapes"});
  }
}

}  // namespace forge
