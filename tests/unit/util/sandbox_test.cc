// SPDX-License-Identifier: Apache-2.0
// Each test forks: what is installed stays for good.
#include "util/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "util/fs.h"

namespace forge {
namespace {

// What `body` returned in a child, or 1000 + the signal that ended it.
int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) syscall(SYS_exit_group, body());  // by number: a sanitizer's _exit makes other calls first
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Sandbox, SaysWhatIsThere) {
  const SandboxSupport s = probe_sandbox();
  const auto lines = describe(s);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].starts_with("missing"), s.landlock_abi == 0) << lines[0];
  EXPECT_EQ(lines[1].starts_with("missing"), !s.seccomp) << lines[1];
  EXPECT_TRUE(describe({})[0].starts_with("missing: landlock"));
  EXPECT_TRUE(describe({})[1].starts_with("missing: seccomp"));
}

TEST(Sandbox, LandlockNarrowsTheView) {
  if (probe_sandbox().landlock_abi == 0) GTEST_SKIP() << "no Landlock in this kernel";
  const auto folder = *TempDir::make();
  const std::string inside = folder.path() / "inside", file = inside + "/f", outside = folder.path() / "outside", fresh = inside + "/g";
  ASSERT_TRUE(make_dirs(inside));
  ASSERT_TRUE(write_file_atomic(file, "x"));
  ASSERT_TRUE(write_file_atomic(outside, "x"));
  const auto opens = [](const std::string& p, int flags) { return open(p.c_str(), flags, 0600) >= 0; };
  EXPECT_EQ(0, in_child([&] {
              const PathRule rules[] = {{inside.c_str(), PathAccess::read}, {"/no/such/path", PathAccess::read}};
              if (set_no_new_privs() || landlock_allow(rules)) return 1;
              if (!opens(file, O_RDONLY)) return 2;
              if (opens(file, O_WRONLY)) return 3;
              if (opens(outside, O_RDONLY)) return 4;
              if (opens(fresh, O_WRONLY | O_CREAT)) return 5;
              return 0;
            }));
  EXPECT_EQ(0, in_child([&] {
              const PathRule rules[] = {{inside.c_str(), PathAccess::read_write}, {outside.c_str(), PathAccess::read}};
              if (set_no_new_privs() || landlock_allow(rules)) return 1;
              if (!opens(fresh, O_WRONLY | O_CREAT)) return 2;
              if (!opens(outside, O_RDONLY)) return 3;  // a rule on one file
              if (opens(outside, O_WRONLY)) return 4;
              if (unlink(fresh.c_str()) != 0) return 5;
              return 0;
            }));
}

TEST(Sandbox, DeniedCallsFailOrKill) {
  EXPECT_EQ(0, in_child([] {
              if (set_no_new_privs() || seccomp_deny(harmful_syscalls(), EPERM)) return 1;
              if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM) return 2;
              if (unshare(CLONE_NEWUSER) == 0 || errno != EPERM) return 3;
              const pid_t pid = fork();  // an ordinary fork is no namespace
              if (pid < 0) return 4;
              if (pid == 0) _exit(0);
              int status = 0;
              return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 5;
            }));
  EXPECT_EQ(1000 + SIGSYS, in_child([] {
              const SyscallRule rules[] = {SYS_getppid};
              if (set_no_new_privs() || seccomp_deny(rules, 0)) return 1;
              return syscall(SYS_getppid) > 0 ? 2 : 3;
            }));
}

// By number throughout: a sanitizer's own mmap does more than the call.
long map_page(int protection) { return syscall(SYS_mmap, nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

TEST(Sandbox, AllowListWithAnArgument) {
  EXPECT_EQ(0, in_child([] {
              const SyscallRule rules[] = {SYS_exit_group, SYS_munmap, {SYS_mmap, 2, PROT_EXEC}};
              if (set_no_new_privs() || seccomp_allow_only(rules, EACCES)) return 1;
              const long data = map_page(PROT_READ | PROT_WRITE);
              if (data == -1) return 2;
              if (map_page(PROT_READ | PROT_EXEC) != -1 || errno != EACCES) return 3;
              if (syscall(SYS_munmap, data, 4096) != 0) return 4;
              return syscall(SYS_getppid) == -1 && errno == EACCES ? 0 : 5;
            }));
}

TEST(Sandbox, OtherTablesAreKilled) {
  EXPECT_EQ(1000 + SIGSYS, in_child([] {
              if (set_no_new_privs() || seccomp_deny(harmful_syscalls(), EPERM)) return 1;
              syscall(0x40000000 | SYS_getpid);  // the x32 number of a harmless call
              return 2;
            }));
}

TEST(Sandbox, TooManyRulesIsAnError) {
  const std::vector<SyscallRule> rules(500, SYS_getpid);
  EXPECT_EQ(seccomp_deny(rules, EPERM), E2BIG);
  EXPECT_TRUE(seccomp_deny_program(rules, EPERM).empty());
  EXPECT_EQ(seccomp_deny_program(harmful_syscalls(), EPERM).size() % 8, 0u);
}

TEST(Sandbox, LimitNeverRaises) {
  EXPECT_EQ(0, in_child([] {
              if (limit(RLIMIT_NOFILE, 64)) return 1;
              if (limit(RLIMIT_NOFILE, 128)) return 2;  // silently kept at 64
              rlimit r{};
              getrlimit(RLIMIT_NOFILE, &r);
              return r.rlim_cur == 64 && r.rlim_max == 64 ? 0 : 3;
            }));
}

}  // namespace
}  // namespace forge
