// SPDX-License-Identifier: Apache-2.0
#include "agents/agent_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "util/progress.h"

namespace forge {

namespace {

constexpr std::size_t kLineCap = 16 << 20;
constexpr std::size_t kLogCap = 64 << 20;
constexpr std::size_t kTail = 1500;

[[noreturn]] void become(const AgentProcessOptions& o, char** argv, char** env, int in, int out, int err, int failure, pid_t parent) {
  const auto give_up = [&] {
    const int saved = errno;
    if (write(failure, &saved, sizeof saved) < 0) _exit(126);
    _exit(127);
  };
  setsid();  // out of reach of the user's terminal
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) give_up();
  if (!o.cwd.empty() && chdir(o.cwd.c_str()) != 0) give_up();
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(SIGPIPE, SIG_DFL);
  if (o.before_exec)
    if (const int refused = o.before_exec()) errno = refused, give_up();
  execve(argv[0], argv, env);
  give_up();
  _exit(127);
}

}  // namespace

std::string without_secrets(std::string text, const std::vector<std::string>& secrets) {
  for (const std::string& s : secrets) {
    if (s.size() < 8) continue;
    for (std::size_t at = 0; (at = text.find(s, at)) != std::string::npos;) text.replace(at, s.size(), "[secret]"), at += 8;
  }
  return text;
}

Result<std::unique_ptr<AgentProcess>> AgentProcess::start(const AgentProcessOptions& o) {
  std::unique_ptr<AgentProcess> p(new AgentProcess);
  p->m_secrets = o.secrets;
  p->m_log = Fd(open(o.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!p->m_log) return fail_errno("cannot write", o.log.string(), errno);
  const std::string from = o.input.empty() ? "/dev/null" : o.input.string();
  Fd in(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) return fail_errno("cannot read", from, errno);
  int out[2], err[2], failure[2];
  if (pipe2(out, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", "", errno);
  p->m_out = Fd(out[0]);
  Fd out_write(out[1]);
  if (pipe2(err, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", "", errno);
  p->m_err = Fd(err[0]);
  Fd err_write(err[1]);
  if (pipe2(failure, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", "", errno);
  Fd failure_read(failure[0]), failure_write(failure[1]);
  for (const int fd : {out[0], err[0]}) fcntl(fd, F_SETFL, O_NONBLOCK);

  std::vector<char*> argv, env;
  for (const auto& a : o.argv) argv.push_back(const_cast<char*>(a.c_str()));
  for (const auto& e : o.env) env.push_back(const_cast<char*>(e.c_str()));
  argv.push_back(nullptr);
  env.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail_errno("cannot fork", o.argv[0], errno);
  if (pid == 0) become(o, argv.data(), env.data(), in.get(), out_write.get(), err_write.get(), failure_write.get(), parent);
  p->m_pid = pid;
  p->m_exit = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0u)));  // absent on an old kernel: the end is seen a little later
  out_write = Fd();
  err_write = Fd();
  failure_write = Fd();
  int child_errno = 0;
  ssize_t got;
  do got = read(failure_read.get(), &child_errno, sizeof child_errno);
  while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof child_errno)) return fail_errno("cannot start", o.argv[0], child_errno);
  return p;
}

AgentProcess::~AgentProcess() {
  if (m_pid <= 0) return;
  kill(-m_pid, SIGKILL);
  reap(true);
}

std::vector<int> AgentProcess::descriptors() const {
  std::vector<int> all;
  for (const Fd* fd : {&m_out, &m_err})
    if (*fd) all.push_back(fd->get());
  if (m_exit && !m_reaped) all.push_back(m_exit.get());
  return all;
}

// Called with whole lines, so that no read cuts a secret in two.
void AgentProcess::keep(std::string text) {
  text = without_secrets(std::move(text), m_secrets);
  m_tail += text;
  if (m_tail.size() > kTail) m_tail.erase(0, m_tail.size() - kTail);
  if (m_logged + text.size() > kLogCap) return;
  m_logged += text.size();
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = write(m_log.get(), text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // a log is not worth the run
    at += static_cast<std::size_t>(n);
  }
}

void AgentProcess::drain(Fd& fd, std::string* collected) {
  char buffer[1 << 15];
  while (fd) {
    const ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      fd = Fd();
      return;
    }
    m_said = true;
    if (collected && collected->size() < kLineCap) collected->append(buffer, static_cast<std::size_t>(n));
    if (!collected) m_unredacted.append(buffer, static_cast<std::size_t>(n));
  }
}

std::vector<std::string> AgentProcess::lines() {
  m_said = false;
  drain(m_out, &m_partial);
  drain(m_err, nullptr);
  if (m_reaped) m_out = Fd(), m_err = Fd();  // whoever left its group may hold them for ever
  std::vector<std::string> whole;
  std::size_t from = 0;
  for (std::size_t end; (end = m_partial.find('\n', from)) != std::string::npos; from = end + 1) {
    whole.push_back(m_partial.substr(from, end - from));
    keep(whole.back() + "\n");
  }
  m_partial.erase(0, from);
  if (m_partial.size() >= kLineCap) m_partial.clear();
  if (!m_out && !m_partial.empty()) {
    whole.push_back(m_partial);
    keep(m_partial + "\n");
    m_partial.clear();
  }
  const std::size_t end = m_err ? m_unredacted.rfind('\n') + 1 : m_unredacted.size();
  keep(m_unredacted.substr(0, end));
  m_unredacted.erase(0, end);
  if (m_unredacted.size() > kLineCap) m_unredacted.clear();
  return whole;
}

void AgentProcess::reap(bool wait) {
  if (m_reaped || m_pid <= 0) return;
  for (;;) {
    const pid_t r = waitpid(m_pid, &m_status, wait ? 0 : WNOHANG);
    if (r < 0 && errno == EINTR) continue;
    m_reaped = r == m_pid || r < 0;
    break;
  }
  if (m_reaped) kill(-m_pid, SIGKILL);  // what it left behind in its group, before the number is used again
}

bool AgentProcess::ended() {
  reap(false);
  return m_reaped;
}

std::string AgentProcess::how_it_ended() const {
  if (WIFSIGNALED(m_status)) return fmt::format("signal {}", WTERMSIG(m_status));
  return fmt::format("exit {}", WEXITSTATUS(m_status));
}

void AgentProcess::stop() {
  if (ended()) return;
  kill(-m_pid, SIGTERM);
  const double until = monotonic_seconds() + 5;
  while (!ended() && monotonic_seconds() < until) usleep(10000);
  if (m_reaped) return;
  kill(-m_pid, SIGKILL);
  reap(true);
}

}  // namespace forge
