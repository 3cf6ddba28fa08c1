// SPDX-License-Identifier: Apache-2.0
// What can be closed around a GPU's runner before the driver opens its devices. The driver's own system calls are not documented,
// so this is a deny list; refused calls fail (EPERM) instead of killing, because the driver and the libraries try what they can live
// without (a socket to the multi-process service, for one).
#include <errno.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "runner/cuda_serve.h"
#include "util/sandbox.h"

namespace forge {
namespace {

int read_only_files(const std::vector<std::string>& writable) {
  std::vector<PathRule> rules = {{"/", PathAccess::read_execute}};
  for (const auto& path : writable) rules.push_back({path.c_str(), PathAccess::read_write});
  return landlock_allow(rules);
}

std::vector<std::string> device_files() {
  // The driver names its threads in /proc/self/task/*/comm, and gives up where it may not.
  std::vector<std::string> files = {"/dev/null", "/proc/self/task"};
  for (const char* pattern : {"/dev/nvidia*", "/dev/nvidia-caps/*"}) {
    glob_t found{};
    if (glob(pattern, 0, nullptr, &found) == 0)
      for (std::size_t i = 0; i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
    globfree(&found);
  }
  return files;
}

// Everything harmful but the socket calls, which the driver needs among themselves (measured: with all of them refused cuInit gives
// CUDA_ERROR_OPERATING_SYSTEM). The network stays shut: no family with bit 2 (AF_INET 2, AF_INET6 10).
std::vector<SyscallRule> deny_list() {
  std::vector<SyscallRule> rules = {{SYS_socket, 0, 2}};
  for (const SyscallRule& rule : harmful_syscalls()) switch (rule.number) {
      case SYS_socket:
      case SYS_socketpair:
      case SYS_connect:
      case SYS_bind:
      case SYS_listen:
      case SYS_accept:
      case SYS_accept4:
      case SYS_getsockname:
      case SYS_getpeername:
      case SYS_setsockopt:
      case SYS_getsockopt:
      case SYS_shutdown:
      case SYS_sendto:
      case SYS_sendmsg:
      case SYS_sendmmsg:
      case SYS_recvfrom:
      case SYS_recvmsg:
      case SYS_recvmmsg:
        break;
      default:
        rules.push_back(rule);
    }
  return rules;
}

}  // namespace

std::uint32_t seal_cuda_runner(const std::string& scratch) {
  std::uint32_t features = wire::feature_no_new_privs;
  std::vector<std::string> writable = device_files();
  if (!scratch.empty()) writable.push_back(scratch);
  if (read_only_files(writable) == 0) features |= wire::feature_read_only_files;
  std::vector<SyscallRule> rules = deny_list();
  for (const long nr : {SYS_execve, SYS_execveat, SYS_fork, SYS_vfork}) rules.push_back(nr);
  if (seccomp_deny(rules, EPERM, true) == 0) features |= wire::feature_seccomp | wire::feature_all_threads;
  return features;
}

int become_python(char** argv) {
  std::vector<std::string> writable = device_files();
  writable.push_back("/dev/shm");
  for (const char* name : {"TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"})
    if (const char* folder = std::getenv(name)) writable.push_back(folder);
  read_only_files(writable);
  const std::vector<SyscallRule> rules = deny_list();  // compilers of kernels start programs and talk to them over sockets of their own
  if (seccomp_deny(rules, EPERM, true) != 0) return 126;
  execv(argv[0], argv);
  return 127;
}

}  // namespace forge
