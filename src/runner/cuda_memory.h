// SPDX-License-Identifier: Apache-2.0
// A GPU runner's side of the judge's memory: what was imported, where it lies here, and with which rights.
#pragma once
#include <map>

#include "device/cuda_driver.h"
#include "runner/cuda_protocol.h"
#include "runner/serve.h"

namespace forge {

class CudaImports {
 public:
  explicit CudaImports(const cu::Driver& d) : m_driver(d) {}
  CudaImports(const CudaImports&) = delete;
  ~CudaImports();
  Answer import(const wire::CudaImport&, int fd, std::uint64_t& address);
  // Without a judge: memory of this process, all zero, under the judge's number.
  Answer allocate(const wire::CudaImport&, std::uint64_t& address);
  Answer forget(std::uint64_t allocation);
  // The address of `bytes` bytes at a place; 0 when they do not lie in an imported allocation.
  std::uint64_t at(const wire::Place&, std::uint64_t bytes) const;

  static constexpr std::uint64_t kGuardBytes = std::uint64_t(64) << 20;

 private:
  struct Mapped {
    std::uint64_t handle = 0, reserved = 0, reserved_bytes = 0, address = 0, bytes = 0;
    bool writable = false, own = false;  // own: allocated here
  };
  void release(Mapped&);
  const cu::Driver& m_driver;
  std::map<std::uint64_t, Mapped> m_mapped;
};

}  // namespace forge
