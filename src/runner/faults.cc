// SPDX-License-Identifier: Apache-2.0
// Last words of a runner. Runs in a signal handler, perhaps after foreign code has broken what it could: it only fills a
// struct, sends it and ends. What it says is a hint for the record; that the process died is what the judge acts on.
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "runner/serve.h"

namespace forge {
namespace {

int g_channel = -1;
const WorkerPool* g_pool = nullptr;

void last_words(int signal, siginfo_t* info, void* context) {
  wire::Fault f;
  f.signal = signal;
  f.code = info->si_code;
  const auto* uc = static_cast<const ucontext_t*>(context);
  f.instruction = static_cast<std::uint64_t>(uc->uc_mcontext.gregs[REG_RIP]);
  if (signal == SIGSYS) {
    f.system_call = info->si_syscall;
  } else {
    f.address = reinterpret_cast<std::uint64_t>(info->si_addr);
    constexpr int k_page_fault = 14;  // trap number; bit 1 of its error code is "a store"
    if (uc->uc_mcontext.gregs[REG_TRAPNO] == k_page_fault) f.wrote = static_cast<int>(uc->uc_mcontext.gregs[REG_ERR] >> 1 & 1);
    if (g_pool)
      if (const char* place = g_pool->guard_name(info->si_addr)) copy_text(f.place, place);
  }
  send_message(g_channel, f, 0);
  syscall(SYS_exit_group, 128 + signal);
}

}  // namespace

void install_fault_handlers(int channel, const WorkerPool* pool) {
  g_channel = channel;
  g_pool = pool;
  struct sigaction action {};
  action.sa_sigaction = last_words;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS, SIGTRAP}) sigaction(signal, &action, nullptr);
}

}  // namespace forge
