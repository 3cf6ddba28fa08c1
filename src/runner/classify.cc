// SPDX-License-Identifier: Apache-2.0
#include "runner/classify.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cstring>

namespace forge {
namespace {

const char* verb(int wrote) { return wrote == 1 ? "wrote" : wrote == 0 ? "read" : "reached"; }

// Empty when the address is near none of them.
std::string describe_buffer_fault(std::uint64_t address, int wrote, const std::vector<MappedBuffer>& buffers) {
  for (const auto& m : buffers) {
    const SharedBuffer& b = *m.buffer;
    const auto map = reinterpret_cast<std::uint64_t>(b.mapping()), data = reinterpret_cast<std::uint64_t>(b.data());
    const std::uint64_t end = data + b.bytes(), map_end = map + b.file_bytes();
    if (address + SharedBuffer::guard_bytes() < map || address >= map_end + SharedBuffer::guard_bytes()) continue;
    if (address < map) return fmt::format("{} {} bytes before {} ({} bytes)", verb(wrote), data - address, m.role, b.bytes());
    if (address >= map_end) return fmt::format("{} {} bytes past the end of {} ({} bytes)", verb(wrote), address - end, m.role, b.bytes());
    if (wrote == 1 && !m.writable)
      return fmt::format("wrote to {} at byte {}, which is read-only", m.role, static_cast<std::int64_t>(address - data));
    return {};
  }
  return {};
}

std::string code_place(std::uint64_t instruction) {
  if (instruction >= k_image_region_begin && instruction < k_image_region_end)
    return fmt::format("kernel code at image address {:#x}", instruction - k_image_region_begin);
  return fmt::format("code outside the image at {:#x}", instruction);
}

}  // namespace

std::string system_call_name(int number) {
  struct Known {
    int number;
    const char* name;
  };
  static const Known known[] = {
      {SYS_read, "read"},
      {SYS_write, "write"},
      {SYS_open, "open"},
      {SYS_openat, "openat"},
      {SYS_mmap, "mmap"},
      {SYS_mprotect, "mprotect"},
      {SYS_brk, "brk"},
      {SYS_ioctl, "ioctl"},
      {SYS_getpid, "getpid"},
      {SYS_socket, "socket"},
      {SYS_connect, "connect"},
      {SYS_clone, "clone"},
      {SYS_clone3, "clone3"},
      {SYS_fork, "fork"},
      {SYS_vfork, "vfork"},
      {SYS_execve, "execve"},
      {SYS_execveat, "execveat"},
      {SYS_exit, "exit"},
      {SYS_exit_group, "exit_group"},
      {SYS_kill, "kill"},
      {SYS_tgkill, "tgkill"},
      {SYS_ptrace, "ptrace"},
      {SYS_prctl, "prctl"},
      {SYS_arch_prctl, "arch_prctl"},
      {SYS_seccomp, "seccomp"},
      {SYS_rt_sigaction, "rt_sigaction"},
      {SYS_nanosleep, "nanosleep"},
      {SYS_clock_nanosleep, "clock_nanosleep"},
      {SYS_clock_gettime, "clock_gettime"},
      {SYS_futex, "futex"},
      {SYS_sendmsg, "sendmsg"},
      {SYS_recvmsg, "recvmsg"},
      {SYS_process_vm_readv, "process_vm_readv"},
      {SYS_process_vm_writev, "process_vm_writev"},
      {SYS_bpf, "bpf"},
      {SYS_sched_setaffinity, "sched_setaffinity"},
      {SYS_memfd_create, "memfd_create"},
      {SYS_io_uring_setup, "io_uring_setup"},
      {SYS_munmap, "munmap"},
      {SYS_madvise, "madvise"},
      {SYS_mremap, "mremap"},
  };
  for (const auto& k : known)
    if (k.number == number) return fmt::format("{} ({})", k.name, number);
  return fmt::format("number {}", number);
}

RunnerFailure classify_fault(const wire::Fault& f, const std::vector<MappedBuffer>& buffers) {
  const std::string place = code_place(f.instruction);
  if (f.signal == SIGSYS) return {Reason::forbidden_call, fmt::format("system call {} from {}", system_call_name(f.system_call), place)};
  if (f.signal == SIGSEGV || f.signal == SIGBUS) {
    if (const auto text = describe_buffer_fault(f.address, f.wrote, buffers); !text.empty())
      return {Reason::out_of_bounds, fmt::format("{}, from {}", text, place)};
    const std::string guard = std::string(f.place, strnlen(f.place, sizeof f.place));
    if (guard.rfind("scratch", 0) == 0)
      return {Reason::out_of_bounds, fmt::format("{} outside the {}, from {}", verb(f.wrote), guard, place)};
    if (guard.rfind("stack", 0) == 0) return {Reason::crashed, fmt::format("overflowed the {} (1 MiB), from {}", guard, place)};
    if (f.code == SI_KERNEL)
      return {Reason::crashed,
              fmt::format("general protection fault: a misaligned vector access, or an address that cannot exist, from {}", place)};
    return {Reason::crashed, fmt::format("segmentation fault: {} address {:#x}, from {}", verb(f.wrote), f.address, place)};
  }
  const char* what = f.signal == SIGILL    ? "illegal instruction"
                     : f.signal == SIGFPE  ? "arithmetic trap (division by zero)"
                     : f.signal == SIGTRAP ? "breakpoint trap"
                                           : "fatal signal";
  return {Reason::crashed, fmt::format("{} from {}", what, place)};
}

RunnerFailure classify_ending(const Ending& e, const std::string& during) {
  if (!e.known) return {Reason::runner_broke, "the runner's end is unknown during " + during};
  switch (e.signal) {
    case 0:
      break;
    case SIGSYS:
      return {Reason::forbidden_call, "killed for a forbidden system call during " + during};
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGTRAP:
    case SIGABRT:
      return {Reason::crashed, fmt::format("died of signal {} ({}) during {}", e.signal, strsignal(e.signal), during)};
    default:
      return {Reason::runner_broke, fmt::format("killed by signal {} ({}) during {}", e.signal, strsignal(e.signal), during),
              e.signal == SIGKILL && !e.ours};
  }
  if (e.exit_code == 127) return {Reason::runner_broke, "the runner program could not be executed"};
  return {Reason::runner_broke, fmt::format("the runner left with exit code {} during {}, without an answer", e.exit_code, during)};
}

}  // namespace forge
