// SPDX-License-Identifier: Apache-2.0
// An NVIDIA GPU as a device: probe, ceilings, memory that judge and runner share, modules, launches. The driver is opened at run
// time (libcuda.so.1) and never linked; without it every function here is Code::unsupported and says what is missing.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/launch_plan.h"
#include "core/package.h"
#include "core/target.h"
#include "util/fs.h"

namespace forge {

using DevicePointer = std::uint64_t;  // CUdeviceptr

// This machine's card as a target. properties: sm_count l2_bytes shared_bytes_per_block shared_bytes_per_sm registers_per_sm
// memory_bytes sm_mhz_max memory_mhz vram_bus_bits. unsupported: no driver, no device, another architecture: says which.
Result<Machine> probe_cuda(const TargetSpec&);
// "cuda:sm_90a" of the first card; what native_cpu_target() is for a CPU.
Result<TargetSpec> native_cuda_target();
// Copy, read, f32 FMA and f16 matrix rates; cached per boot and device class when `cache` is given. Units: Ceilings.
Result<Ceilings> measure_cuda_ceilings(const Machine&, const fs::path& cache);
// One line a fact, for `forge doctor` and for records: "driver 580.159.04", "missing: libcuda.so.1 (install the NVIDIA driver)".
std::vector<std::string> cuda_findings();

// Folder of our own device code (cubins that the build made from src/device/kernels): beside the program.
Result<std::string> read_device_code(const std::string& name, const TargetSpec&);  // "judge", "runner", "ceilings"

// A context of this process on the first card. One a process; current on the thread that made it.
class CudaContext {
 public:
  static Result<std::shared_ptr<CudaContext>> make();
  virtual ~CudaContext() = default;
  virtual Status synchronize() = 0;  // waits for all work; a kernel's fault is Code::crashed and names it
  virtual Status copy_to_device(DevicePointer to, const void* from, std::size_t bytes) = 0;
  virtual Status copy_to_host(void* to, DevicePointer from, std::size_t bytes) = 0;
  virtual Status fill(DevicePointer, unsigned char value, std::size_t bytes) = 0;
  virtual std::size_t free_bytes() = 0;
};

// After process `gone` was killed or faulted: returns once the card answers this process's context promptly again and that process
// holds it no more. Code::io when that has not come within `patience_s`.
Status wait_for_clean_card(int gone, double patience_s);

// Plain device memory of this process, not shared.
class DeviceMemory {
 public:
  static Result<DeviceMemory> make(std::size_t bytes);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&&) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) noexcept;
  ~DeviceMemory();
  DevicePointer data() const { return m_data; }
  std::size_t bytes() const { return m_bytes; }

 private:
  DevicePointer m_data = 0;
  std::size_t m_bytes = 0;
};

// Judge-owned device memory that runners map (virtual memory management, exported as a file descriptor): the twin of
// SharedBuffer. The tensor ends (rounded up to 256 bytes) at the allocation's end, with unmapped addresses behind and before it.
class DeviceBuffer {
 public:
  static Result<DeviceBuffer> make(std::size_t bytes, const std::string& label);
  DeviceBuffer(DeviceBuffer&&) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) noexcept;
  ~DeviceBuffer();
  DevicePointer data() const { return m_allocation + m_offset; }
  std::size_t bytes() const { return m_bytes; }
  const std::string& label() const { return m_label; }
  std::size_t offset() const { return m_offset; }                      // of data() in the allocation
  std::size_t allocation_bytes() const { return m_allocation_bytes; }  // a multiple of the granularity, 2 MiB
  DevicePointer allocation() const { return m_allocation; }            // slack before data(): the judge keeps canaries there
  int fd() const { return m_fd.get(); }
  std::uint64_t id() const { return m_id; }  // of the allocation; never used twice in a process

 private:
  DeviceBuffer() = default;
  DevicePointer m_reserved = 0, m_allocation = 0;
  std::size_t m_reserved_bytes = 0, m_allocation_bytes = 0, m_bytes = 0, m_offset = 0;
  std::uint64_t m_handle = 0, m_id = 0;
  std::string m_label;
  Fd m_fd;
};

// A loaded cubin of this process.
class CudaModule {
 public:
  static Result<CudaModule> load(const std::string& cubin);
  CudaModule(CudaModule&&) noexcept;
  CudaModule& operator=(CudaModule&&) noexcept;
  ~CudaModule();
  // Blocks of this launch that fit the device at once: occupancy per SM x SMs, or active clusters x cluster. 0: none fits.
  Result<std::int64_t> resident_blocks(const std::string& entry, int block, std::int64_t smem_bytes, int cluster) const;
  // One launch on the context's stream, for our own kernels: `args` is the by-value argument struct.
  Status launch(const std::string& entry, std::int64_t grid, int block, std::int64_t smem_bytes, const void* args) const;
  void* function(const std::string& entry) const;  // CUfunction, null when unknown
  void* handle() const { return m_module; }

 private:
  CudaModule() = default;
  void* m_module = nullptr;
};

}  // namespace forge
