// SPDX-License-Identifier: Apache-2.0
#include "runner/cuda_vehicle.h"

#include <fmt/format.h>

#include <algorithm>

namespace forge {
namespace {

constexpr std::uint32_t kFlushAlone = 0;  // in the place of a batch's slot: they begin at 1
constexpr std::uint64_t kHoldNs = 2'000'000, kClockNs = 8'000;
constexpr std::size_t kScratchBytes = 4096, kWordsOffset = 2048;

struct FillArgs {
  std::uint64_t address, bytes, seed;
};
struct FlushArgs {
  std::uint64_t address, bytes, sink;
};
struct HoldArgs {
  std::uint64_t flag, expired, nanoseconds;
};
struct ClockArgs {
  std::uint64_t out, nanoseconds;
};
struct ScrubArgs {
  std::uint64_t words, arrived;
  std::uint32_t pattern, shared_words;
};

constexpr struct {
  std::int64_t frame;
  const char* entry;
} kLocalScrubs[] = {
    {256, "forge_scrub_local_256"}, {1024, "forge_scrub_local_1024"}, {4096, "forge_scrub_local_4096"}, {16384, "forge_scrub_local_16384"}};

int attribute(const cu::Driver& d, int which) {
  int value = 0;
  d.device_attribute(&value, which, 0);
  return value;
}

}  // namespace

Answer cuda_answer(const cu::Driver& d, cu::Status s, const std::string& what) {
  if (s == cu::kSuccess) return {};
  const std::string text = fmt::format("{}: {}", what, cu::describe(d, s));
  if (s == cu::kOutOfMemory) return {wire::Outcome::out_of_memory, text};
  if (s == cu::kInvalidValue || s == cu::kLaunchOutOfResources || s == cu::kCooperativeTooLarge || s < 700)
    return {wire::Outcome::load_failed, text};
  return {wire::Outcome::faulted, text};
}

Result<std::unique_ptr<CudaVehicle>> CudaVehicle::make(const cu::Driver& d, const std::string& runner_code) {
  std::unique_ptr<CudaVehicle> v(new CudaVehicle(d));
  FORGE_TRY_ASSIGN(v->m_context, CudaContext::make());
  FORGE_TRY_ASSIGN(CudaModule code, CudaModule::load(runner_code));
  v->m_code = std::make_unique<CudaModule>(std::move(code));
  // A blocking stream: what an expert puts into the default stream is ordered with it, and so inside the events.
  FORGE_TRY(cu::check(d, d.stream_create(&v->m_stream, 0), "making a stream"));
  FORGE_TRY(cu::check(d, d.event_create(&v->m_begin, 0), "making an event"));
  FORGE_TRY(cu::check(d, d.event_create(&v->m_end, 0), "making an event"));
  void* host = nullptr;
  FORGE_TRY(cu::check(d, d.host_allocate(&host, 4096, cu::kHostMapped), "allocating host memory"));
  v->m_host = static_cast<std::uint32_t*>(host);
  v->m_sms = std::max(1, attribute(d, cu::kSmCount));
  v->m_shared_bytes = attribute(d, cu::kMaxSharedPerBlockOptin);
  const std::size_t l2 = static_cast<std::size_t>(std::max(1 << 20, attribute(d, cu::kL2Bytes)));
  FORGE_TRY_ASSIGN(v->m_flush, DeviceMemory::make(4 * l2));
  FORGE_TRY_ASSIGN(v->m_scratch, DeviceMemory::make(kScratchBytes));
  for (const auto& [memory, seed] : {std::pair{&v->m_flush, 0x5eedu}, std::pair{&v->m_scratch, 0x5eefu}}) {
    const FillArgs fill{memory->data(), memory->bytes(), seed};
    if (const Answer a = v->launch("forge_fill_random", 8 * v->m_sms, 256, 0, false, &fill); a.outcome != wire::Outcome::ok)
      return fail(Code::crashed, a.text);
  }
  if (const Answer a = v->wait(); a.outcome != wire::Outcome::ok) return fail(Code::crashed, a.text);
  return v;
}

CudaVehicle::~CudaVehicle() {
  forget_recorded();
  if (m_host) m_driver.host_free(m_host);
}

Answer CudaVehicle::launch(const char* entry, std::int64_t grid, int block, std::int64_t shared_bytes, bool cooperative, const void* args) {
  void* f = m_code->function(entry);
  if (!f) return {wire::Outcome::broken, fmt::format("our device code has no entry '{}'", entry)};
  if (shared_bytes > 0)
    if (const cu::Status s = m_driver.function_set(f, cu::kFunctionMaxDynamicShared, int(shared_bytes)); s != cu::kSuccess)
      return cuda_answer(m_driver, s, entry);
  cu::LaunchAttribute attribute{.id = cu::kAttributeCooperative};
  attribute.value.number = 1;
  const cu::LaunchConfig config{.grid_x = unsigned(grid),
                                .block_x = unsigned(block),
                                .shared_bytes = unsigned(shared_bytes),
                                .stream = m_stream,
                                .attributes = cooperative ? &attribute : nullptr,
                                .attribute_count = cooperative ? 1u : 0u};
  void* parameters[] = {const_cast<void*>(args)};
  return cuda_answer(m_driver, m_driver.launch(&config, f, parameters, nullptr), entry);
}

Answer CudaVehicle::wait(int* error) {
  const cu::Status s = m_driver.context_synchronize();
  if (error) *error = s;
  return cuda_answer(m_driver, s, "a kernel");
}

bool CudaVehicle::can_scrub(std::int64_t frame) { return frame <= std::rbegin(kLocalScrubs)->frame; }

Answer CudaVehicle::scrub(std::uint64_t pattern, std::int64_t frame) {
  ScrubArgs args{m_scratch.data() + kWordsOffset, m_scratch.data(), static_cast<std::uint32_t>(pattern), 0};
  const auto run = [&](const char* entry, std::int64_t grid, int block, std::int64_t shared) -> Answer {
    if (const Answer a = cuda_answer(m_driver, m_driver.fill(m_scratch.data(), 0, 8, m_stream), "clearing a counter");
        a.outcome != wire::Outcome::ok)
      return a;
    return launch(entry, grid, block, shared, true, &args);
  };
  for (const auto& local : kLocalScrubs) {
    if (local.frame < frame) continue;
    if (const Answer a = run(local.entry, 2 * m_sms, 1024, 0); a.outcome != wire::Outcome::ok) return a;
    break;
  }
  args.shared_words = static_cast<std::uint32_t>(m_shared_bytes / 4);
  if (const Answer a = run("forge_scrub_shared", m_sms, 256, m_shared_bytes); a.outcome != wire::Outcome::ok) return a;
  return wait();
}

// Both, and before the flush: lines that were pinned earlier survive any one of them alone (measured on an H200).
void CudaVehicle::unpin() {
  m_driver.context_limit(cu::kLimitPersistingL2, 0);
  m_driver.reset_persisting();
}

Answer CudaVehicle::flush() {
  const FlushArgs args{m_flush.data(), m_flush.bytes(), m_scratch.data() + 8};
  return launch("forge_flush", 4 * m_sms, 512, 0, false, &args);
}

Answer CudaVehicle::call(const Queue& queue, wire::CudaDone& done) {
  volatile std::uint32_t* flags = m_host;
  flags[0] = 0;
  flags[1] = 0;
  const auto* clock = reinterpret_cast<const volatile std::uint64_t*>(m_host + 4);
  const auto host = reinterpret_cast<std::uint64_t>(m_host);
  const HoldArgs hold{host, host + 4, kHoldNs};
  const ClockArgs look{host + 16, kClockNs};
  const auto queue_all = [&]() -> Answer {
    unpin();
    if (Answer a = flush(); a.outcome != wire::Outcome::ok) return a;
    if (Answer a = launch("forge_hold", 1, 1, 0, false, &hold); a.outcome != wire::Outcome::ok) return a;
    const double begin = clock_seconds();
    if (Answer a = cuda_answer(m_driver, m_driver.event_record(m_begin, m_stream), "an event"); a.outcome != wire::Outcome::ok) return a;
    if (Answer a = queue(0); a.outcome != wire::Outcome::ok) return a;
    if (Answer a = cuda_answer(m_driver, m_driver.event_record(m_end, m_stream), "an event"); a.outcome != wire::Outcome::ok) return a;
    done.host_s = clock_seconds() - begin;
    return launch("forge_clock", 1, 1, 0, false, &look);
  };
  const Answer queued = queue_all();
  flags[0] = 1;  // let the stream go, whatever is in it
  const Answer waited = wait(&done.error);
  if (queued.outcome != wire::Outcome::ok) return queued;
  if (waited.outcome != wire::Outcome::ok) return waited;
  float ms = 0;
  if (Answer a = cuda_answer(m_driver, m_driver.event_elapsed(&ms, m_begin, m_end), "reading the events"); a.outcome != wire::Outcome::ok)
    return a;
  done.inside_s = double(ms) * 1e-3;
  done.hold_expired = flags[1];
  if (clock[1] > 0) done.sm_mhz = 1e3 * double(clock[0]) / double(clock[1]);
  return {};
}

// What a graph needs of a module is in it, so it lives no longer than the module.
void CudaVehicle::forget_recorded() {
  for (const auto& [slot, graph] : m_recorded) m_driver.graph_release(graph);
  m_recorded.clear();
}

Answer CudaVehicle::record(std::uint32_t slot, const Queue& queue) {
  if (m_recorded.count(slot)) return {};
  const auto refused = [&](cu::Status s) {
    return Answer{wire::Outcome::refused, "its call cannot be recorded as a CUDA graph: " + cu::describe(m_driver, s)};
  };
  constexpr int kThreadLocal = 1;  // CUstreamCaptureMode
  if (const cu::Status s = m_driver.capture_begin(m_stream, kThreadLocal); s != cu::kSuccess) return refused(s);
  Answer queued = flush();
  if (queued.outcome == wire::Outcome::ok && slot != kFlushAlone) queued = queue(slot);
  cu::Handle recorded = nullptr, graph = nullptr;
  cu::Status s = m_driver.capture_end(m_stream, &recorded);
  if (s == cu::kSuccess) s = m_driver.graph_make(&graph, recorded, 0);
  if (recorded) m_driver.recording_release(recorded);
  if (queued.outcome != wire::Outcome::ok || s != cu::kSuccess) {
    if (graph) m_driver.graph_release(graph);
    return s != cu::kSuccess ? refused(s) : queued;
  }
  m_recorded[slot] = graph;
  return {};
}

Answer CudaVehicle::batch(const wire::CudaBatch& batch, const Queue& queue, int* error) {
  for (std::uint32_t slot = kFlushAlone; slot <= batch.graphs; ++slot)
    if (Answer a = record(slot, queue); a.outcome != wire::Outcome::ok) return a;
  if (batch.calls > 0 && batch.graphs == 0 && !batch.flush_only) return {wire::Outcome::refused, "a batch without graphs"};
  unpin();
  for (std::uint32_t i = 0; i < batch.calls; ++i) {
    const cu::Handle graph = m_recorded.at(batch.flush_only ? kFlushAlone : 1 + i % batch.graphs);
    if (const cu::Status s = m_driver.graph_launch(graph, m_stream); s != cu::kSuccess) {
      const Answer faulted = wait(error);  // an earlier call's
      return faulted.outcome != wire::Outcome::ok ? faulted : cuda_answer(m_driver, s, "launching a CUDA graph");
    }
  }
  return wait(error);
}

}  // namespace forge
