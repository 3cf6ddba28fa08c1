// SPDX-License-Identifier: Apache-2.0
#include "util/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "util/progress.h"
#include "util/text.h"

namespace forge {

fs::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? fs::path(name) : fs::path();
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':')) {
    const fs::path candidate = fs::path(folder) / name;
    std::error_code error;
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, error)) return candidate;
  }
  return {};
}

namespace {

void limit(int resource, std::size_t value) {
  rlimit r{value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &r);
}

// Runs in the child. Only async-signal-safe calls, besides the caller's own hook.
[[noreturn]] void become(const ProcessOptions& o, const char* program, char** argv, char** env, int out, int error_pipe, pid_t parent) {
  auto give_up = [&] {
    const int saved = errno;
    if (write(error_pipe, &saved, sizeof saved) < 0) _exit(126);
    _exit(127);
  };
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const int null = open("/dev/null", O_RDONLY);
  if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) give_up();
  if (!o.cwd.empty() && chdir(o.cwd.c_str()) != 0) give_up();
  limit(RLIMIT_CORE, 0);
  if (o.before_exec) {
    const int refused = o.before_exec();
    if (refused) {
      errno = refused;
      give_up();
    }
  }
  if (o.file_bytes) limit(RLIMIT_FSIZE, o.file_bytes);
  if (o.memory_bytes) limit(RLIMIT_AS, o.memory_bytes);  // last: a sanitizer's run time takes addresses for every file that is opened
  execve(program, argv, env);
  give_up();
  _exit(127);
}

}  // namespace

Result<ProcessResult> run_process(const ProcessOptions& options) {
  if (options.argv.empty()) return fail(Code::internal, "run_process without a program");
  const fs::path program = find_program(options.argv[0]);
  if (program.empty()) return fail(Code::not_found, options.argv[0] + " was not found in PATH", "install it, or mend PATH");
  std::vector<char*> argv, env;
  for (const auto& a : options.argv) argv.push_back(const_cast<char*>(a.c_str()));
  for (const auto& e : options.env) env.push_back(const_cast<char*>(e.c_str()));
  argv.push_back(nullptr);
  env.push_back(nullptr);

  int out[2], failure[2];
  if (pipe2(out, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", "", errno);
  Fd out_read(out[0]), out_write(out[1]);
  if (pipe2(failure, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", "", errno);
  Fd failure_read(failure[0]), failure_write(failure[1]);

  const double start = monotonic_seconds();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail_errno("cannot fork", options.argv[0], errno);
  if (pid == 0) become(options, program.c_str(), argv.data(), env.data(), out_write.get(), failure_write.get(), parent);
  setpgid(pid, pid);
  out_write = Fd();
  failure_write = Fd();

  ProcessResult result;
  auto end_group = [&] {
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
  };
  int child_errno = 0;
  ssize_t got;
  do got = read(failure_read.get(), &child_errno, sizeof child_errno);
  while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof child_errno)) {
    end_group();
    waitpid(pid, nullptr, 0);
    return fail_errno("cannot start", program.string(), child_errno);
  }

  std::size_t dropped = 0;
  bool stopped = false;
  char buffer[1 << 14];
  for (;;) {
    const double left = options.timeout_s - (monotonic_seconds() - start);
    if (left <= 0 && !result.timed_out) {
      result.timed_out = true;
      end_group();
    }
    if (stop_requested() && !stopped) {
      stopped = true;
      end_group();
    }
    pollfd p{out_read.get(), POLLIN, 0};
    const int ready = poll(&p, 1, left > 0 ? static_cast<int>(std::min(left, 0.2) * 1000) + 1 : 100);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      // A grandchild may hold the pipe after the child has gone.
      siginfo_t info{};
      if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid) break;
      continue;
    }
    const ssize_t n = read(out_read.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    const std::size_t keep = std::min(static_cast<std::size_t>(n), options.output_cap - std::min(options.output_cap, result.output.size()));
    result.output.append(buffer, keep);
    dropped += static_cast<std::size_t>(n) - keep;
  }
  int status = 0;
  for (;;) {  // output is closed; the process may still run until its limit
    const pid_t r = waitpid(pid, &status, WNOHANG);
    if (r == pid || (r < 0 && errno != EINTR)) break;
    if (!result.timed_out && monotonic_seconds() - start > options.timeout_s) {
      result.timed_out = true;
      end_group();
    }
    if (stop_requested()) end_group();
    usleep(2000);
  }
  kill(-pid, SIGKILL);  // whatever it left behind in its group
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (dropped) result.output += "\n... (" + std::to_string(dropped) + " more bytes dropped)\n";
  result.seconds = monotonic_seconds() - start;
  if (stopped) return fail(Code::interrupted, "interrupted while running " + options.argv[0]);
  return result;
}

}  // namespace forge
