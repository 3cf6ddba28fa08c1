// SPDX-License-Identifier: Apache-2.0
// A journal's text, whole and as it grows. Input: lines (journal_lines.h).
// link: forge_store
#include "fuzz/journal_lines.h"
#include "fuzz/target.h"
#include "store/journal_text.h"

namespace forge {

FORGE_FUZZ_TARGET(journal) {
  for (const std::string& text : {fuzz::chained(bytes), std::string(bytes)}) {
    JournalText whole, grown;
    const Status read = parse_journal("j", text, whole);
    HOLDS(whole.good_bytes <= text.size() && whole.events.size() == static_cast<std::size_t>(whole.lines));
    Status step;
    for (const std::size_t cut : {text.size() / 3, text.size() - text.size() / 3, text.size()})
      if (step) step = parse_journal("j", std::string_view(text).substr(grown.good_bytes, cut - grown.good_bytes), grown);
    if (read) HOLDS(step && grown.lines == whole.lines && grown.last_hash == whole.last_hash);
  }
}

}  // namespace forge
