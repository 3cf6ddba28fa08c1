// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "cli/command.h"
#include "core/version.h"
#include "util/progress.h"

namespace forge {

int main_of_forge(int argc, char** argv) {
  install_stop_handler();
  Context context;
  Action action;
  CLI::App app{"forge: makes compute kernels faster than the best known one, behind a gate that nothing fools"};
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
  add_knowledge(app, action);
  add_selftest(app, action);
  add_compare(app, action);
  add_mcp(app, action);
  add_exchange(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    context.json = std::any_of(argv + 1, argv + argc, [](const char* a) { return std::string_view(a) == "--json"; });
    if (context.json && e.get_exit_code() != 0)
      return context.fail(Error{
          .code = Code::bad_input, .message = e.what(), .file = {}, .line = 0, .field = {}, .fix = "`forge COMMAND --help` has examples"});
    const int code = app.exit(e);
    return code == 0 ? kOk : kUsage;
  }
  Progress::enable(!context.json && !context.quiet);
  const bool bare = app.got_subcommand("mcp");  // runs inside an agent's sandbox, where nothing of ours is in view
  if (auto found = context.find(); !found && !bare) return context.fail(found.error());
  const int code = action ? action(context) : kUsage;
  Progress::clear();
  return code;
}

}  // namespace forge
