// SPDX-License-Identifier: Apache-2.0
// The command line: every subcommand is a row of a table (commands.cc), made of a description, options and a function.
// This header is free of CLI11, so that a command's file pays for it and nobody else.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/record.h"
#include "core/target.h"
#include "store/store.h"
#include "util/fs.h"

namespace CLI {
class App;
}

namespace forge {

// Exit codes; docs/cli.md explains them to users.
enum Exit {
  kOk = 0,
  kNegative = 1,     // the command worked, its answer is no: rejected, not faster, self-test failed, something essential missing
  kUsage = 2,        // bad flag, file or value
  kEnvironment = 3,  // this machine cannot: missing tool, permission, space
  kInterrupted = 4,  // Ctrl-C; says how to resume
  kBroken = 5,       // a bug, or damaged state
};
int exit_code(Code);

struct Context {
  bool json = false;
  bool quiet = false;
  Paths paths;

  Status find();                                             // fills paths
  Result<Store> store() const;                               // opens FORGE_HOME
  Result<Machine> machine(const std::string& target) const;  // probed, with ceilings; empty target: the widest here
  void out(const std::string& line) const;                   // to stdout, unless --json
  void say(const std::string& line) const;                   // progress of long work: to stdout, unless --json or --quiet
  int finish(const std::string& json_document) const;        // prints it when --json; returns kOk
  int fail(const Error&) const;                              // prints it (as JSON too) and returns its exit code
  int warn(const Error&) const;                              // of one record of many: to stderr only; returns its exit code
  // The exit code of a command that is done: another one where what it printed was lost, which it says on stderr.
  static int close_output(int code);
};

// $FORGE_HOME/config.toml: defaults of runs. docs/formats/config.md.
struct Config {
  Budget budget;
  std::string target;
  double goal = 0;
  std::uint64_t seed = 1;
};
Result<Config> read_config(const fs::path& home);

// Each adds its subcommands to the app; the chosen one stores what is to be done in `action`.
using Action = std::function<int(Context&)>;
void add_doctor(CLI::App&, Action&);
void add_operators(CLI::App&, Action&);
void add_run(CLI::App&, Action&);     // run, evolve, replay
void add_folder(CLI::App&, Action&);  // open, submit, status
void add_suite(CLI::App&, Action&);
void add_package(CLI::App&, Action&);    // check, bench, seal, promote, lineage
void add_history(CLI::App&, Action&);    // runs, show, report
void add_trace(CLI::App&, Action&);      // trace
void add_serve(CLI::App&, Action&);      // serve
void add_knowledge(CLI::App&, Action&);  // kb ...
void add_selftest(CLI::App&, Action&);   // selftest ...
void add_compare(CLI::App&, Action&);    // compare
void add_mcp(CLI::App&, Action&);        // mcp
void add_exchange(CLI::App&, Action&);   // export, import
void add_shell(CLI::App&, Action&);      // completion, man
void add_workspace(CLI::App&, Action&);  // init
void add_new(CLI::App&, Action&);        // new operator

void add_all_commands(CLI::App&, Context&, Action&);  // with the flags of the program itself, which go into the context
// The first word that is no command where one must stand: `forge frob`, `forge kb frob`.
std::optional<Error> unknown_command(CLI::App&, const std::vector<std::string>& words);

// Renders a run's report; returns the path.
Result<std::string> write_report(const Store&, const std::string& run, const std::string& out_file);

int main_of_forge(int argc, char** argv);

}  // namespace forge
