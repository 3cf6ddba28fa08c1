// SPDX-License-Identifier: Apache-2.0
// Child processes: own process group, dies with its parent, limits on time and memory, output captured up to a cap.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "util/fs.h"

namespace forge {

struct ProcessOptions {
  std::vector<std::string> argv;     // argv[0] is looked up in PATH
  std::vector<std::string> env;      // "NAME=value"; the parent's environment is never inherited
  fs::path cwd;                      // empty: unchanged
  double timeout_s = 60;             // then SIGKILL to the whole group
  std::size_t memory_bytes = 0;      // RLIMIT_AS; 0: none
  std::size_t file_bytes = 0;        // RLIMIT_FSIZE; 0: none
  std::size_t output_cap = 1 << 20;  // bytes of stdout+stderr kept; the rest is dropped and said
  std::function<int()> before_exec;  // runs in the child after fork, before exec: sandbox set-up; non-zero aborts with that errno
};

struct ProcessResult {
  int exit_code = -1;  // valid when !signalled && !timed_out
  int signal = 0;      // when killed by a signal
  bool timed_out = false;
  std::string output;  // stdout and stderr together
  double seconds = 0;
};

// Blocks until the child has ended. Errors only when the child could not be started.
Result<ProcessResult> run_process(const ProcessOptions&);

// The first of PATH's entries that holds an executable of that name; empty when none.
fs::path find_program(const std::string& name);

}  // namespace forge
