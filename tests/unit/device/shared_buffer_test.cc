// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/cpu.h"

namespace forge {
namespace {

std::uint64_t number(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

TEST(SharedBuffer, EndsAtAGuardAndKeepsItsAlignment) {
  for (const std::size_t bytes :
       {std::size_t(0), std::size_t(1), std::size_t(255), std::size_t(256), std::size_t(4096), std::size_t(4097), std::size_t(5'000'000)}) {
    auto b = SharedBuffer::make(bytes, "t");
    ASSERT_TRUE(b) << b.error().text();
    EXPECT_EQ(number(b->data()) % 256, 0u);
    EXPECT_EQ(b->bytes(), bytes);
    EXPECT_EQ(number(b->slack_before().data()), number(b->mapping()));
    EXPECT_EQ(b->slack_before().size() + b->bytes() + b->slack_after().size(), b->file_bytes());
    EXPECT_LT(b->slack_after().size(), 256u);
    EXPECT_EQ(number(b->slack_after().data() + b->slack_after().size()) % 4096, 0u);
    if (bytes > 0) b->data()[bytes - 1] = std::byte{7};
  }
  auto w = SharedBuffer::make(1000, "w", 1024);
  ASSERT_TRUE(w);
  EXPECT_EQ(number(w->data()) % 1024, 0u);
  EXPECT_FALSE(SharedBuffer::make(1, "odd", 300));
}

TEST(SharedBufferDeathTest, OverrunMeetsTheGuard) {
  auto b = SharedBuffer::make(4096, "t");
  ASSERT_TRUE(b);
  volatile std::byte* p = b->data();
  EXPECT_DEATH(p[4096] = std::byte{1}, "");
  EXPECT_DEATH(p[-1] = std::byte{1}, "");
}

TEST(SharedBuffer, OthersCannotShortenItOrWriteASealedOne) {
  auto b = SharedBuffer::make(8192, "t");
  ASSERT_TRUE(b);
  EXPECT_NE(ftruncate(b->fd(), 0), 0);
  ASSERT_TRUE(b->seal_for_reading());
  EXPECT_EQ(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd(), 0), MAP_FAILED);
  void* readable = mmap(nullptr, 8192, PROT_READ, MAP_SHARED, b->fd(), 0);
  ASSERT_NE(readable, MAP_FAILED);
  b->data()[5] = std::byte{9};  // our own mapping still writes, and others see it
  EXPECT_EQ(static_cast<std::byte*>(readable)[5], std::byte{9});
  munmap(readable, 8192);
}

TEST(SharedBuffer, AddressesAreReusedAndNeverOverlap) {
  std::byte* first = nullptr;
  for (int i = 0; i < 20'000; ++i) {
    auto b = SharedBuffer::make(100, "t");
    ASSERT_TRUE(b) << i << " " << b.error().text();
    if (!first) first = b->data();
    EXPECT_EQ(b->data(), first);
  }
  auto a = SharedBuffer::make(100, "a");
  auto c = SharedBuffer::make(100, "c");
  ASSERT_TRUE(a && c);
  EXPECT_NE(a->data(), c->data());
  SharedBuffer moved = std::move(*a);
  EXPECT_EQ(a->data(), nullptr);
  *moved.data() = std::byte{1};
}

}  // namespace
}  // namespace forge
