// SPDX-License-Identifier: Apache-2.0
#include "util/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace forge {

namespace {

// Landlock's numbers, ours: the headers of a distribution are often older than its kernel. Source: the kernel's UAPI.
constexpr long kLandlockCreate = 444, kLandlockAdd = 445, kLandlockRestrict = 446;
constexpr std::uint64_t kExecute = 1u << 0, kWriteFile = 1u << 1, kReadFile = 1u << 2, kReadDir = 1u << 3;
constexpr std::uint64_t kAllAbi1 = (1u << 13) - 1;  // up to MAKE_SYM
constexpr std::uint64_t kRefer = 1u << 13, kTruncate = 1u << 14, kIoctlDev = 1u << 15;
constexpr std::uint64_t kNetBindConnect = 3;     // ABI 4
constexpr std::uint64_t kScopeSocketSignal = 3;  // ABI 6

struct LandlockRuleset {
  std::uint64_t fs = 0, net = 0, scoped = 0;
};
struct [[gnu::packed]] LandlockPath {
  std::uint64_t access = 0;
  std::int32_t fd = -1;
};

int landlock_version() {
  long abi = syscall(kLandlockCreate, nullptr, 0, 1u);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

std::uint64_t handled_fs(int abi) {
  std::uint64_t bits = kAllAbi1;
  if (abi >= 2) bits |= kRefer;
  if (abi >= 3) bits |= kTruncate;
  if (abi >= 5) bits |= kIoctlDev;
  return bits;
}

std::uint64_t access_bits(PathAccess access, std::uint64_t handled, bool folder) {
  std::uint64_t bits = kReadFile | kReadDir;
  if (access == PathAccess::read_execute) bits |= kExecute;
  if (access == PathAccess::read_write) bits = handled & ~kExecute;
  // Rights that only make sense for folders are refused on a file.
  if (!folder) bits &= kExecute | kReadFile | kWriteFile | kTruncate | kIoctlDev;
  return bits & handled;
}

constexpr std::size_t kMaxRules = 400;
struct Program {
  sock_filter code[kMaxRules * 5 + 8];
  unsigned short size = 0;
};

void emit(Program& p, unsigned short code, std::uint32_t k, std::uint8_t jt = 0, std::uint8_t jf = 0) {
  p.code[p.size++] = sock_filter{code, jt, jf, k};
}

// Each rule is its own compare-and-return, so no jump is ever longer than its 8 bits can hold.
bool assemble(Program& p, std::span<const SyscallRule> rules, bool rules_allow, std::uint32_t refuse) {
  if (rules.size() > kMaxRules) return false;
  const std::uint32_t on_match = rules_allow ? SECCOMP_RET_ALLOW : refuse;
  const std::uint32_t otherwise = rules_allow ? refuse : SECCOMP_RET_ALLOW;
  emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  emit(p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
  emit(p, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  emit(p, BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1);  // the x32 table
  emit(p, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  for (const SyscallRule& rule : rules) {
    const std::uint32_t nr = static_cast<std::uint32_t>(rule.number);
    if (rule.arg < 0) {
      emit(p, BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
      emit(p, BPF_RET | BPF_K, on_match);
      continue;
    }
    const std::uint32_t low = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * static_cast<std::size_t>(rule.arg));
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 4);
    emit(p, BPF_LD | BPF_W | BPF_ABS, low);
    // A set bit: the rule of a deny list applies, that of an allow list does not.
    emit(p, BPF_JMP | BPF_JSET | BPF_K, rule.mask, rules_allow ? 1 : 0, rules_allow ? 0 : 1);
    emit(p, BPF_RET | BPF_K, on_match);
    emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  }
  emit(p, BPF_RET | BPF_K, otherwise);
  return true;
}

std::uint32_t refusal(int error) {
  return error ? SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA) : SECCOMP_RET_KILL_PROCESS;
}

int install(std::span<const SyscallRule> rules, bool rules_allow, int error, bool all_threads) {
  Program p;
  if (!assemble(p, rules, rules_allow, refusal(error))) return E2BIG;
  sock_fprog program{p.size, p.code};
  long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0ul, &program);
  if (r < 0) return errno;
  return r == 0 ? 0 : EBUSY;  // TSYNC answers the thread that could not follow
}

// Numbers that Debian 12's headers may not know.
constexpr long kOpenTree = 428, kMoveMount = 429, kFsopen = 430, kFsconfig = 431, kFsmount = 432, kFspick = 433, kPidfdOpen = 434,
               kPidfdGetfd = 438, kProcessMadvise = 440, kMountSetattr = 442, kProcessMrelease = 448;

constexpr std::uint32_t kNewNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr SyscallRule kHarmful[] = {
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_recvmmsg,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    kPidfdOpen,
    kPidfdGetfd,
    SYS_pidfd_send_signal,
    kProcessMadvise,
    kProcessMrelease,
    SYS_kcmp,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    kOpenTree,
    kMoveMount,
    kFsopen,
    kFsconfig,
    kFsmount,
    kFspick,
    kMountSetattr,
    SYS_unshare,
    SYS_setns,
    {SYS_clone, 0, kNewNamespaces},
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_fanotify_init,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_acct,
    SYS_quotactl,
    SYS_syslog,
    SYS_personality,
    SYS_vhangup,
    SYS_lookup_dcookie,
    SYS_shmget,
    SYS_shmat,
    SYS_msgget,
    SYS_semget,
    SYS_mq_open,
    SYS_mknod,
    SYS_mknodat,
};

}  // namespace

SandboxSupport probe_sandbox() {
  SandboxSupport s;
  s.landlock_abi = landlock_version();
  const std::uint32_t action = SECCOMP_RET_KILL_PROCESS;
  s.seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0ul, &action) == 0;
  return s;
}

std::vector<std::string> describe(const SandboxSupport& s) {
  std::vector<std::string> out;
  if (s.landlock_abi == 0) {
    out.push_back("missing: landlock (this kernel has none, or it is off: boot with lsm=landlock,...)");
  } else {
    std::string gap = s.landlock_abi < 4 ? " (no TCP rule before ABI 4; seccomp refuses sockets)" : "";
    out.push_back(fmt::format("landlock ABI {}{}", s.landlock_abi, gap));
  }
  out.push_back(s.seccomp ? "seccomp" : "missing: seccomp (this kernel cannot filter system calls)");
  return out;
}

int set_no_new_privs() { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno; }

int landlock_allow(std::span<const PathRule> rules, bool network) {
  const int abi = landlock_version();
  if (abi == 0) return ENOSYS;
  LandlockRuleset set{handled_fs(abi), abi >= 4 && !network ? kNetBindConnect : 0, abi >= 6 ? kScopeSocketSignal : 0};
  const std::size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;  // an older kernel refuses a longer struct only if its tail is set
  const int ruleset = static_cast<int>(syscall(kLandlockCreate, &set, size, 0u));
  if (ruleset < 0) return errno;
  int error = 0;
  for (const PathRule& rule : rules) {
    const int fd = open(rule.path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
      if (errno == ENOENT || errno == ENOTDIR) continue;
      error = errno;
      break;
    }
    struct stat st {};
    if (fstat(fd, &st) != 0) error = errno;
    LandlockPath path{access_bits(rule.access, set.fs, S_ISDIR(st.st_mode)), fd};
    if (error == 0 && syscall(kLandlockAdd, ruleset, 1, &path, 0u) != 0) error = errno;
    close(fd);
    if (error) break;
  }
  if (error == 0 && syscall(kLandlockRestrict, ruleset, 0u) != 0) error = errno;
  close(ruleset);
  return error;
}

int seccomp_allow_only(std::span<const SyscallRule> rules, int error, bool all_threads) { return install(rules, true, error, all_threads); }
int seccomp_deny(std::span<const SyscallRule> rules, int error, bool all_threads) { return install(rules, false, error, all_threads); }

std::string seccomp_deny_program(std::span<const SyscallRule> rules, int error) {
  Program p;
  if (!assemble(p, rules, false, refusal(error))) return {};
  return std::string(reinterpret_cast<const char*>(p.code), p.size * sizeof(sock_filter));
}

std::span<const SyscallRule> harmful_syscalls() { return kHarmful; }

int limit(int resource, std::uint64_t value) {
  rlimit now{};
  const auto which = static_cast<__rlimit_resource>(resource);
  if (getrlimit(which, &now) != 0) return errno;
  const rlim_t v = value < now.rlim_max ? static_cast<rlim_t>(value) : now.rlim_max;
  const rlimit want{v, v};
  return setrlimit(which, &want) == 0 ? 0 : errno;
}

}  // namespace forge
