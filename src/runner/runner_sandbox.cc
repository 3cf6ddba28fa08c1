// SPDX-License-Identifier: Apache-2.0
#include "runner/runner_sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "device/cpu.h"
#include "util/sandbox.h"

namespace forge {
namespace {

// seccomp's constants are macros over unsigned shorts; these two make a filter readable.
sock_filter load(std::size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
sock_filter jump(int test, std::uint32_t value, int if_true, int if_false) {
  return BPF_JUMP(static_cast<unsigned short>(BPF_JMP | test | BPF_K), value, static_cast<unsigned char>(if_true),
                  static_cast<unsigned char>(if_false));
}
sock_filter give(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
std::size_t low_half_of_argument(int i) { return offsetof(seccomp_data, args) + static_cast<std::size_t>(i) * 8; }

void refuse_other_tables(std::vector<sock_filter>& f) {
  f.push_back(load(offsetof(seccomp_data, arch)));
  f.push_back(jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0));
  f.push_back(give(SECCOMP_RET_KILL_PROCESS));
  f.push_back(load(offsetof(seccomp_data, nr)));
  f.push_back(jump(BPF_JGE, 0x40000000, 0, 1));  // the x32 table
  f.push_back(give(SECCOMP_RET_KILL_PROCESS));
}

// Both kinds of runner keep the kernel's default for speculation, so that neither pays for a mitigation that the other lacks.
int install(std::vector<sock_filter>& f) {
  const sock_fprog program{static_cast<unsigned short>(f.size()), f.data()};
  const unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  const long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (r < 0) return errno;
  return r > 0 ? EAGAIN : 0;  // r > 0: a thread that could not be brought along
}

}  // namespace

int seal_image_runner() {
  static_assert((k_image_region_begin & 0xffffffff) == 0 && (k_image_region_end & 0xffffffff) == 0);
  std::vector<sock_filter> f;
  refuse_other_tables(f);
  f.push_back(load(offsetof(seccomp_data, instruction_pointer) + 4));
  f.push_back(jump(BPF_JGE, static_cast<std::uint32_t>(k_image_region_begin >> 32), 0, 2));
  f.push_back(jump(BPF_JGE, static_cast<std::uint32_t>(k_image_region_end >> 32), 1, 0));
  f.push_back(give(SECCOMP_RET_TRAP));
  f.push_back(load(offsetof(seccomp_data, nr)));
  f.push_back(jump(BPF_JEQ, SYS_mmap, 0, 3));
  f.push_back(load(low_half_of_argument(2)));
  f.push_back(jump(BPF_JSET, PROT_EXEC, 0, 1));
  f.push_back(give(SECCOMP_RET_TRAP));
  f.push_back(load(offsetof(seccomp_data, nr)));
  // restart_syscall: a futex or recvmsg that a stop interrupted. close: descriptors of buffers once they are mapped.
  for (const long nr : {SYS_mmap,
                        SYS_recvmsg,
                        SYS_sendmsg,
                        SYS_futex,
                        SYS_clock_gettime,
                        SYS_munmap,
                        SYS_close,
                        SYS_brk,
                        SYS_exit_group,
                        SYS_exit,
                        SYS_rt_sigreturn,
                        SYS_restart_syscall
#ifdef __SANITIZE_ADDRESS__  // its run time probes memory through a pipe, and more
                        ,
                        SYS_pipe2,
                        SYS_read,
                        SYS_mprotect,
                        SYS_madvise,
                        SYS_sched_yield,
                        SYS_write,
                        SYS_getpid,
                        SYS_gettid,
                        SYS_sigaltstack,
                        SYS_rt_sigprocmask
#endif
       }) {
    f.push_back(jump(BPF_JEQ, static_cast<std::uint32_t>(nr), 0, 1));
    f.push_back(give(SECCOMP_RET_ALLOW));
  }
  f.push_back(give(SECCOMP_RET_TRAP));
  return install(f);
}

int seal_expert_runner() {
  std::vector<sock_filter> f;
  refuse_other_tables(f);
  // glibc falls back from clone3, whose flags a filter cannot see, to clone, whose flags it can.
  f.push_back(jump(BPF_JEQ, SYS_clone3, 0, 1));
  f.push_back(give(SECCOMP_RET_ERRNO | ENOSYS));
  f.push_back(jump(BPF_JEQ, SYS_clone, 0, 4));
  f.push_back(load(low_half_of_argument(0)));
  f.push_back(jump(BPF_JSET, CLONE_THREAD, 1, 0));
  f.push_back(give(SECCOMP_RET_TRAP));
  f.push_back(load(offsetof(seccomp_data, nr)));
  for (const long nr : {SYS_fork, SYS_vfork, SYS_execve, SYS_execveat, SYS_kill, SYS_setsid, SYS_setpgid}) {
    f.push_back(jump(BPF_JEQ, static_cast<std::uint32_t>(nr), 0, 1));
    f.push_back(give(SECCOMP_RET_TRAP));
  }
  for (const SyscallRule& rule : harmful_syscalls()) {
    if (rule.number == SYS_sendmsg || rule.number == SYS_recvmsg) continue;  // the channel; no other socket can be made
    if (rule.arg >= 0) {
      f.push_back(jump(BPF_JEQ, static_cast<std::uint32_t>(rule.number), 0, 4));
      f.push_back(load(low_half_of_argument(rule.arg)));
      f.push_back(jump(BPF_JSET, rule.mask, 0, 1));
      f.push_back(give(SECCOMP_RET_TRAP));
      f.push_back(load(offsetof(seccomp_data, nr)));
    } else {
      f.push_back(jump(BPF_JEQ, static_cast<std::uint32_t>(rule.number), 0, 1));
      f.push_back(give(SECCOMP_RET_TRAP));
    }
  }
  f.push_back(give(SECCOMP_RET_ALLOW));
  return install(f);
}

}  // namespace forge
