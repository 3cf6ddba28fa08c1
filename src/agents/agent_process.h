// SPDX-License-Identifier: Apache-2.0
// A command line agent as a process: its own group, ends with its parent, its standard output read line by line while others are
// served, standard error and output kept in a log. Values of the variables that it was given never reach the log.
#pragma once
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "util/fs.h"

namespace forge {

struct AgentProcessOptions {
  std::vector<std::string> argv;  // argv[0] is a path
  std::vector<std::string> env;   // all of it
  fs::path cwd, input, log;       // input empty: none
  std::vector<std::string> secrets;
  std::function<int()> before_exec;  // in the child; non-zero, an errno: it does not start
};

class AgentProcess {
 public:
  static Result<std::unique_ptr<AgentProcess>> start(const AgentProcessOptions&);
  ~AgentProcess();  // kills it and all of its group
  AgentProcess(const AgentProcess&) = delete;

  std::vector<int> descriptors() const;  // to wait on
  // What it printed since the last call: whole lines of standard output, or all that is left once it has ended.
  std::vector<std::string> lines();
  bool said_something() const { return m_said; }  // in the last lines(), on either output
  bool ended();                                   // it has exited and its output is read
  std::string how_it_ended() const;               // "exit 1", "signal 9"
  std::string tail() const { return m_tail; }     // the last of what it printed, without secrets
  void stop();                                    // SIGTERM, five seconds, SIGKILL; its output is still to be read

 private:
  AgentProcess() = default;
  void keep(std::string text);
  void drain(Fd&, std::string* lines);
  void reap(bool wait);

  pid_t m_pid = -1;
  Fd m_out, m_err, m_exit, m_log;
  std::vector<std::string> m_secrets;
  std::string m_partial, m_tail, m_unredacted;
  std::size_t m_logged = 0;
  int m_status = 0;
  bool m_reaped = false, m_said = false;
};

// Replaces each secret of at least 8 characters by "[secret]".
std::string without_secrets(std::string text, const std::vector<std::string>& secrets);

}  // namespace forge
