// SPDX-License-Identifier: Apache-2.0
#include "runner/cuda_memory.h"

#include <fmt/format.h>

namespace forge {

CudaImports::~CudaImports() {
  for (auto& [id, m] : m_mapped) release(m);
}

void CudaImports::release(Mapped& m) {
  if (m.own) {
    m_driver.memory_free(m.address);
    m = {};
    return;
  }
  if (m.address) m_driver.vm_unmap(m.address, m.bytes);
  if (m.reserved) m_driver.vm_free(m.reserved, m.reserved_bytes);
  if (m.handle) m_driver.vm_release(m.handle);
  m = {};
}

Answer CudaImports::import(const wire::CudaImport& message, int fd, std::uint64_t& address) {
  if (message.allocation == 0 || message.bytes == 0) return {wire::Outcome::refused, "an import without a number or without bytes"};
  const auto rights = [&](std::uint64_t at, std::uint64_t bytes) {
    const cu::AccessDesc access{.location = {}, .flags = message.writable ? 3 : 1};
    return m_driver.vm_access(at, bytes, &access, 1);
  };
  if (const auto known = m_mapped.find(message.allocation); known != m_mapped.end()) {
    Mapped& m = known->second;
    address = m.address;
    if (m.writable || !message.writable) return {};
    if (const cu::Status s = rights(m.address, m.bytes); s != cu::kSuccess)
      return {wire::Outcome::broken, "widening the rights of an allocation: " + cu::describe(m_driver, s)};
    m.writable = true;
    return {};
  }
  Mapped m;
  m.writable = message.writable != 0;
  const char* step = "importing";
  const auto attempt = [&]() -> cu::Status {
    // The driver takes a descriptor as a pointer-sized value, not by address.
    if (const auto s = m_driver.vm_import(&m.handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)), 1); s != cu::kSuccess)
      return s;
    step = "reserving addresses for";
    const std::uint64_t reserve = message.bytes + 2 * kGuardBytes;
    if (const auto s = m_driver.vm_reserve(&m.reserved, reserve, kGuardBytes, 0, 0); s != cu::kSuccess) return s;
    m.reserved_bytes = reserve;
    step = "mapping";
    if (const auto s = m_driver.vm_map(m.reserved + kGuardBytes, message.bytes, 0, m.handle, 0); s != cu::kSuccess) return s;
    m.address = m.reserved + kGuardBytes;
    m.bytes = message.bytes;
    step = "setting the rights of";
    return rights(m.address, m.bytes);
  };
  if (const cu::Status s = attempt(); s != cu::kSuccess) {
    release(m);
    return {s == cu::kOutOfMemory ? wire::Outcome::out_of_memory : wire::Outcome::broken,
            fmt::format("{} an allocation of {} bytes: {}", step, message.bytes, cu::describe(m_driver, s))};
  }
  address = m.address;
  m_mapped[message.allocation] = m;
  return {};
}

Answer CudaImports::allocate(const wire::CudaImport& message, std::uint64_t& address) {
  if (message.allocation == 0 || message.bytes == 0 || m_mapped.contains(message.allocation))
    return {wire::Outcome::refused, "an allocation without a number or without bytes, or one that is there already"};
  Mapped m{.bytes = message.bytes, .writable = true, .own = true};
  if (const cu::Status s = m_driver.memory_allocate(&m.address, message.bytes); s != cu::kSuccess)
    return {s == cu::kOutOfMemory ? wire::Outcome::out_of_memory : wire::Outcome::broken,
            fmt::format("allocating {} bytes: {}", message.bytes, cu::describe(m_driver, s))};
  m_mapped[message.allocation] = m;
  address = m.address;
  if (const cu::Status s = m_driver.fill(m.address, 0, m.bytes, nullptr); s != cu::kSuccess)
    return {wire::Outcome::broken, "clearing memory: " + cu::describe(m_driver, s)};
  return {};
}

Answer CudaImports::forget(std::uint64_t allocation) {
  const auto known = m_mapped.find(allocation);
  if (known == m_mapped.end()) return {wire::Outcome::refused, "an allocation to forget that was not imported"};
  release(known->second);
  m_mapped.erase(known);
  return {};
}

std::uint64_t CudaImports::at(const wire::Place& place, std::uint64_t bytes) const {
  const auto known = m_mapped.find(place.allocation);
  if (known == m_mapped.end() || place.offset > known->second.bytes || known->second.bytes - place.offset < bytes) return 0;
  return known->second.address + place.offset;
}

}  // namespace forge
