// SPDX-License-Identifier: Apache-2.0
// What is around every call on a GPU, the same for an image and for an expert: cold L2, a held stream, two events, the SM clock;
// and the scrubs between calls. One context, one stream, one thread. docs/formats/runner-protocol.md, "On a GPU".
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "device/cuda.h"
#include "device/cuda_driver.h"
#include "runner/cuda_protocol.h"
#include "runner/serve.h"

namespace forge {

class CudaVehicle {
 public:
  static Result<std::unique_ptr<CudaVehicle>> make(const cu::Driver&, const std::string& runner_code);
  ~CudaVehicle();

  cu::Handle stream() const { return m_stream; }
  const cu::Driver& driver() const { return m_driver; }

  // Local memory that a frame of `frame` bytes can reach, shared memory and registers. False: no scrub kernel has such a frame.
  static bool can_scrub(std::int64_t frame);
  Answer scrub(std::uint64_t pattern, std::int64_t frame);

  using Queue = std::function<Answer(std::uint32_t slot)>;  // puts a slot's work into the stream
  Answer call(const Queue&, wire::CudaDone&);
  Answer batch(const wire::CudaBatch&, const Queue&, int* error = nullptr);
  void forget_recorded();             // what graphs hold of a module or of a slot is gone
  Answer wait(int* error = nullptr);  // for everything in the context

 private:
  explicit CudaVehicle(const cu::Driver& d) : m_driver(d) {}
  Answer launch(const char* entry, std::int64_t grid, int block, std::int64_t shared_bytes, bool cooperative, const void* args);
  Answer record(std::uint32_t slot, const Queue&);
  void unpin();  // persisting lines
  Answer flush();

  const cu::Driver& m_driver;
  std::shared_ptr<CudaContext> m_context;
  cu::Handle m_stream = nullptr, m_begin = nullptr, m_end = nullptr;
  std::unique_ptr<CudaModule> m_code;
  DeviceMemory m_flush, m_scratch;                 // scratch: the scrubs' counter, then 256 random words
  std::map<std::uint32_t, cu::Handle> m_recorded;  // by slot: flush and call, ready to be launched
  std::uint32_t* m_host = nullptr;                 // mapped: flag, expired, then at byte 16 the clock's answer
  std::int64_t m_sms = 1, m_shared_bytes = 0;
};

// Ends as load_failed when a launch cannot be made, faulted for what breaks a context, out_of_memory.
Answer cuda_answer(const cu::Driver&, cu::Status, const std::string& what);

}  // namespace forge
