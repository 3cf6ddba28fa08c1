// SPDX-License-Identifier: Apache-2.0
// The worker pool. One job at a time: the caller publishes it by raising a generation counter, every worker (the caller is
// worker 0) does its part, and the caller waits until all are done. Waiters spin for at most 50 us, then sleep on a futex.
// Everything is allocated before a sandbox closes; after that only futex, mmap and munmap are called.
#include <fmt/format.h>
#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "device/cpu.h"
#include "device/pages.h"
#include "device/trampoline.h"

namespace forge {
namespace {

constexpr std::size_t k_stack = std::size_t(1) << 20;
constexpr std::size_t k_stack_guard = std::size_t(1) << 20;    // a frame of a megabyte must not jump over it
constexpr std::size_t k_signal_stack = std::size_t(64) << 10;  // a frame with AVX-512 state takes 3 KiB, with AMX 11
constexpr std::size_t k_scratch_guard = std::size_t(16) << 20;
constexpr std::size_t k_kept_warm = 16 << 10;  // top of each stack: scrubbed through the cache, so that it is not cold
constexpr std::int64_t k_spin_ns = 50'000;

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
}

// Waits until word != value: a short spin, then the futex. `sleepers` tells the other side whether a wake is needed.
void wait_until_changed(std::atomic<std::uint32_t>& word, std::uint32_t value, std::atomic<std::uint32_t>& sleepers) {
  const std::int64_t until = now_ns() + k_spin_ns;
  do {
    for (int i = 0; i < 64; ++i) {
      if (word.load(std::memory_order_acquire) != value) return;
      _mm_pause();
    }
  } while (now_ns() < until);
  sleepers.fetch_add(1);
  while (word.load() == value) futex_wait(word, value);
  sleepers.fetch_sub(1);
}

// Memory between two inaccessible ranges.
struct Guarded {
  std::byte* whole = nullptr;
  std::byte* begin = nullptr;
  std::size_t bytes = 0, guard = 0;

  bool make(std::size_t n, std::size_t guard_bytes) {
    release();
    guard = guard_bytes;
    bytes = align_up(n, k_page);
    void* p = mmap(nullptr, bytes + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return bytes = 0, false;
    whole = static_cast<std::byte*>(p);
    begin = whole + guard;
    if (bytes == 0) return true;
    return mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0) != MAP_FAILED;
  }
  void release() {
    if (whole) munmap(whole, bytes + 2 * guard);
    whole = begin = nullptr;
    bytes = 0;
  }
  bool in_guard(const void* address) const {
    const auto* p = static_cast<const std::byte*>(address);
    return whole && p >= whole && p < whole + bytes + 2 * guard && !(p >= begin && p < begin + bytes);
  }
};

// Fills memory around the caches: the scrub must not push a kernel's operands or code out of them.
void fill_streaming(std::byte* p, std::size_t bytes, std::uint64_t pattern) {
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) _mm_stream_si64(reinterpret_cast<long long*>(p + i), static_cast<long long>(pattern));
  _mm_sfence();
}
void fill(std::byte* p, std::size_t bytes, std::uint64_t pattern) {
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) std::memcpy(p + i, &pattern, 8);
}

struct Worker {
  pthread_t thread{};
  bool started = false;
  Guarded stack, scratch, signal_stack;
  char stack_name[32] = {}, scratch_name[32] = {};
};

enum class WorkerJob : std::uint32_t { launch, arm, scrub, quit };

class CpuWorkerPool final : public WorkerPool {
 public:
  Status start(const std::vector<int>& cores) {
    m_workers = std::vector<Worker>(cores.size());
    m_avx512 = __builtin_cpu_supports("avx512bw") != 0;
    m_avx = __builtin_cpu_supports("avx") != 0;
    m_fsgsbase = (getauxval(AT_HWCAP2) & 2) != 0;
    for (std::size_t i = 0; i < m_workers.size(); ++i) {
      Worker& w = m_workers[i];
      fmt::format_to_n(w.stack_name, sizeof w.stack_name - 1, "stack of worker {}", i);
      fmt::format_to_n(w.scratch_name, sizeof w.scratch_name - 1, "scratch of worker {}", i);
      if (!w.stack.make(k_stack, k_stack_guard) || !w.signal_stack.make(k_signal_stack, k_page))
        return fail_errno("memory for a worker's stack", "", errno);
    }
    FORGE_TRY(pin(pthread_self(), cores[0]));
    use_signal_stack(m_workers[0]);
    m_starts.resize(m_workers.size());
    for (std::size_t i = 1; i < m_workers.size(); ++i) {
      m_starts[i] = {this, static_cast<int>(i)};
      const int error = pthread_create(&m_workers[i].thread, nullptr, &CpuWorkerPool::thread_main, &m_starts[i]);
      if (error != 0) return fail_errno("starting a worker", "", error);
      m_workers[i].started = true;
      FORGE_TRY(pin(m_workers[i].thread, cores[i]));
    }
    arm();  // every thread has done its start-up calls: a sandbox may close now
    return {};
  }

  ~CpuWorkerPool() override {
    publish(WorkerJob::quit);
    for (auto& w : m_workers) {
      if (w.started) pthread_join(w.thread, nullptr);
      w.stack.release();
      w.scratch.release();
      if (&w == &m_workers[0]) {
        const stack_t off{nullptr, SS_DISABLE, 0};
        sigaltstack(&off, nullptr);
      }
      w.signal_stack.release();
    }
  }

  void arm() override { run(WorkerJob::arm); }

  void launch(EntryPoint entry, const void* args, std::int64_t grid) override {
    m_entry = entry;
    m_args = args;
    m_grid = grid;
    m_next.store(0, std::memory_order_relaxed);
    run(WorkerJob::launch);
  }

  Status reserve_scratch(std::size_t bytes) override {
    for (auto& w : m_workers) {
      if (bytes == 0) {
        w.scratch.release();
      } else if (w.scratch.bytes != align_up(bytes, k_page)) {
        if (!w.scratch.make(bytes, k_scratch_guard)) return fail_errno(fmt::format("{} bytes of scratch", bytes), "", errno);
      }
    }
    return {};
  }

  void scrub(std::uint64_t pattern) override {
    m_pattern = pattern;
    run(WorkerJob::scrub);
  }

  int workers() const override { return static_cast<int>(m_workers.size()); }

  const char* guard_name(const void* address) const override {
    for (const auto& w : m_workers) {
      if (w.stack.in_guard(address)) return w.stack_name;
      if (w.scratch.in_guard(address)) return w.scratch_name;
    }
    return nullptr;
  }

 private:
  struct Start {
    CpuWorkerPool* pool = nullptr;
    int index = 0;
  };

  static Status pin(pthread_t thread, int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    const int error = pthread_setaffinity_np(thread, sizeof set, &set);
    if (error != 0) return fail(Code::unsupported, fmt::format("cannot pin a worker to core {}: {}", core, std::strerror(error)));
    return {};
  }

  // A handler must run when the kernel's stack is what overflowed.
  static void use_signal_stack(const Worker& w) {
    const stack_t stack{w.signal_stack.begin, 0, w.signal_stack.bytes};
    sigaltstack(&stack, nullptr);
  }

  static void* thread_main(void* start) {
    const auto& s = *static_cast<Start*>(start);
    use_signal_stack(s.pool->m_workers[static_cast<std::size_t>(s.index)]);
    s.pool->serve(s.index);
    return nullptr;
  }

  void serve(int index) {
    std::uint32_t seen = 0;
    for (;;) {
      wait_until_changed(m_generation, seen, m_sleepers);
      seen = m_generation.load(std::memory_order_acquire);
      if (m_job == WorkerJob::quit) return;
      work(index);
      if (m_remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        m_finished.store(seen);
        if (m_caller_sleeps.load() != 0) futex_wake_all(m_finished);
      }
    }
  }

  void publish(WorkerJob job) {
    m_job = job;
    m_remaining.store(static_cast<std::uint32_t>(m_workers.size()) - 1, std::memory_order_relaxed);
    m_generation.fetch_add(1);
    if (m_sleepers.load() != 0) futex_wake_all(m_generation);
  }

  void run(WorkerJob job) {
    const std::uint32_t before = m_finished.load();
    publish(job);
    work(0);
    if (m_workers.size() > 1) wait_until_changed(m_finished, before, m_caller_sleeps);
  }

  void work(int index) {
    if (m_job == WorkerJob::launch) run_blocks(index);
    if (m_job == WorkerJob::scrub) scrub_worker(m_workers[index]);
  }

  void run_blocks(int index) {
    const Worker& w = m_workers[index];
    std::byte* top = w.stack.begin + w.stack.bytes;
    BlockInfo block{0, static_cast<int>(m_grid), index, workers(), w.scratch.bytes ? w.scratch.begin : nullptr};
    for (;;) {
      const std::int64_t i = m_next.fetch_add(1, std::memory_order_relaxed);
      if (i >= m_grid) return;
      block.index = static_cast<int>(i);
      block.count = static_cast<int>(m_grid);
      forge_run_block(m_entry, m_args, &block, top);
    }
  }

  void scrub_worker(Worker& w) {
    fill_streaming(w.stack.begin, w.stack.bytes - k_kept_warm, m_pattern);
    fill(w.stack.begin + w.stack.bytes - k_kept_warm, k_kept_warm, m_pattern);
    if (w.scratch.bytes) fill_streaming(w.scratch.begin, w.scratch.bytes, m_pattern);
    alignas(64) std::uint64_t registers[8];
    for (auto& r : registers) r = m_pattern;
    if (m_avx512)
      forge_scrub_avx512(registers);
    else if (m_avx)
      forge_scrub_avx(registers);
    if (m_fsgsbase) forge_zero_gs_base();
  }

  std::vector<Worker> m_workers;
  std::vector<Start> m_starts;
  bool m_avx = false, m_avx512 = false, m_fsgsbase = false;
  WorkerJob m_job = WorkerJob::arm;
  EntryPoint m_entry = nullptr;
  const void* m_args = nullptr;
  std::int64_t m_grid = 0;
  std::uint64_t m_pattern = 0;
  // Each on its own cache line: one is polled by all, one is counted down by all.
  alignas(64) std::atomic<std::uint32_t> m_generation{0};
  alignas(64) std::atomic<std::uint32_t> m_sleepers{0};
  alignas(64) std::atomic<std::int64_t> m_next{0};
  alignas(64) std::atomic<std::uint32_t> m_remaining{0};
  alignas(64) std::atomic<std::uint32_t> m_finished{0};
  std::atomic<std::uint32_t> m_caller_sleeps{0};
};

}  // namespace

Result<std::unique_ptr<WorkerPool>> WorkerPool::make(const std::vector<int>& cores) {
  if (cores.empty()) return fail(Code::bad_input, "a worker pool needs at least one core");
  auto pool = std::make_unique<CpuWorkerPool>();
  FORGE_TRY(pool->start(cores));
  return pool;
}

}  // namespace forge
