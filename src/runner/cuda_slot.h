// SPDX-License-Identifier: Apache-2.0
// One slot of an image's runner: the call as the judge described it, with real addresses, encoded tensor maps and launches that the
// card is known to take. It outlives reloads of the module: functions are looked up anew by bind().
#pragma once
#include <string>
#include <vector>

#include "runner/cuda_memory.h"

namespace forge {

class CudaSlot {
 public:
  // Fills addresses and maps in. `entries`: the image's, as load named them.
  static Answer make(const cu::Driver&, const wire::CudaPrepare&, const CudaImports&, const std::vector<std::string>& entries,
                     CudaSlot& slot);
  // Looks the functions up in a module, raises their limit of shared memory, and asks whether each launch fits the card at all.
  Answer bind(const cu::Driver&, cu::Handle module);
  Answer queue(const cu::Driver&, cu::Handle stream);

 private:
  struct Launch {
    wire::CudaLaunch what;
    std::string entry;
    cu::Handle function = nullptr;
    std::string text() const;
  };
  struct Zero {
    std::uint64_t address = 0, bytes = 0;
  };
  std::vector<Launch> m_launches;
  std::vector<Zero> m_zeros;
  alignas(128) unsigned char m_args[wire::k_max_args] = {};
};

Answer encode_map(const cu::Driver&, const wire::CudaMap&, std::uint64_t address, cu::TensorMap& out);

}  // namespace forge
