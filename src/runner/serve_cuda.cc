// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "runner/cuda_serve.h"
#include "runner/cuda_slot.h"

namespace forge {
namespace {

class ServedCudaImage final : public CudaServed {
 public:
  ServedCudaImage(CudaVehicle& vehicle, std::string cubin, std::vector<std::string> entries)
      : m_vehicle(vehicle), m_cubin(std::move(cubin)), m_entries(std::move(entries)) {}

  Status load() {
    FORGE_TRY_ASSIGN(CudaModule module, CudaModule::load(m_cubin));
    m_module = std::make_unique<CudaModule>(std::move(module));
    m_scrubs = 0;
    const cu::Driver& d = m_vehicle.driver();
    for (const auto& entry : m_entries) {
      void* f = m_module->function(entry);
      if (!f) return fail(Code::bad_input, fmt::format("the image has no entry '{}'", entry));
      int frame = 0;
      FORGE_TRY(cu::check(d, d.function_attribute(&frame, cu::kFunctionLocalBytes, f), "asking for an entry's local memory"));
      m_frame = std::max<std::int64_t>(m_frame, frame);
    }
    if (!CudaVehicle::can_scrub(m_frame))
      return fail(Code::unsupported,
                  fmt::format("an entry needs {} bytes of local memory a thread, more than the 16384 that can be overwritten between calls",
                              m_frame),
                  "keep arrays in registers or in shared memory");
    return {};
  }

  Answer prepare(const wire::CudaPrepare& p, const CudaImports& imports) override {
    if (p.slot > wire::k_max_batch) return {wire::Outcome::refused, fmt::format("slot {} is more than there may be", p.slot)};
    auto slot = std::make_unique<CudaSlot>();
    if (Answer a = CudaSlot::make(m_vehicle.driver(), p, imports, m_entries, *slot); a.outcome != wire::Outcome::ok) return a;
    if (Answer a = slot->bind(m_vehicle.driver(), m_module->handle()); a.outcome != wire::Outcome::ok) return a;
    m_vehicle.forget_recorded();
    m_slots[p.slot] = std::move(slot);
    return {};
  }

  Answer scrub(std::uint64_t pattern) override {
    if (Answer a = m_vehicle.scrub(pattern, m_frame); a.outcome != wire::Outcome::ok) return a;
    if (++m_scrubs < kCallsPerModule) return {};
    // The old module goes first, so that nothing of it is left when the new one takes its place.
    m_vehicle.forget_recorded();
    m_module.reset();
    if (const Status s = load(); !s) return {wire::Outcome::broken, "loading the module anew: " + s.error().text()};
    for (auto& [id, slot] : m_slots)
      if (Answer a = slot->bind(m_vehicle.driver(), m_module->handle()); a.outcome != wire::Outcome::ok) return a;
    return {};
  }

  Answer queue(std::uint32_t slot) override {
    const auto known = m_slots.find(slot);
    if (known == m_slots.end()) return {wire::Outcome::refused, fmt::format("slot {} was not prepared", slot)};
    return known->second->queue(m_vehicle.driver(), m_vehicle.stream());
  }

 private:
  CudaVehicle& m_vehicle;
  std::string m_cubin;
  std::vector<std::string> m_entries;
  std::unique_ptr<CudaModule> m_module;
  std::map<std::uint32_t, std::unique_ptr<CudaSlot>> m_slots;
  std::int64_t m_frame = 0;
  int m_scrubs = 0;
};

template <class Message>
bool answer(int channel, const wire::Header& request, Message& message, const Answer& a) {
  message.outcome = a.outcome;
  copy_text(message.text, a.text);
  return send_message(channel, message, request.sequence) == 0;
}

wire::Outcome outcome_of(const Error& e) {
  return e.code == Code::io ? wire::Outcome::out_of_memory : e.code == Code::internal ? wire::Outcome::broken : wire::Outcome::load_failed;
}

}  // namespace

Result<std::unique_ptr<CudaServed>> serve_cuda_image(CudaVehicle& vehicle, const std::string& cubin, std::vector<std::string> entries) {
  auto image = std::make_unique<ServedCudaImage>(vehicle, cubin, std::move(entries));
  FORGE_TRY(image->load());
  return std::unique_ptr<CudaServed>(std::move(image));
}

int serve_cuda_requests(int channel, Packet& packet, CudaVehicle& vehicle, CudaServed& served) {
  CudaImports imports(vehicle.driver());
  const CudaVehicle::Queue queue = [&](std::uint32_t slot) { return served.queue(slot); };
  for (;;) {
    const Received r = receive_packet(channel, packet, -1);
    if (r != Received::packet) return r == Received::closed ? 0 : 2;
    wire::Header header;
    std::memcpy(&header, packet.bytes, std::min(packet.size, sizeof header));
    bool sent = false;
    if (packet.as<wire::Go>()) {
      wire::CudaDone done;
      const Answer a = vehicle.call(queue, done);
      sent = answer(channel, header, done, a);
    } else if (const auto* batch = packet.as<wire::CudaBatch>()) {
      wire::CudaDone done;
      const Answer a = std::max(batch->calls, batch->graphs) > wire::k_max_batch
                           ? Answer{wire::Outcome::refused, "a batch of more calls than there may be"}
                           : vehicle.batch(*batch, queue, &done.error);
      sent = answer(channel, header, done, a);
    } else if (const auto* ready = packet.as<wire::Ready>()) {
      wire::Reply reply;
      sent = answer(channel, header, reply, ready->pattern ? served.scrub(ready->pattern) : Answer{});
    } else if (const auto* prepare = packet.as<wire::CudaPrepare>()) {
      wire::Reply reply;
      Answer a = served.prepare(*prepare, imports);
      served.describe(reply);
      if (a.outcome == wire::Outcome::ok) a.text = text_of(reply.text);
      sent = answer(channel, header, reply, a);
    } else if (const auto* import = packet.as<wire::CudaImport>()) {
      wire::CudaPlaced placed;
      const Answer a = packet.fds.size() == 1 ? imports.import(*import, packet.fds[0].get(), placed.address)
                                              : Answer{wire::Outcome::refused, "an import comes with one descriptor"};
      packet.fds.clear();
      sent = answer(channel, header, placed, a);
    } else if (const auto* forget = packet.as<wire::CudaForget>()) {
      wire::Reply reply;
      vehicle.forget_recorded();
      sent = answer(channel, header, reply, imports.forget(forget->allocation));
    } else if (packet.as<wire::Profile>()) {
      auto samples = std::make_unique<wire::Samples>();
      copy_text(samples->note, "a GPU's runner is not sampled; its image can be disassembled whole");
      sent = send_message(channel, *samples, header.sequence) == 0;
    } else {
      return 2;  // not our judge
    }
    if (!sent) return 2;
  }
}

int serve_cuda(int channel, Packet& packet) {
  const auto load = std::make_unique<wire::Load>(*packet.as<wire::Load>());
  const bool expert = load->subject == wire::Subject::cuda_expert;
  wire::Reply reply;
  const auto refuse = [&](const Error& e) {
    answer(channel, load->header, reply, {outcome_of(e), e.text()});
    return 2;
  };
  std::string cubin;
  std::vector<std::string> entries;
  if (!expert) {
    if (packet.fds.size() != 1 || load->entry_count > wire::k_max_entries) return 2;
    if (!read_image(packet.fds[0].get(), load->object_bytes, cubin))
      return refuse({.code = Code::internal, .message = "the image file is shorter than announced"});
    for (std::uint32_t i = 0; i < load->entry_count; ++i) entries.push_back(text_of(load->entries[i]));
  }
  packet.fds.clear();
  install_fault_handlers(channel, nullptr);
  reply.features = seal_cuda_runner();

  const auto d = cu::driver();
  if (!d) return refuse(d.error());
  const auto target = native_cuda_target();
  if (!target) return refuse(target.error());
  const auto code = read_device_code("runner", *target);
  if (!code) return refuse(code.error());
  const auto vehicle = CudaVehicle::make(**d, *code);
  if (!vehicle) return refuse(vehicle.error());
  const auto served = expert ? serve_cuda_expert(**vehicle, text_of(load->plugin)) : serve_cuda_image(**vehicle, cubin, std::move(entries));
  if (!served) return refuse(served.error());
  (*served)->describe(reply);
  if (send_message(channel, reply, load->header.sequence) != 0) return 2;
  return serve_cuda_requests(channel, packet, **vehicle, **served);
}

}  // namespace forge
