// SPDX-License-Identifier: Apache-2.0
// The judge's own threads, one pinned to each of its cores. They block while idle, so that a runner's turn is undisturbed.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace forge {

class ThreadTeam {
 public:
  explicit ThreadTeam(const std::vector<int>& cores);  // at least one thread; a core that cannot be pinned to is left unpinned
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // work(item, thread) for every item in [0, items), taken in order from a shared counter; returns when all are done.
  void run(std::int64_t items, const std::function<void(std::int64_t item, int thread)>& work);
  int size() const { return static_cast<int>(m_threads.size()); }

 private:
  void serve(int thread, int core);

  std::vector<std::thread> m_threads;
  std::mutex m_mutex;
  std::condition_variable m_start, m_done;
  const std::function<void(std::int64_t, int)>* m_work = nullptr;
  std::int64_t m_items = 0;
  std::atomic<std::int64_t> m_next{0};
  std::uint64_t m_generation = 0;
  int m_busy = 0;
  bool m_stop = false;
};

}  // namespace forge
