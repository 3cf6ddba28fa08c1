// SPDX-License-Identifier: Apache-2.0
// A runner and a judge that sends anything: up to loading (nothing is ever loaded, because no image has the entry asked for), the
// judge's buffers, and a GPU's requests over the tests' driver of host functions. What a loaded kernel does is not this target's.
// Input: one byte for which of them, then packets.
// link: forge_runner
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit/runner/cuda_fake_driver.h"
#include "fuzz/packets.h"
#include "fuzz/target.h"
#include "runner/cuda_serve.h"

namespace forge {

static void forbid_loading(std::vector<unsigned char>& bytes) {
  if (bytes.size() != sizeof(wire::Load)) return;
  wire::Load load;
  std::memcpy(&load, bytes.data(), sizeof load);
  load.subject = wire::Subject::image;
  if (load.entry_count == 0) load.entry_count = 1;
  std::strcpy(load.entries[0], "an entry that no symbol table has, because of its blanks");
  std::memcpy(bytes.data(), &load, sizeof load);
}

FORGE_FUZZ_TARGET(runner_serve) {
  if (bytes.empty()) return;
  const int which = static_cast<unsigned char>(bytes[0]) % 3;
  fuzz::PacketScript script(reinterpret_cast<const unsigned char*>(bytes.data()) + 1, bytes.size() - 1);
  int ends[2];
  HOLDS(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  const Fd judge(ends[0]), runner(ends[1]);
  const Fd file(memfd_create("fuzz", MFD_CLOEXEC));
  HOLDS(write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  BufferMaps maps;
  for (int i = 0; i < 6; ++i) {  // their answers must fit the socket's buffer: nobody reads them
    auto made = script.next(std::nullopt, 1);
    if (!made) break;
    if (which == 0) forbid_loading(made->bytes);
    if (which == 1 && made->bytes.size() == sizeof(wire::Prepare)) {
      wire::Prepare p;
      std::memcpy(&p, made->bytes.data(), sizeof p);
      std::vector<Fd> fds;
      for (int k = 0; k < made->descriptors; ++k) fds.emplace_back(dup(file.get()));
      for (wire::Buffer& b : p.buffers) b.file_bytes &= 0xffffff, b.address &= 0x7fffffffffff;
      (void)maps.replace(p, fds);
    }
    const int fds[3] = {file.get(), file.get(), file.get()};
    if (send_packet(judge.get(), made->bytes.data(), made->bytes.size(), fds, static_cast<std::size_t>(made->descriptors)) != 0) break;
  }
  shutdown(judge.get(), SHUT_WR);
  (void)maps.replace({}, {});
  if (which == 0) HOLDS(serve(runner.get()) != 1);
  if (which == 2) {
    fake_card::state() = {};
    cu::set_driver(&fake_card::driver());
    if (const auto vehicle = CudaVehicle::make(fake_card::driver(), "our cubin"))
      if (const auto served = serve_cuda_image(**vehicle, "cubin", {"copy"})) {
        Packet packet;
        (void)serve_cuda_requests(runner.get(), packet, **vehicle, **served);
      }
    cu::set_driver(nullptr);
  }
  HOLDS(Fd(dup(0)).get() < 200);  // no descriptor is lost
}

}  // namespace forge
