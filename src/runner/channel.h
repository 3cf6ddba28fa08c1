// SPDX-License-Identifier: Apache-2.0
// Packets with file descriptors over a SOCK_SEQPACKET socket. Used on both sides; the runner's side uses recvmsg and sendmsg only.
#pragma once
#include <cstddef>
#include <cstring>
#include <vector>

#include "runner/protocol.h"
#include "util/fs.h"

namespace forge {

// One packet as it came: nothing about it is trusted yet.
struct Packet {
  alignas(16) std::byte bytes[wire::k_largest];
  std::size_t size = 0;
  std::vector<Fd> fds;

  // The packet as a T when kind, version and size are exactly right, else null.
  template <class T>
  const T* as() const {
    if (size != sizeof(T)) return nullptr;
    wire::Header h;
    std::memcpy(&h, bytes, sizeof h);
    if (h.magic != wire::k_magic || h.version != wire::k_version || h.kind != wire::kind_of<T>() || h.bytes != sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(bytes);
  }
  wire::Kind kind() const;  // of a packet with a whole, known header; Kind{} otherwise
};

enum class Received { packet, timeout, closed, error };

// How a packet is waited for. Awake: a core asks again and again, because waking a sleeper takes a virtual machine up to 0.1 ms, never
// twice the same, and a clock hangs on the answer.
enum class Waiting { asleep, awake };
// timeout_s < 0: waits for ever.
Received receive_packet(int socket, Packet&, double timeout_s, Waiting = Waiting::asleep);
// 0 or an errno. Never raises SIGPIPE.
int send_packet(int socket, const void* bytes, std::size_t size, const int* fds = nullptr, std::size_t fd_count = 0);

template <class T>
int send_message(int socket, T& message, std::uint32_t sequence, const std::vector<int>& fds = {}) {
  message.header.kind = wire::kind_of<T>();
  message.header.sequence = sequence;
  message.header.bytes = sizeof(T);
  return send_packet(socket, &message, sizeof message, fds.data(), fds.size());
}

template <std::size_t N>
void copy_text(char (&to)[N], std::string_view from) {  // cut to fit, always ended
  const std::size_t n = from.size() < N - 1 ? from.size() : N - 1;
  std::memcpy(to, from.data(), n);
  to[n] = 0;
}
template <std::size_t N>
std::string text_of(const char (&from)[N]) {  // stops at N: the sender may have forgotten the end
  return std::string(from, strnlen(from, N));
}

}  // namespace forge
