// SPDX-License-Identifier: Apache-2.0
#include "gate/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

namespace forge {

ThreadTeam::ThreadTeam(const std::vector<int>& cores) {
  const int count = std::max<int>(1, static_cast<int>(cores.size()));
  m_threads.reserve(count);
  for (int i = 0; i < count; ++i) m_threads.emplace_back([this, i, core = cores.empty() ? -1 : cores[i]] { serve(i, core); });
}

ThreadTeam::~ThreadTeam() {
  {
    std::lock_guard lock(m_mutex);
    m_stop = true;
  }
  m_start.notify_all();
  for (auto& thread : m_threads) thread.join();
}

void ThreadTeam::run(std::int64_t items, const std::function<void(std::int64_t, int)>& work) {
  if (items <= 0) return;
  std::unique_lock lock(m_mutex);
  m_work = &work;
  m_items = items;
  m_next = 0;
  m_busy = size();
  ++m_generation;
  m_start.notify_all();
  m_done.wait(lock, [this] { return m_busy == 0; });
  m_work = nullptr;
}

void ThreadTeam::serve(int thread, int core) {
  if (core >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // refusal costs speed only
  }
  std::uint64_t seen = 0;
  std::unique_lock lock(m_mutex);
  while (true) {
    m_start.wait(lock, [&] { return m_stop || m_generation != seen; });
    if (m_stop) return;
    seen = m_generation;
    const auto* work = m_work;
    const std::int64_t items = m_items;
    lock.unlock();
    for (std::int64_t item; (item = m_next.fetch_add(1)) < items;) (*work)(item, thread);
    lock.lock();
    if (--m_busy == 0) m_done.notify_one();
  }
}

}  // namespace forge
