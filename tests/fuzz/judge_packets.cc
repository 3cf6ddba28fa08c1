// SPDX-License-Identifier: Apache-2.0
// The judge's side of the channel without a process: a packet as it comes, its kind, and what is made of last words, of a GPU's fault
// and of the kernel's log. Input: a packet of packets.h; the rest is a line of the kernel's log.
// link: forge_runner
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/packets.h"
#include "fuzz/target.h"
#include "runner/channel.h"
#include "runner/classify.h"
#include "runner/cuda_faults.h"

namespace forge {

static void look_at_fault(const wire::Fault& f) {
  static const SharedBuffer buffer = SharedBuffer::make(100, "x").value();
  static const std::vector<MappedBuffer> mapped = {{"input x", &buffer, false}};
  wire::Fault near = f;  // beside the buffer, where a distance is told
  near.address = reinterpret_cast<std::uint64_t>(buffer.mapping()) + f.address;
  for (const wire::Fault& each : {f, near}) HOLDS(!classify_fault(each, mapped).detail.empty());
}

FORGE_FUZZ_TARGET(judge_packets) {
  int ends[2];
  HOLDS(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  const Fd judge(ends[0]), runner(ends[1]);
  fuzz::PacketScript script(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  Packet packet;
  while (const auto made = script.next(std::nullopt, 1)) {
    const int fds[3] = {judge.get(), runner.get(), 0};
    if (send_packet(runner.get(), made->bytes.data(), made->bytes.size(), fds, static_cast<std::size_t>(made->descriptors)) != 0) break;
    const Received r = receive_packet(judge.get(), packet, 0);
    HOLDS(r == Received::packet || made->bytes.empty());
    HOLDS(packet.fds.size() == static_cast<std::size_t>(made->descriptors));
    (void)packet.kind();
    if (const auto* f = packet.as<wire::Fault>()) look_at_fault(*f);
    if (const auto* reply = packet.as<wire::Reply>()) HOLDS(text_of(reply->text).size() <= sizeof reply->text);
    if (const auto* done = packet.as<wire::CudaDone>()) {
      std::vector<XidReport> xids;
      if (auto x = parse_xid(std::string(bytes))) xids.push_back(std::move(*x));
      for (const PlacedAllocation& p : {PlacedAllocation{"x", 0x7000, 4096, 256, 512, true}, PlacedAllocation{"y", ~0ull - 100, 50, 0, 50}})
        HOLDS(!classify_cuda_fault(700, text_of(done->text), xids, true, {p}).detail.empty());
    }
  }
  packet.fds.clear();
  HOLDS(Fd(dup(0)).get() < 200);  // no descriptor is lost
  (void)parse_xid(std::string(bytes));
}

}  // namespace forge
