// SPDX-License-Identifier: Apache-2.0
// The judge's own context on the card with its kernels. Owned jointly by the judge, its bases and its stages; used from one thread.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "core/package.h"
#include "core/target.h"
#include "device/cuda.h"
#include "device/kernels/judge.cuh"

namespace forge {

class JudgeDevice {
 public:
  static Result<std::shared_ptr<JudgeDevice>> make(const Machine&);

  // `items`: how many threads have something to do; the grid fills the card at most.
  template <class Arguments>
  Status launch(const char* entry, const Arguments& arguments, std::int64_t items) const {
    return m_module->launch(entry, blocks_for(items), judge::kThreads, 0, &arguments);
  }
  std::int64_t blocks_for(std::int64_t items) const;
  std::int64_t most_blocks() const { return m_sm_count * 8; }
  std::int64_t sm_count() const { return m_sm_count; }
  CudaContext& context() const { return *m_context; }
  Result<DeviceMemory> upload(const void* from, std::size_t bytes) const;
  // How many blocks of an image's launch fit the card. The image is loaded here to be asked, never launched, and unloaded.
  Result<std::int64_t> resident(const Image&, const LaunchSpec&, std::int64_t smem_bytes);

 private:
  JudgeDevice() = default;
  std::shared_ptr<CudaContext> m_context;
  std::unique_ptr<CudaModule> m_module;
  std::int64_t m_sm_count = 1;
  std::map<std::string, std::int64_t> m_resident;
};

}  // namespace forge
