// SPDX-License-Identifier: Apache-2.0
// Packets of the runner protocol from a fuzzer's bytes. A packet begins as a whole message of its kind, zero but for a right header;
// the bytes then write into it, so that a short input reaches every field of a long message and most packets come past the header.
//   packet: kind, flags, count of writes, then so often: offset (2), length, bytes
//   flags: 1 of another kind than asked for; 2 the header may be written; 4 the last write's offset is the size; 8, 16 descriptors beside
//   it; 32 a number that was not asked for
#pragma once
#include <cstring>
#include <optional>
#include <vector>

#include "runner/cuda_protocol.h"
#include "runner/protocol.h"

namespace forge::fuzz {

struct MadePacket {
  std::vector<unsigned char> bytes;
  int descriptors = 0;
};

inline std::size_t size_of(wire::Kind kind) {
  switch (kind) {
    case wire::Kind::load:
      return sizeof(wire::Load);
    case wire::Kind::prepare:
      return sizeof(wire::Prepare);
    case wire::Kind::ready:
      return sizeof(wire::Ready);
    case wire::Kind::profile:
      return sizeof(wire::Profile);
    case wire::Kind::cuda_import:
      return sizeof(wire::CudaImport);
    case wire::Kind::cuda_forget:
      return sizeof(wire::CudaForget);
    case wire::Kind::cuda_prepare:
      return sizeof(wire::CudaPrepare);
    case wire::Kind::cuda_batch:
      return sizeof(wire::CudaBatch);
    case wire::Kind::reply:
      return sizeof(wire::Reply);
    case wire::Kind::done:
      return sizeof(wire::Done);
    case wire::Kind::samples:
      return sizeof(wire::Samples);
    case wire::Kind::cuda_placed:
      return sizeof(wire::CudaPlaced);
    case wire::Kind::cuda_done:
      return sizeof(wire::CudaDone);
    case wire::Kind::fault:
      return sizeof(wire::Fault);
    default:
      return sizeof(wire::Header);  // hello, go
  }
}

inline constexpr wire::Kind kKinds[] = {wire::Kind::hello,        wire::Kind::load,        wire::Kind::prepare,     wire::Kind::ready,
                                        wire::Kind::go,           wire::Kind::profile,     wire::Kind::cuda_import, wire::Kind::cuda_forget,
                                        wire::Kind::cuda_prepare, wire::Kind::cuda_batch,  wire::Kind::reply,       wire::Kind::done,
                                        wire::Kind::samples,      wire::Kind::cuda_placed, wire::Kind::cuda_done,   wire::Kind::fault};

class PacketScript {
 public:
  PacketScript(const unsigned char* bytes, std::size_t size) : m_bytes(bytes), m_left(size) {}

  // `asked`: the kind that the other side waits for; none: the bytes choose.
  std::optional<MadePacket> next(std::optional<wire::Kind> asked, std::uint32_t sequence) {
    if (m_left < 3) return std::nullopt;
    const unsigned char kind_byte = byte(), flags = byte(), writes = byte();
    const wire::Kind kind = asked && !(flags & 1) ? *asked : kKinds[kind_byte % (sizeof kKinds / sizeof kKinds[0])];
    MadePacket p;
    p.bytes.resize(size_of(kind));
    p.descriptors = (flags >> 3) & 3;
    wire::Header header;
    header.kind = kind;
    header.sequence = flags & 32 ? sequence + kind_byte : sequence;
    header.bytes = static_cast<std::uint32_t>(p.bytes.size());
    std::memcpy(p.bytes.data(), &header, sizeof header);
    std::size_t offset = 0;
    for (int i = 0; i < writes && m_left >= 3; ++i) {
      offset = byte();
      offset |= static_cast<std::size_t>(byte()) << 8;
      std::size_t length = byte();
      if (length > m_left) length = m_left;
      const std::size_t from = flags & 2 ? 0 : sizeof header;
      for (std::size_t k = 0; k < length; ++k) {
        const unsigned char value = byte();
        if (offset + k >= from && offset + k < p.bytes.size()) p.bytes[offset + k] = value;
      }
    }
    if (flags & 4) p.bytes.resize(offset % wire::k_largest);
    return p;
  }

 private:
  unsigned char byte() { return --m_left, *m_bytes++; }
  const unsigned char* m_bytes;
  std::size_t m_left;
};

}  // namespace forge::fuzz
