// SPDX-License-Identifier: Apache-2.0
// A journal read while its run goes: every call gives the events that were appended since the one before. Takes no lock, so it
// disturbs no writer.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "store/journal.h"

namespace forge {

class JournalTail {
 public:
  explicit JournalTail(fs::path file);
  JournalTail(JournalTail&&) noexcept;
  JournalTail& operator=(JournalTail&&) noexcept;
  ~JournalTail();

  struct News {
    bool again = false;  // the file was replaced or cut: what came before is void, and `events` begins with the first
    std::vector<Event> events;
  };
  Result<News> read();
  // A process has the run open for writing. Told by the kernel's list of locks: trying the lock could make a resume fail.
  bool written_to() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
};

}  // namespace forge
