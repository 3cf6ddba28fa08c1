// SPDX-License-Identifier: Apache-2.0
// Starts and ends runner processes, and stops and continues them between their turns.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "util/fs.h"

namespace forge {

// How a process ended, as the kernel told it.
struct Ending {
  bool known = false;
  int exit_code = -1;
  int signal = 0;
  bool ours = false;  // it was the judge that killed it
};

struct SpawnLimits {
  std::size_t open_files = 256;
  bool may_write_files = false;  // else no file may grow
};

// One runner process: its own group, dies with the thread that started it. Destruction kills and reaps.
class RunnerProcess {
 public:
  static Result<RunnerProcess> start(const std::string& program, const std::vector<std::string>& env,
                                     const std::vector<std::string>& arguments = {}, const SpawnLimits& limits = {});
  RunnerProcess(RunnerProcess&&) noexcept;
  RunnerProcess& operator=(RunnerProcess&&) noexcept;
  ~RunnerProcess();

  int channel() const { return m_channel.get(); }
  pid_t pid() const { return m_pid; }
  void resume() const;
  // Stops every thread and returns once they are stopped; false when the process has ended instead.
  bool stop() const;
  double cpu_seconds() const;  // all threads, read by us from the kernel; 0 when it is gone
  bool limit_address_space(std::size_t bytes) const;
  // Waits up to `patience_s` for an end of its own, then kills the group. Reaps.
  Ending finish(double patience_s);

 private:
  RunnerProcess() = default;
  pid_t m_pid = -1;
  Fd m_channel;
  clockid_t m_clock = 0;
};

// What the experts' libraries need to know of this machine: thread counts and places, OpenBLAS's core type by CPUID.
std::vector<std::string> expert_environment(const std::vector<int>& cores);

}  // namespace forge
