// SPDX-License-Identifier: Apache-2.0
#include "runner/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cmath>

#include "util/progress.h"

namespace forge {

wire::Kind Packet::kind() const {
  if (size < sizeof(wire::Header)) return wire::Kind{};
  wire::Header h;
  std::memcpy(&h, bytes, sizeof h);
  return h.magic == wire::k_magic && h.version == wire::k_version && h.bytes == size ? h.kind : wire::Kind{};
}

Received receive_packet(int socket, Packet& packet, double timeout_s, Waiting waiting) {
  packet.fds.clear();
  packet.size = 0;
  const double until = timeout_s < 0 ? 0 : monotonic_seconds() + timeout_s;
  while (timeout_s >= 0) {
    const double left = until - monotonic_seconds();
    pollfd p{socket, POLLIN, 0};
    const int n = poll(&p, 1, left <= 0 || waiting == Waiting::awake ? 0 : static_cast<int>(std::ceil(left * 1000)));
    if (n > 0) break;
    if (n < 0 && errno != EINTR) return Received::error;
    if (n == 0 && left <= 0) return Received::timeout;
  }
  iovec data{packet.bytes, sizeof packet.bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * wire::k_max_buffers)];
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof control;
  ssize_t n;
  do {
    n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno == ECONNRESET ? Received::closed : Received::error;
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      packet.fds.emplace_back(fd);
    }
  }
  if (n == 0) return Received::closed;
  if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return Received::error;
  packet.size = static_cast<std::size_t>(n);
  return Received::packet;
}

int send_packet(int socket, const void* bytes, std::size_t size, const int* fds, std::size_t fd_count) {
  if (fd_count > static_cast<std::size_t>(wire::k_max_buffers)) return E2BIG;
  iovec data{const_cast<void*>(bytes), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * wire::k_max_buffers)] = {};
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  if (fd_count > 0) {
    m.msg_control = control;
    m.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
    cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
    std::memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
  }
  ssize_t n;
  do {
    n = sendmsg(socket, &m, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno;
  return static_cast<std::size_t>(n) == size ? 0 : EIO;
}

}  // namespace forge
