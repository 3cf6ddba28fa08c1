// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: what it is, what it can do at most, and how an image is placed and launched on it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/package.h"
#include "core/target.h"
#include "util/fs.h"

namespace forge {

// The widest known cpu target that this machine supports; unsupported says what is missing.
Result<TargetSpec> native_cpu_target();
// Caches, vector width, model, class, environment. Ceilings are left zero; no measurement.
Result<Machine> probe_cpu(const TargetSpec&);
// Measures the ceilings (about 1.5 s on all cores); cached in `cache` per boot and device class when given.
Result<Ceilings> measure_ceilings(const Machine&, const fs::path& cache);
std::vector<int> usable_cores();  // of this process's affinity mask

// A shared, judge-owned buffer: memfd, guard pages on both sides of every mapping. The judge maps it read-write,
// a runner maps it at the same address with the rights that the judge grants, so pointers mean the same on both sides.
class SharedBuffer {
 public:
  // The tensor ends (rounded up to `alignment`) at the last page's end, so that an overrun meets the guard page.
  // Pass 1024 for a workspace; a power of two from 256 to 4096. All pages are present on return.
  static Result<SharedBuffer> make(std::size_t bytes, const std::string& label, std::size_t alignment = 256);
  SharedBuffer(SharedBuffer&&) noexcept;
  SharedBuffer& operator=(SharedBuffer&&) noexcept;
  ~SharedBuffer();
  std::byte* data() const { return m_data; }  // first byte of the tensor, 256-byte aligned, judge's own mapping
  std::size_t bytes() const { return m_bytes; }
  const std::string& label() const { return m_label; }
  std::byte* mapping() const { return m_map; }  // first byte of the file's mapping; file_bytes() long
  static std::size_t guard_bytes();             // inaccessible on both sides of every mapping
  int fd() const { return m_fd.get(); }
  std::size_t file_bytes() const { return m_file_bytes; }
  std::size_t offset() const { return m_offset; }  // of data() in the file
  // Bytes of slack before and after the tensor inside the file: the judge keeps canaries there.
  std::span<std::byte> slack_before() const;
  std::span<std::byte> slack_after() const;
  // From now on nobody else can map it writable (F_SEAL_FUTURE_WRITE); the judge's mapping stays writable.
  Status seal_for_reading();

 private:
  SharedBuffer() = default;
  Fd m_fd;
  std::byte* m_map = nullptr;
  std::byte* m_data = nullptr;
  std::size_t m_bytes = 0, m_file_bytes = 0, m_offset = 0;
  std::string m_label;
};

// ---- used inside a runner only ----

struct BlockInfo {
  int index, count, worker, workers;
  void* scratch;
};  // = forge_block of forge_args.h
using EntryPoint = void (*)(const void* args, const BlockInfo*);

// The harness's own small loader: places an admitted object in RX and RO segments between guard pages, relocates, drops
// write permission. memcpy, memmove, memset, memcmp resolve to the loader's own; nothing else resolves. Images lie in an
// address range of their own, so that a system call made by a kernel's own code is told from the harness's.
#ifdef __SANITIZE_THREAD__  // whose own memory lies there
inline constexpr std::uint64_t k_image_region_begin = 0x60'0000'0000, k_image_region_end = 0x70'0000'0000;
#else
inline constexpr std::uint64_t k_image_region_begin = 0x3000'0000'0000, k_image_region_end = 0x3100'0000'0000;
#endif
class LoadedImage {
 public:
  static Result<LoadedImage> load(const std::string& object, const std::vector<std::string>& entries);
  LoadedImage(LoadedImage&&) noexcept;
  LoadedImage& operator=(LoadedImage&&) noexcept;
  ~LoadedImage();
  EntryPoint entry(const std::string& name) const;  // null when unknown
  std::size_t code_bytes() const;

 private:
  LoadedImage() = default;
  struct Impl;
  std::unique_ptr<Impl> m_impl;
};

// Pinned workers that take blocks in index order from a shared counter; every launch ends in a barrier. The calling thread is
// worker 0. Per block: MXCSR 0x1f80, direction flag, x87 reset. Between calls scrub() overwrites stacks, scratch and vector registers.
class WorkerPool {
 public:
  static Result<std::unique_ptr<WorkerPool>> make(const std::vector<int>& cores);
  virtual ~WorkerPool() = default;
  virtual void arm() = 0;  // every worker is awake and waits for the next launch; keeps wake-ups out of the clock
  virtual void launch(EntryPoint, const void* args, std::int64_t grid) = 0;
  virtual Status reserve_scratch(std::size_t bytes) = 0;  // per worker, page-aligned, guard pages
  virtual void scrub(std::uint64_t pattern) = 0;
  virtual int workers() const = 0;
  // "stack of worker 1", "scratch of worker 0" when the address lies in one of its guard pages, else null. Signal-safe.
  virtual const char* guard_name(const void* address) const = 0;
};

}  // namespace forge
