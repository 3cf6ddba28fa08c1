// SPDX-License-Identifier: Apache-2.0
// The journal of one run: append-only JSON lines, each with the hash of the one before; the truth that everything else is
// rebuilt from. Resume and replay are one mechanism: step() hands back what is recorded for as long as the requests repeat,
// and does and appends the work once the record ends. Format: docs/formats/journal.md.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "util/fs.h"

namespace forge {

struct Event {
  std::int64_t seq = 0;
  std::string time;      // UTC, of the append
  std::string type;      // "run.start", "gate.submit", "plan", "milestone.end", ...
  std::string request;   // canonical JSON text: what was asked, or what was decided
  std::string response;  // JSON text; "null" for a decision
  double seconds = 0;    // that step's wall time
};

class Journal {
 public:
  enum class Mode {
    create,  // must not exist
    resume,  // replays what is there, then goes on
    replay,  // replays only: asking beyond the end is Code::diverged
    memory,  // no file, for tests
  };
  static Result<Journal> open(const fs::path& file, Mode);
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();

  // The response recorded for this step, or that of `work`, recorded and flushed to disk before it is returned.
  // Another type or request than the recorded one: Code::diverged, naming the event.
  Result<std::string> step(const std::string& type, const std::string& request, const std::function<Result<std::string>()>& work);
  // A decision: step() without work.
  Status decide(const std::string& type, const std::string& request);

  bool replaying() const;          // the next step comes from the record
  double elapsed_seconds() const;  // sum of all steps' wall time so far, replayed ones included
  const std::vector<Event>& events() const;

 private:
  struct Impl;
  explicit Journal(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> m_impl;
};

// Reads without opening for writing. A torn last line (kill -9 in mid-write) is dropped; damage earlier is an error with the line.
Result<std::vector<Event>> read_journal(const fs::path& file);

// How far a journal was read: whole lines only.
struct JournalMark {
  std::string last_hash;
  int lines = 0;
  std::size_t good_bytes = 0;  // up to and with the last whole line
};
// The same event by event from the mark on, which moves along: a long run is never in memory as a whole. What `take` is given may be
// taken out of; it is the next event's place.
Status scan_journal(const fs::path& file, JournalMark& from, const std::function<void(Event&)>& take);
// The line that the mark stands behind is still there. False: the file was replaced or cut since.
bool stands_in(const JournalMark&, const fs::path& file);

}  // namespace forge
