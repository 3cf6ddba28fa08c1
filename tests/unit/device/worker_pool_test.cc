// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "device/cpu.h"

namespace forge {
namespace {

struct Seen {
  std::atomic<int> order{0};
  int when[1000];
  std::atomic<int> bad{0};
  std::byte* scratch[64] = {};
};

void note_block(const void* args, const BlockInfo* b) {
  auto& s = *const_cast<Seen*>(static_cast<const Seen*>(args));
  s.when[b->index] = s.order.fetch_add(1);
  if (b->worker < 0 || b->worker >= b->workers || b->count != 1000) ++s.bad;
  s.scratch[b->worker] = static_cast<std::byte*>(b->scratch);
  if (b->scratch) std::memset(b->scratch, b->worker, 5000);
}

// On a thread of its own: the pool pins its caller.
template <class F>
void with_pool(F&& f) {
  std::thread([&] {
    auto pool = WorkerPool::make(usable_cores());
    ASSERT_TRUE(pool) << pool.error().text();
    f(**pool);
  }).join();
}

TEST(WorkerPool, EveryBlockRunsOnceAndAboutInOrder) {
  with_pool([](WorkerPool& pool) {
    for (int repeat = 0; repeat < 30; ++repeat) {
      auto seen = std::make_unique<Seen>();
      std::fill_n(seen->when, 1000, -1);
      pool.launch(&note_block, seen.get(), 1000);
      EXPECT_EQ(seen->order, 1000);  // the barrier: all are done on return
      EXPECT_EQ(seen->bad, 0);
      for (const int w : seen->when) ASSERT_GE(w, 0);
    }
  });
}

TEST(WorkerPool, ScratchIsGuardedAndDistinct) {
  with_pool([](WorkerPool& pool) {
    ASSERT_TRUE(pool.reserve_scratch(5000));
    auto seen = std::make_unique<Seen>();
    for (int i = 0; i < 50; ++i) seen->order = 0, pool.launch(&note_block, seen.get(), 1000);
    for (int w = 0; w < pool.workers(); ++w) {
      if (!seen->scratch[w]) continue;  // one worker may have taken all blocks
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(seen->scratch[w]) % 4096, 0u);
      EXPECT_EQ(pool.guard_name(seen->scratch[w]), nullptr);
      EXPECT_EQ(std::string(pool.guard_name(seen->scratch[w] - 1)), "scratch of worker " + std::to_string(w));
      EXPECT_EQ(std::string(pool.guard_name(seen->scratch[w] + 8192)), "scratch of worker " + std::to_string(w));
      for (int v = 0; v < w; ++v) EXPECT_NE(seen->scratch[v], seen->scratch[w]);
    }
    ASSERT_TRUE(pool.reserve_scratch(0));
    seen->order = 0;
    pool.launch(&note_block, seen.get(), 1000);
    EXPECT_EQ(pool.guard_name(&pool), nullptr);
  });
}

void mark_scratch(const void*, const BlockInfo* b) { std::memset(b->scratch, 0x77, 4096); }
void find_marks(const void* args, const BlockInfo* b) {
  if (static_cast<unsigned char*>(b->scratch)[4000] == 0x77) ++*const_cast<std::atomic<int>*>(static_cast<const std::atomic<int>*>(args));
}

TEST(WorkerPool, ScrubWipesScratch) {
  with_pool([](WorkerPool& pool) {
    ASSERT_TRUE(pool.reserve_scratch(4096));
    std::atomic<int> found{0};
    for (int i = 0; i < 20; ++i) {
      pool.launch(&mark_scratch, nullptr, 64);
      pool.scrub(0x0102030405060708);
      pool.launch(&find_marks, &found, 64);
    }
    EXPECT_EQ(found, 0);
    pool.launch(&mark_scratch, nullptr, 64);
    pool.launch(&find_marks, &found, 64);
    EXPECT_GT(found, 0);  // without a scrub the marks are there: the test can fail
  });
}

TEST(WorkerPool, SleepersWakeUp) {
  with_pool([](WorkerPool& pool) {
    auto seen = std::make_unique<Seen>();
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // past the spin: workers sleep on the futex
      seen->order = 0;
      pool.arm();
      pool.launch(&note_block, seen.get(), 1000);
      EXPECT_EQ(seen->order, 1000);
    }
    pool.launch(&note_block, seen.get(), 0);  // an empty grid is a barrier
  });
}

TEST(WorkerPool, ACoreThatIsNotThereIsRefused) {
  std::thread([] {
    EXPECT_FALSE(WorkerPool::make({}));
    EXPECT_FALSE(WorkerPool::make({usable_cores()[0], 1023}));
  }).join();
}

}  // namespace
}  // namespace forge
