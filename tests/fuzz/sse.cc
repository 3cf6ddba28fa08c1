// SPDX-License-Identifier: Apache-2.0
// Server-sent events: however the stream is cut, the same events come out. Input: one byte for the size of a piece, then a stream.
// link: forge_model
#include "model/sse.h"

#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(sse) {
  if (bytes.empty()) return;
  const std::size_t piece = 1 + static_cast<unsigned char>(bytes[0]);
  bytes.remove_prefix(1);
  const auto events = [&](std::size_t step) {
    EventSplitter splitter;
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += step)
      splitter.feed(bytes.substr(at, step), [&](const ServerEvent& e) {
        out += e.name + "\1" + e.data + "\2";
        return true;
      });
    return out;
  };
  const std::string whole = events(bytes.size() + 1);
  HOLDS(events(piece) == whole);
  HOLDS(events(1) == whole);
}

}  // namespace forge
