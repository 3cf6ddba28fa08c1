// SPDX-License-Identifier: Apache-2.0
// Context, memory and modules of this process on the first card.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "device/cuda.h"
#include "device/cuda_driver.h"

namespace forge {
namespace {

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

class PrimaryContext final : public CudaContext {
 public:
  explicit PrimaryContext(const cu::Driver& d) : m_driver(d) {}
  ~PrimaryContext() override { m_driver.context_release(0); }
  Status synchronize() override { return cu::check(m_driver, m_driver.context_synchronize(), "a kernel"); }
  Status copy_to_device(DevicePointer to, const void* from, std::size_t bytes) override {
    return cu::check(m_driver, m_driver.copy_to_device(to, from, bytes), fmt::format("copying {} bytes to the card", bytes));
  }
  Status copy_to_host(void* to, DevicePointer from, std::size_t bytes) override {
    return cu::check(m_driver, m_driver.copy_to_host(to, from, bytes), fmt::format("copying {} bytes from the card", bytes));
  }
  Status fill(DevicePointer at, unsigned char value, std::size_t bytes) override {
    return cu::check(m_driver, m_driver.fill(at, value, bytes, nullptr), "filling memory on the card");
  }
  std::size_t free_bytes() override {
    std::size_t free = 0, total = 0;
    m_driver.memory_info(&free, &total);
    return free;
  }

 private:
  const cu::Driver& m_driver;
};

}  // namespace

Result<std::shared_ptr<CudaContext>> CudaContext::make() {
  FORGE_TRY_ASSIGN(const cu::Driver* d, cu::driver());
  static std::weak_ptr<CudaContext> held;
  auto context = held.lock();
  cu::Handle handle = nullptr;
  FORGE_TRY(cu::check(*d, d->context_retain(&handle, 0), "making a context on the card"));
  FORGE_TRY(cu::check(*d, d->context_set(handle), "making the context current"));
  if (context) {
    d->context_release(0);  // retained once is enough
    return context;
  }
  context = std::make_shared<PrimaryContext>(*d);
  held = context;
  return context;
}

Result<DeviceMemory> DeviceMemory::make(std::size_t bytes) {
  FORGE_TRY_ASSIGN(const cu::Driver* d, cu::driver());
  DeviceMemory m;
  FORGE_TRY(
      cu::check(*d, d->memory_allocate(&m.m_data, std::max<std::size_t>(bytes, 1)), fmt::format("allocating {} bytes on the card", bytes)));
  m.m_bytes = bytes;
  return m;
}
DeviceMemory::DeviceMemory(DeviceMemory&& o) noexcept : m_data(std::exchange(o.m_data, 0)), m_bytes(o.m_bytes) {}
DeviceMemory& DeviceMemory::operator=(DeviceMemory&& o) noexcept {
  std::swap(m_data, o.m_data);
  std::swap(m_bytes, o.m_bytes);
  return *this;
}
DeviceMemory::~DeviceMemory() {
  if (m_data) (*cu::driver())->memory_free(m_data);
}

Result<DeviceBuffer> DeviceBuffer::make(std::size_t bytes, const std::string& label) {
  FORGE_TRY_ASSIGN(const cu::Driver* d, cu::driver());
  const cu::AllocationProp prop;
  std::size_t unit = 0;
  FORGE_TRY(cu::check(*d, d->granularity(&unit, &prop, 0), "asking for the allocation granularity"));
  static std::atomic<std::uint64_t> made = 0;
  DeviceBuffer b;
  b.m_id = ++made;
  b.m_label = label;
  b.m_bytes = bytes;
  b.m_allocation_bytes = round_up(std::max<std::size_t>(bytes, 1) + 256, unit);  // at least 256 bytes of slack in front
  b.m_offset = b.m_allocation_bytes - round_up(std::max<std::size_t>(bytes, 1), 256);
  const std::string what = fmt::format("allocating {} bytes on the card for '{}'", b.m_allocation_bytes, label);
  FORGE_TRY(cu::check(*d, d->vm_create(&b.m_handle, b.m_allocation_bytes, &prop, 0), what));
  b.m_reserved_bytes = b.m_allocation_bytes + 2 * unit;  // unmapped on both sides
  FORGE_TRY(cu::check(*d, d->vm_reserve(&b.m_reserved, b.m_reserved_bytes, unit, 0, 0), what));
  FORGE_TRY(cu::check(*d, d->vm_map(b.m_reserved + unit, b.m_allocation_bytes, 0, b.m_handle, 0), what));
  b.m_allocation = b.m_reserved + unit;
  const cu::AccessDesc rights{.location = {}, .flags = 3};
  FORGE_TRY(cu::check(*d, d->vm_access(b.m_allocation, b.m_allocation_bytes, &rights, 1), what));
  int fd = -1;
  FORGE_TRY(cu::check(*d, d->vm_export(&fd, b.m_handle, 1, 0), what));
  b.m_fd = Fd(fd);  // close-on-exec: it is passed over the runner's channel
  return b;
}
DeviceBuffer::DeviceBuffer(DeviceBuffer&& o) noexcept { *this = std::move(o); }
DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& o) noexcept {
  std::swap(m_reserved, o.m_reserved);
  std::swap(m_allocation, o.m_allocation);
  std::swap(m_reserved_bytes, o.m_reserved_bytes);
  std::swap(m_allocation_bytes, o.m_allocation_bytes);
  std::swap(m_bytes, o.m_bytes);
  std::swap(m_offset, o.m_offset);
  std::swap(m_handle, o.m_handle);
  std::swap(m_id, o.m_id);
  std::swap(m_label, o.m_label);
  std::swap(m_fd, o.m_fd);
  return *this;
}
DeviceBuffer::~DeviceBuffer() {
  const auto opened = cu::driver();
  if (!opened) return;
  const cu::Driver& d = **opened;
  if (m_allocation) d.vm_unmap(m_allocation, m_allocation_bytes);
  if (m_reserved) d.vm_free(m_reserved, m_reserved_bytes);
  if (m_handle) d.vm_release(m_handle);
}

Result<CudaModule> CudaModule::load(const std::string& cubin) {
  FORGE_TRY_ASSIGN(const cu::Driver* d, cu::driver());
  CudaModule m;
  FORGE_TRY(cu::check(*d, d->module_load(&m.m_module, cubin.data()), "loading a module"));
  return m;
}
CudaModule::CudaModule(CudaModule&& o) noexcept : m_module(std::exchange(o.m_module, nullptr)) {}
CudaModule& CudaModule::operator=(CudaModule&& o) noexcept {
  std::swap(m_module, o.m_module);
  return *this;
}
CudaModule::~CudaModule() {
  if (m_module) (*cu::driver())->module_unload(m_module);
}

void* CudaModule::function(const std::string& entry) const {
  cu::Handle f = nullptr;
  return (*cu::driver())->module_function(&f, m_module, entry.c_str()) == cu::kSuccess ? f : nullptr;
}

Result<std::int64_t> CudaModule::resident_blocks(const std::string& entry, int block, std::int64_t smem_bytes, int cluster) const {
  const cu::Driver& d = **cu::driver();
  void* f = function(entry);
  if (!f) return fail(Code::bad_input, fmt::format("the image has no entry '{}'", entry));
  const std::string what = "asking for the occupancy of " + entry;
  FORGE_TRY(cu::check(d, d.function_set(f, cu::kFunctionMaxDynamicShared, int(smem_bytes)), what));
  int sms = 0, per_sm = 0;
  FORGE_TRY(cu::check(d, d.device_attribute(&sms, cu::kSmCount, 0), what));
  if (cluster <= 1) {
    FORGE_TRY(cu::check(d, d.occupancy_blocks(&per_sm, f, block, std::size_t(smem_bytes)), what));
    return std::int64_t(per_sm) * sms;
  }
  cu::LaunchAttribute attribute{.id = cu::kAttributeCluster};
  attribute.value.cluster = {unsigned(cluster), 1, 1};
  cu::LaunchConfig config{.grid_x = unsigned(cluster),
                          .block_x = unsigned(block),
                          .shared_bytes = unsigned(smem_bytes),
                          .attributes = &attribute,
                          .attribute_count = 1};
  int clusters = 0;
  FORGE_TRY(cu::check(d, d.occupancy_clusters(&clusters, f, &config), what));
  return std::int64_t(clusters) * cluster;
}

Status CudaModule::launch(const std::string& entry, std::int64_t grid, int block, std::int64_t smem_bytes, const void* args) const {
  const cu::Driver& d = **cu::driver();
  void* f = function(entry);
  if (!f) return fail(Code::internal, fmt::format("our device code has no entry '{}'", entry));
  const cu::LaunchConfig config{.grid_x = unsigned(grid), .block_x = unsigned(block), .shared_bytes = unsigned(smem_bytes)};
  void* parameters[] = {const_cast<void*>(args)};
  return cu::check(d, d.launch(&config, f, parameters, nullptr), "launching " + entry);
}

}  // namespace forge
