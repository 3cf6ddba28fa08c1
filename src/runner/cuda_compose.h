// SPDX-License-Identifier: Apache-2.0
// From a CallSpec on a GPU to the message that prepares it, and the allocations that it needs. Judge's side.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runner/once_file.h"
#include "runner/runner.h"

namespace forge {

// An allocation that the runner must have, with the role that it plays first.
struct NeededAllocation {
  const DeviceBuffer* buffer = nullptr;
  std::string role;
  bool writable = false;
};
struct ComposedCudaCall {
  std::unique_ptr<wire::CudaPrepare> message;
  std::vector<NeededAllocation> allocations;
};

// Bad input, with the field, when something has no value or does not fit the message.
Result<ComposedCudaCall> compose_cuda_image_call(const CallSpec&, const std::map<std::string, std::uint32_t>& entries);
Result<ComposedCudaCall> compose_cuda_expert_call(const CallSpec&);
// All but the load of a call that is made on its own; an image's inputs are told too, because there they must be filled. `entries`:
// null for an expert.
Result<OnceFile> compose_cuda_once(const CallSpec&, const std::map<std::string, std::uint32_t>* entries);

}  // namespace forge
