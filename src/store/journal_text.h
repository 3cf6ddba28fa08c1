// SPDX-License-Identifier: Apache-2.0
// Private to src/store: the lines of a journal, checked as one chain, in one piece or as they come.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "store/journal.h"

namespace forge {

struct JournalText : JournalMark {
  std::vector<Event> events;  // the caller may take them out between two calls
};

// Goes on with what stands in the file from good_bytes on. A last line without its newline, or one that is no JSON, is what a kill in
// mid-write leaves, and what a reader sees in mid-write: left for the next call. Anything else is damage, an error with the line.
Status parse_journal(const fs::path& file, std::string_view fresh, JournalText& so_far);
// The same, one event at a time.
Status parse_journal(const fs::path& file, std::string_view fresh, JournalMark& so_far, const std::function<void(Event&)>& take);

}  // namespace forge
