// SPDX-License-Identifier: Apache-2.0
// The kernel's own sandbox calls: Landlock, seccomp, rlimits, no_new_privs. Each function restricts the calling process
// (and its children) for good and returns 0 or an errno. None allocates or takes a lock: all may run between fork and exec.
// What a kernel lacks is found beforehand by probe_sandbox(), in the parent, so that it can be said and not skipped.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace forge {

struct SandboxSupport {
  int landlock_abi = 0;  // 0: this kernel has no Landlock, or it is off
  bool seccomp = false;  // filters can be installed
};
SandboxSupport probe_sandbox();
// One phrase a feature for records: "landlock ABI 7", or "missing: landlock (...)".
std::vector<std::string> describe(const SandboxSupport&);

// Must come first: an unprivileged process may install neither of the two below without it.
int set_no_new_privs();

// Landlock: after this the process can open nothing but what stands beneath the paths (a folder or one file), and, where the
// ABI knows how, neither binds nor connects TCP, nor signals or reaches abstract sockets outside. A path that does not exist
// is skipped, so one list serves every distribution. ENOSYS or EOPNOTSUPP: no Landlock here. Open descriptors stay usable.
enum class PathAccess { read, read_execute, read_write };  // read_write: also make and remove files beneath
struct PathRule {
  const char* path = nullptr;
  PathAccess access = PathAccess::read;
};
int landlock_allow(std::span<const PathRule>, bool network = false);  // network: TCP stays as it is

// One system call. With `arg` >= 0 only the calls that have a bit of `mask` set in that argument (deny), or none of them
// (allow): {SYS_mmap, 2, PROT_EXEC} in an allow list admits every mmap but an executable one. Low 32 bits only.
struct SyscallRule {
  constexpr SyscallRule(long nr) : number(static_cast<int>(nr)) {}  // NOLINT: a plain number is a rule
  constexpr SyscallRule(long nr, int argument, std::uint32_t bits) : number(static_cast<int>(nr)), arg(argument), mask(bits) {}
  int number;
  int arg = -1;
  std::uint32_t mask = 0;
};
// Seccomp filters. `error` is what a refused call returns (an errno); 0: the process is killed with SIGSYS. Calls by the
// 32-bit or x32 tables are always killed. At most 400 rules. all_threads: also threads that run already (else this one and
// those that it starts).
int seccomp_allow_only(std::span<const SyscallRule>, int error, bool all_threads = false);
int seccomp_deny(std::span<const SyscallRule>, int error, bool all_threads = false);
// The same filter as bytes (struct sock_filter[]) for another program to install: bwrap --seccomp FD. Allocates.
std::string seccomp_deny_program(std::span<const SyscallRule>, int error);
// What no compute process needs: sockets, ptrace, other processes' memory, mounts, namespaces, modules, keys, clocks, bpf, ...
std::span<const SyscallRule> harmful_syscalls();

// setrlimit of soft and hard value, never above the present hard value.
int limit(int resource, std::uint64_t value);

}  // namespace forge
