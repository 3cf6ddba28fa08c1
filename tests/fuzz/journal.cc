// SPDX-License-Identifier: Apache-2.0
// A journal's text, whole and as it grows. A line's hash is set right first, or hardly an input would come past it; a line that ends
// with "raw" keeps the one that it has. Input: lines.
// link: forge_store
#include "fuzz/target.h"
#include "store/journal_text.h"
#include "util/hash.h"
#include "util/text.h"

namespace forge {

static std::string chained(std::string_view bytes) {
  std::string out, previous;
  for (std::string line : split(std::string(bytes), '\n')) {
    const std::size_t hash = line.rfind(",\"hash\":\""), prev = line.rfind(",\"prev\":\"");
    if (!line.ends_with("raw") && hash != std::string::npos && prev != std::string::npos && prev < hash) {
      line = line.substr(0, prev) + ",\"prev\":\"" + previous + "\"}";
      previous = sha256_hex(line).substr(0, 16);
      line = line.substr(0, line.size() - 1) + ",\"hash\":\"" + previous + "\"}";
    }
    out += line + "\n";
  }
  if (!out.empty()) out.pop_back();
  return out;
}

FORGE_FUZZ_TARGET(journal) {
  for (const std::string& text : {chained(bytes), std::string(bytes)}) {
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
