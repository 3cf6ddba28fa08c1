// SPDX-License-Identifier: Apache-2.0
// Source of the thread team and the workspaces that a CPU launcher is generated with; C++17. Private to this layer.
#pragma once

namespace forge {

inline constexpr const char* kCpuTeam = R"text(
struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
using Block = std::unique_ptr<void, FreeDeleter>;

Block allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes == 0) return {};
  return Block(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
}

using Entry = void (*)(const forge_args*, const forge_block*);

// Workers take blocks in order of their index; a launch ends when all blocks have. The caller is worker 0.
class Team {
 public:
  explicit Team(int workers) : m_scratch(static_cast<std::size_t>(workers)) {
    try {
      for (int i = 1; i < workers; i++) m_threads.emplace_back([this, i] { serve(i); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Team() { stop(); }
  int workers() const { return static_cast<int>(m_scratch.size()); }

  bool reserve_scratch(std::size_t bytes) {  // of each worker
    if (bytes <= m_scratch_bytes) return true;
    m_scratch_bytes = 0;
    for (Block& b : m_scratch)
      if (!(b = allocate(bytes, 4096))) return false;
    m_scratch_bytes = bytes;
    return true;
  }

  void launch(Entry entry, const forge_args* args, std::int64_t grid) {
    m_entry = entry;
    m_args = args;
    m_grid = grid;
    m_next.store(0, std::memory_order_relaxed);
    m_left.store(workers() - 1, std::memory_order_relaxed);
    if (grid > 1 && workers() > 1) {
      {
        std::lock_guard<std::mutex> lock(m_mutex);
        m_epoch.fetch_add(1, std::memory_order_release);
      }
      m_wake.notify_all();
      run_blocks(0);
      for (int spin = 0; m_left.load(std::memory_order_acquire) != 0; spin++)
        if (spin > 1000) std::this_thread::yield();
    } else {
      run_blocks(0);
    }
  }

 private:
  void stop() {
    {
      std::lock_guard<std::mutex> lock(m_mutex);
      m_quit = true;
      m_epoch.fetch_add(1, std::memory_order_release);
    }
    m_wake.notify_all();
    for (std::thread& t : m_threads) t.join();
  }

  void serve(int worker) {
    for (std::uint32_t seen = 0;;) {
      for (int spin = 0; spin < 2000 && m_epoch.load(std::memory_order_acquire) == seen; spin++) {
      }
      if (m_epoch.load(std::memory_order_acquire) == seen) {
        std::unique_lock<std::mutex> lock(m_mutex);
        m_wake.wait(lock, [&] { return m_epoch.load(std::memory_order_acquire) != seen; });
      }
      seen = m_epoch.load(std::memory_order_acquire);
      if (m_quit) return;
      run_blocks(worker);
      m_left.fetch_sub(1, std::memory_order_release);
    }
  }

  void run_blocks(int worker) {
    forge_block b{};
    b.count = static_cast<int>(m_grid);
    b.worker = worker;
    b.workers = workers();
    b.scratch = m_scratch[static_cast<std::size_t>(worker)].get();
    for (;;) {
      const std::int64_t i = m_next.fetch_add(1, std::memory_order_relaxed);
      if (i >= m_grid) return;
      b.index = static_cast<int>(i);
      m_entry(m_args, &b);
    }
  }

  std::vector<Block> m_scratch;  // one a worker, page-aligned
  std::size_t m_scratch_bytes = 0;
  Entry m_entry = nullptr;
  const forge_args* m_args = nullptr;
  std::int64_t m_grid = 0;
  std::atomic<std::int64_t> m_next{0};
  std::atomic<int> m_left{0};
  std::atomic<std::uint32_t> m_epoch{0};
  std::atomic<bool> m_quit{false};
  std::mutex m_mutex;
  std::condition_variable m_wake;
  std::vector<std::thread> m_threads;
};

struct Range {
  unsigned char* data;
  std::size_t bytes;
};
// Clears a workspace, a piece a block. The team's entries take a forge_args: this one is a Range in disguise.
void clear(const forge_args* range, const forge_block* b) {
  const Range& r = *reinterpret_cast<const Range*>(range);
  const std::size_t piece = (r.bytes / static_cast<std::size_t>(b->count) + 64) / 64 * 64;
  const std::size_t begin = std::min(r.bytes, piece * static_cast<std::size_t>(b->index));
  std::memset(r.data + begin, 0, std::min(r.bytes - begin, piece));
}
)text";

}  // namespace forge
