// SPDX-License-Identifier: Apache-2.0
#include "gate/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>

namespace forge {

Result<std::shared_ptr<JudgeDevice>> JudgeDevice::make(const Machine& machine) {
  std::shared_ptr<JudgeDevice> device(new JudgeDevice);
  FORGE_TRY_ASSIGN(device->m_context, CudaContext::make());
  FORGE_TRY_ASSIGN(const std::string code, read_device_code("judge", machine.target));
  FORGE_TRY_ASSIGN(CudaModule module, CudaModule::load(code));
  device->m_module = std::make_unique<CudaModule>(std::move(module));
  const auto sms = machine.properties.find("sm_count");
  if (sms == machine.properties.end() || sms->second < 1) return fail(Code::internal, "the card's number of SMs is not known");
  device->m_sm_count = sms->second;
  return device;
}

std::int64_t JudgeDevice::blocks_for(std::int64_t items) const {
  return std::clamp<std::int64_t>((items + judge::kThreads - 1) / judge::kThreads, 1, most_blocks());
}

Result<DeviceMemory> JudgeDevice::upload(const void* from, std::size_t bytes) const {
  FORGE_TRY_ASSIGN(DeviceMemory memory, DeviceMemory::make(bytes));
  if (bytes > 0) FORGE_TRY(m_context->copy_to_device(memory.data(), from, bytes));
  return memory;
}

Result<std::int64_t> JudgeDevice::resident(const Image& image, const LaunchSpec& launch, std::int64_t smem_bytes) {
  const std::string key = fmt::format("{}:{}:{}:{}:{}", image.sha256, launch.entry, launch.block.value_or(1), smem_bytes, launch.cluster);
  if (const auto known = m_resident.find(key); known != m_resident.end()) return known->second;
  FORGE_TRY_ASSIGN(const CudaModule module, CudaModule::load(image.bytes));
  FORGE_TRY_ASSIGN(const std::int64_t blocks, module.resident_blocks(launch.entry, launch.block.value_or(1), smem_bytes, launch.cluster));
  return m_resident[key] = blocks;
}

}  // namespace forge
