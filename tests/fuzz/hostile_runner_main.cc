// SPDX-License-Identifier: Apache-2.0
// A runner that answers whatever it likes: every answer comes from a script (packets.h), which is the image that it was given, or the
// file that it was told is the expert. Ends when the script does. Started by the target judge_runner in place of forge-runner.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/packets.h"

namespace {

using namespace forge;

unsigned char g_heard[wire::k_largest], g_script[1 << 16];

// What was asked, and the descriptor beside it (-1: none).
bool hear(wire::Header& header, int& fd) {
  iovec data{g_heard, sizeof g_heard};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * wire::k_max_buffers)];
  msghdr m{};
  m.msg_iov = &data, m.msg_iovlen = 1, m.msg_control = control, m.msg_controllen = sizeof control;
  const ssize_t n = recvmsg(wire::k_channel_fd, &m, 0);
  if (n < static_cast<ssize_t>(sizeof header)) return false;
  std::memcpy(&header, g_heard, sizeof header);
  fd = -1;
  if (const cmsghdr* c = CMSG_FIRSTHDR(&m); c && c->cmsg_type == SCM_RIGHTS) std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
  return true;
}

bool say(const fuzz::MadePacket& p) {
  iovec data{const_cast<unsigned char*>(p.bytes.data()), p.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)] = {};
  msghdr m{};
  m.msg_iov = &data, m.msg_iovlen = 1;
  if (p.descriptors > 0) {
    m.msg_control = control, m.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<std::size_t>(p.descriptors));
    cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<std::size_t>(p.descriptors));
    const int own[4] = {0, 1, 2, wire::k_channel_fd};
    std::memcpy(CMSG_DATA(c), own, sizeof(int) * static_cast<std::size_t>(p.descriptors));
  }
  return sendmsg(wire::k_channel_fd, &m, MSG_NOSIGNAL) >= 0;
}

wire::Kind answer_to(wire::Kind kind) {
  switch (kind) {
    case wire::Kind::go:
      return wire::Kind::done;
    case wire::Kind::cuda_batch:
      return wire::Kind::cuda_done;
    case wire::Kind::cuda_import:
      return wire::Kind::cuda_placed;
    case wire::Kind::profile:
      return wire::Kind::samples;
    default:
      return wire::Kind::reply;
  }
}

}  // namespace

int main() {
  wire::Header hello{};
  hello.magic = wire::k_magic, hello.version = wire::k_version, hello.kind = wire::Kind::hello, hello.bytes = sizeof hello;
  if (send(wire::k_channel_fd, &hello, sizeof hello, MSG_NOSIGNAL) < 0) return 2;
  wire::Header asked;
  int fd = -1;
  if (!hear(asked, fd) || asked.kind != wire::Kind::load) return 2;
  wire::Load load;
  std::memcpy(&load, g_heard, sizeof load);
  const bool gpu = load.subject == wire::Subject::cuda_image;
  if (fd < 0) fd = open(load.plugin, O_RDONLY);
  const ssize_t size = pread(fd, g_script, sizeof g_script, 0);
  if (size < 0) return 2;
  close(fd);
  fuzz::PacketScript script(g_script, static_cast<std::size_t>(size));
  do {
    const wire::Kind kind = gpu && asked.kind == wire::Kind::go ? wire::Kind::cuda_done : answer_to(asked.kind);
    const auto packet = script.next(kind, asked.sequence);
    if (!packet || !say(*packet)) return 0;
  } while (hear(asked, fd));
  return 0;
}
