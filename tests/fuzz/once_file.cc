// SPDX-License-Identifier: Apache-2.0
// The call that a profiled runner reads from a file. Packets as packets.h makes them, put together as the file has them; the same bytes
// as a file are tried too.
// link: forge_runner
#include "runner/once_file.h"

#include "fuzz/packets.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(once_file) {
  fuzz::PacketScript script(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  std::string file;
  for (std::uint32_t i = 1; const auto p = script.next(std::nullopt, i); ++i) {
    file.append(reinterpret_cast<const char*>(p->bytes.data()), p->bytes.size());
    file.append(static_cast<std::size_t>(p->descriptors), 'c');  // a cubin
    if (file.size() > 1 << 16) break;
  }
  for (const std::string_view content : {std::string_view(file), bytes}) {
    auto once = read_once_file(fuzz::put("once", content));
    if (!once) continue;
    HOLDS(once->cubin.size() == once->load->object_bytes && once->imports.size() <= kOnceImports);
    HOLDS(write_once_file(fuzz::folder() / "again", *once).has_value());
    HOLDS(read_once_file(fuzz::folder() / "again").has_value());
  }
}

}  // namespace forge
