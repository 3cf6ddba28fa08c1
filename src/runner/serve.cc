// SPDX-License-Identifier: Apache-2.0
#include "runner/serve.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "runner/cuda_serve.h"

namespace forge {

double clock_seconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

Answer BufferMaps::replace(const wire::Prepare& p, const std::vector<Fd>& fds) {
  for (const auto& b : m_mapped) munmap(reinterpret_cast<void*>(b.address), b.file_bytes);
  m_mapped.clear();
  if (p.buffer_count > wire::k_max_buffers || fds.size() != p.buffer_count)
    return {wire::Outcome::refused, "buffers and descriptors differ"};
  for (std::uint32_t i = 0; i < p.buffer_count; ++i) {
    const wire::Buffer& b = p.buffers[i];
    const int rights = b.writable ? PROT_READ | PROT_WRITE : PROT_READ;
    // Populated, so that neither side of a pair pays for page faults inside its clock.
    void* at =
        mmap(reinterpret_cast<void*>(b.address), b.file_bytes, rights, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE, fds[i].get(), 0);
    if (at == MAP_FAILED)
      return {errno == ENOMEM ? wire::Outcome::out_of_memory : wire::Outcome::broken,
              fmt::format("cannot map {} bytes at {:#x} (errno {})", b.file_bytes, b.address, errno)};
    m_mapped.push_back(b);
  }
  return {};
}

namespace {

bool reply_to(int channel, const Packet& request, wire::Reply& reply, const Answer& answer) {
  wire::Header h;
  std::memcpy(&h, request.bytes, sizeof h);
  reply.outcome = answer.outcome;
  copy_text(reply.text, answer.text);
  return send_message(channel, reply, h.sequence) == 0;
}

}  // namespace

std::unique_ptr<Served> refuse_load(wire::Reply& reply, wire::Outcome outcome, const std::string& why) {
  reply.outcome = outcome;
  copy_text(reply.text, why);
  return nullptr;
}

bool read_image(int fd, std::uint64_t bytes, std::string& out) {
  struct stat file;
  if (fstat(fd, &file) != 0 || file.st_size < 0 || bytes > static_cast<std::uint64_t>(file.st_size)) return false;
  out.resize(bytes);
  return pread(fd, out.data(), out.size(), 0) == static_cast<ssize_t>(out.size());
}

int serve(int channel) {
  auto packet = std::make_unique<Packet>();
  wire::Header hello{.kind = wire::Kind::hello, .bytes = sizeof(wire::Header)};
  if (send_packet(channel, &hello, sizeof hello) != 0) return 2;

  if (receive_packet(channel, *packet, -1) != Received::packet) return 2;
  const auto* load = packet->as<wire::Load>();
  if (!load) return 2;
  if (load->subject == wire::Subject::cuda_image || load->subject == wire::Subject::cuda_expert) return serve_cuda(channel, *packet);
  wire::Reply loaded;
  std::unique_ptr<Served> served;
  if (load->subject == wire::Subject::image) {
    if (packet->fds.size() != 1) return 2;
    served = serve_image(*load, packet->fds[0].get(), loaded);
  } else {
    served = serve_expert(*load, loaded);
  }
  packet->fds.clear();
  if (send_message(channel, loaded, load->header.sequence) != 0 || !served) return 2;

  BufferMaps maps;
  for (;;) {
    const Received r = receive_packet(channel, *packet, -1);
    if (r != Received::packet) return r == Received::closed ? 0 : 2;
    if (const auto* go = packet->as<wire::Go>()) {
      wire::Done done;
      const Answer a = served->call(done.inside_s);
      done.outcome = a.outcome;
      copy_text(done.text, a.text);
      if (send_message(channel, done, go->header.sequence) != 0) return 2;
    } else if (const auto* ready = packet->as<wire::Ready>()) {
      if (ready->pattern != 0) served->ready(ready->pattern);
      wire::Reply reply;
      if (!reply_to(channel, *packet, reply, {})) return 2;
    } else if (const auto* prepare = packet->as<wire::Prepare>()) {
      Answer a = maps.replace(*prepare, packet->fds);
      packet->fds.clear();
      if (a.outcome == wire::Outcome::ok) a = served->prepare(*prepare);
      wire::Reply reply;
      served->describe(reply);
      if (a.outcome == wire::Outcome::ok) a.text = text_of(reply.text);
      if (!reply_to(channel, *packet, reply, a)) return 2;
    } else if (const auto* profile = packet->as<wire::Profile>()) {
      auto samples = std::make_unique<wire::Samples>();
      served->profile(profile->seconds, *samples);
      if (send_message(channel, *samples, profile->header.sequence) != 0) return 2;
    } else {
      return 2;  // not our judge
    }
  }
}

}  // namespace forge
