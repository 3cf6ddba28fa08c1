// SPDX-License-Identifier: Apache-2.0
#include "runner/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "runner/protocol.h"
#include "util/progress.h"
#include "util/sandbox.h"

namespace forge {
namespace {

// Between vfork and exec: shares the judge's memory, so it makes system calls and touches nothing else.
[[noreturn]] void become_runner(const char* program, char* const* argv, char* const* env, int channel, pid_t judge,
                                const SpawnLimits& limits) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != judge) _exit(126);  // it died before the line above
  const int null = open("/dev/null", O_RDWR);
  const int far = fcntl(channel, F_DUPFD, 16);
  if (null < 0 || far < 0) _exit(126);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  dup2(far, wire::k_channel_fd);
  if (syscall(SYS_close_range, wire::k_channel_fd + 1, ~0u, 0) != 0)
    for (int fd = wire::k_channel_fd + 1; fd < 1024; ++fd) close(fd);
  for (int s = 1; s < NSIG; ++s) signal(s, SIG_DFL);  // ignored signals would survive exec
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  limit(RLIMIT_CORE, 0);
  if (!limits.may_write_files) limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NOFILE, limits.open_files);
  if (set_no_new_privs() != 0) _exit(126);
  execve(program, argv, env);
  _exit(127);
}

[[gnu::noinline]] pid_t start_child(const char* program, char* const* argv, char* const* env, int channel, const SpawnLimits& limits) {
  const pid_t judge = getpid();
  // vfork: a fork would write-protect gigabytes of the judge's pages, to be faulted in again one by one. Signals wait until
  // the child has its own memory.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = vfork();
  if (pid == 0) become_runner(program, argv, env, channel, judge, limits);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

}  // namespace

Result<RunnerProcess> RunnerProcess::start(const std::string& program, const std::vector<std::string>& env,
                                           const std::vector<std::string>& arguments, const SpawnLimits& limits) {
  if (access(program.c_str(), X_OK) != 0)
    return fail(Error{.code = Code::not_found,
                      .message = "the runner program is missing or not executable",
                      .file = program,
                      .fix = "build the target forge-runner, or install again"});
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return fail_errno("socketpair", "", errno);
  RunnerProcess p;
  p.m_channel = Fd(ends[0]);
  // A runner that a kernel has made its own may answer without reading, until the queue is full; nobody waits for it then.
  const timeval patience{1, 0};
  if (setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0) {
    const int error = errno;
    close(ends[1]);
    return fail_errno("a socket's time limit", "", error);
  }
  Fd theirs(ends[1]);
  const auto pointers_to = [](std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    for (auto& s : strings) pointers.push_back(s.data());
    pointers.push_back(nullptr);
    return pointers;
  };
  std::vector<std::string> words = {"forge-runner"}, variables = env;
  words.insert(words.end(), arguments.begin(), arguments.end());
  p.m_pid = start_child(program.c_str(), pointers_to(words).data(), pointers_to(variables).data(), theirs.get(), limits);
  if (p.m_pid < 0) return fail_errno("starting a runner", program, errno);
  setpgid(p.m_pid, p.m_pid);  // on both sides, so that neither has to wait for the other
  if (clock_getcpuclockid(p.m_pid, &p.m_clock) != 0) p.m_clock = 0;
  return p;
}

RunnerProcess::RunnerProcess(RunnerProcess&& o) noexcept : m_pid(o.m_pid), m_channel(std::move(o.m_channel)), m_clock(o.m_clock) {
  o.m_pid = -1;
}

RunnerProcess& RunnerProcess::operator=(RunnerProcess&& o) noexcept {
  std::swap(m_pid, o.m_pid);
  std::swap(m_channel, o.m_channel);
  std::swap(m_clock, o.m_clock);
  return *this;
}

RunnerProcess::~RunnerProcess() { finish(0); }

void RunnerProcess::resume() const {
  if (m_pid > 0) kill(-m_pid, SIGCONT);
}

bool RunnerProcess::stop() const {
  if (m_pid <= 0) return false;
  kill(-m_pid, SIGSTOP);
  for (;;) {
    siginfo_t info{};
    // The kernel reports the stop once the last thread has stopped.
    if (waitid(P_PID, static_cast<id_t>(m_pid), &info, WSTOPPED | WEXITED | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (info.si_code != CLD_STOPPED) return false;  // ended: left for finish() to reap
    waitid(P_PID, static_cast<id_t>(m_pid), &info, WSTOPPED);
    return true;
  }
}

double RunnerProcess::cpu_seconds() const {
  timespec t;
  if (m_clock == 0 || clock_gettime(m_clock, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

bool RunnerProcess::limit_address_space(std::size_t bytes) const {
#ifdef __SANITIZE_ADDRESS__
  (void)bytes;
  return false;  // the sanitizer reserves terabytes
#else
  const rlimit want{bytes, RLIM_INFINITY};
  return prlimit(m_pid, RLIMIT_AS, &want, nullptr) == 0;
#endif
}

Ending RunnerProcess::finish(double patience_s) {
  Ending e;
  if (m_pid <= 0) return e;
  int status = 0;
  pid_t got = 0;
  const double until = monotonic_seconds() + patience_s;
  while ((got = waitpid(m_pid, &status, WNOHANG)) == 0 && monotonic_seconds() < until) usleep(200);
  if (got == 0) {
    e.ours = true;
    kill(-m_pid, SIGKILL);
    while ((got = waitpid(m_pid, &status, 0)) < 0 && errno == EINTR) {
    }
  } else {
    kill(-m_pid, SIGKILL);  // whatever else may be in the group
  }
  if (got == m_pid) {
    e.known = true;
    if (WIFSIGNALED(status))
      e.signal = WTERMSIG(status);
    else
      e.exit_code = WEXITSTATUS(status);
  }
  m_pid = -1;
  return e;
}

}  // namespace forge
