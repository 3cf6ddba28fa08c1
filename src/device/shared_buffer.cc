// SPDX-License-Identifier: Apache-2.0
// Shared buffers. Every mapping lies at an address of our own choosing in a range that nothing else uses, with wide
// inaccessible guards, so that judge and runner agree on addresses and a fault address names its buffer.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "device/cpu.h"
#include "device/pages.h"

namespace forge {
namespace {

#ifdef __SANITIZE_THREAD__  // whose own memory lies there
constexpr std::uint64_t k_region_begin = 0x10'0000'0000, k_region_end = 0x60'0000'0000;
#else
constexpr std::uint64_t k_region_begin = 0x2000'0000'0000, k_region_end = 0x2f00'0000'0000;
#endif
constexpr std::size_t k_huge_page = std::size_t(2) << 20;
constexpr std::size_t k_guard = std::size_t(64) << 20;

// Hands out address ranges; freed ones are reused for the same size, so a long run does not use the range up.
class AddressTable {
 public:
  std::uint64_t take(std::size_t bytes) {
    std::lock_guard lock(m_mutex);
    auto& free_ranges = m_free[bytes];
    if (!free_ranges.empty()) {
      const std::uint64_t address = free_ranges.back();
      free_ranges.pop_back();
      return address;
    }
    if (k_region_end - m_next < bytes) return 0;
    const std::uint64_t address = m_next;
    m_next += bytes;
    return address;
  }
  void give_back(std::uint64_t address, std::size_t bytes) {
    std::lock_guard lock(m_mutex);
    m_free[bytes].push_back(address);
  }

 private:
  std::mutex m_mutex;
  std::uint64_t m_next = k_region_begin;
  std::map<std::size_t, std::vector<std::uint64_t>> m_free;
};

AddressTable& address_table() {
  static AddressTable* table = new AddressTable;  // never destroyed: buffers may outlive static destruction
  return *table;
}

std::size_t reserved_bytes(std::size_t file_bytes) { return align_up(file_bytes, k_huge_page) + 2 * k_guard; }

}  // namespace

std::size_t SharedBuffer::guard_bytes() { return k_guard; }

Result<SharedBuffer> SharedBuffer::make(std::size_t bytes, const std::string& label, std::size_t alignment) {
  if (alignment < 256 || alignment > k_page || (alignment & (alignment - 1)) != 0)
    return fail(Code::internal, fmt::format("buffer '{}': alignment {} is not a power of two from 256 to 4096", label, alignment));
  if (bytes > (std::size_t(1) << 40)) return fail(Code::bad_input, fmt::format("buffer '{}': {} bytes are too many", label, bytes));
  SharedBuffer b;
  b.m_bytes = bytes;
  b.m_label = label;
  const std::size_t tensor = align_up(bytes, alignment);
  const std::size_t file_bytes = std::max(align_up(tensor, k_page), k_page);
  b.m_offset = file_bytes - tensor;
  b.m_fd = Fd(memfd_create(("forge:" + label.substr(0, 200)).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!b.m_fd) return fail_errno("memfd_create", label, errno);
  if (ftruncate(b.m_fd.get(), static_cast<off_t>(file_bytes)) != 0) return fail_errno("ftruncate of a shared buffer", label, errno);
  // A file that another process could shorten would kill the judge with SIGBUS.
  if (fcntl(b.m_fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return fail_errno("sealing a shared buffer", label, errno);

  const std::size_t reserved = reserved_bytes(file_bytes);
  const std::uint64_t address = address_table().take(reserved);
  if (address == 0) return fail(Code::internal, "no address range left for shared buffers");
  void* whole =
      mmap(reinterpret_cast<void*>(address), reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (whole == MAP_FAILED) return fail_errno(fmt::format("reserving address {:#x}", address), label, errno);
  auto* map = reinterpret_cast<std::byte*>(address + k_guard);
  void* mapped = mmap(map, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, b.m_fd.get(), 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    munmap(whole, reserved);
    address_table().give_back(address, reserved);
    return fail_errno("mapping a shared buffer", label, error);
  }
  b.m_map = map;  // from here on the destructor cleans up
  b.m_file_bytes = file_bytes;
  b.m_data = map + b.m_offset;
  madvise(map, file_bytes, MADV_HUGEPAGE);  // takes effect where shmem_enabled is "advise"; runners then map the same pages
  if (madvise(map, file_bytes, MADV_POPULATE_WRITE) != 0) {
    const int error = errno;
    if (error == ENOMEM || error == EFAULT)
      return fail(Code::io, fmt::format("no memory for {} bytes of buffer '{}'", file_bytes, label), "free memory, or use smaller shapes");
    std::memset(map, 0, file_bytes);  // kernels before 5.14
  }
  return b;
}

SharedBuffer::SharedBuffer(SharedBuffer&& o) noexcept { *this = std::move(o); }

SharedBuffer& SharedBuffer::operator=(SharedBuffer&& o) noexcept {
  std::swap(m_map, o.m_map);
  std::swap(m_data, o.m_data);
  std::swap(m_bytes, o.m_bytes);
  std::swap(m_file_bytes, o.m_file_bytes);
  std::swap(m_offset, o.m_offset);
  std::swap(m_label, o.m_label);
  std::swap(m_fd, o.m_fd);
  return *this;
}

SharedBuffer::~SharedBuffer() {
  if (!m_map) return;
  const std::size_t reserved = reserved_bytes(m_file_bytes);
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(m_map) - k_guard;
  munmap(reinterpret_cast<void*>(address), reserved);
  address_table().give_back(address, reserved);
}

std::span<std::byte> SharedBuffer::slack_before() const { return {m_map, m_offset}; }

std::span<std::byte> SharedBuffer::slack_after() const { return {m_data + m_bytes, m_file_bytes - m_offset - m_bytes}; }

Status SharedBuffer::seal_for_reading() {
  if (fcntl(m_fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0) return fail_errno("sealing a shared buffer for reading", m_label, errno);
  return {};
}

}  // namespace forge
