// SPDX-License-Identifier: Apache-2.0
#include "runner/cuda_slot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runner/cuda_vehicle.h"

namespace forge {

std::string CudaSlot::Launch::text() const {
  std::string extra = what.cluster > 1 ? fmt::format(", cluster {}", what.cluster) : "";
  if (what.flags & wire::launch_cooperative) extra += ", cooperative";
  if (what.flags & wire::launch_pdl) extra += ", pdl";
  return fmt::format("launch of '{}' (grid {}, block {}, shared {}{})", entry, what.grid, what.block, what.shared_bytes, extra);
}

Answer encode_map(const cu::Driver& d, const wire::CudaMap& m, std::uint64_t address, cu::TensorMap& out) {
  static const std::uint32_t ones[wire::k_max_map_rank] = {1, 1, 1, 1, 1};
  void* at = reinterpret_cast<void*>(address);
  const cu::Status s = m.im2col
                           ? d.map_im2col(&out, int(m.type), m.rank, at, m.dims, m.strides, m.lower, m.upper, m.channels, m.pixels, ones, 0,
                                          int(m.swizzle), int(m.l2), 0)
                           : d.map_tiled(&out, int(m.type), m.rank, at, m.dims, m.strides, m.box, ones, 0, int(m.swizzle), int(m.l2), 0);
  return s == cu::kSuccess ? Answer{} : Answer{wire::Outcome::load_failed, "a tensor map was refused: " + cu::describe(d, s)};
}

Answer CudaSlot::make(const cu::Driver& d, const wire::CudaPrepare& p, const CudaImports& imports, const std::vector<std::string>& entries,
                      CudaSlot& slot) {
  if (p.launch_count > wire::k_max_launches || p.patch_count > wire::k_max_places || p.zero_count > wire::k_max_buffers ||
      p.map_count > wire::k_max_maps || p.args_bytes > sizeof p.args)
    return {wire::Outcome::refused, "counts out of range"};
  std::memcpy(slot.m_args, p.args, sizeof slot.m_args);
  const auto fits = [&](std::uint32_t offset, std::uint32_t bytes) { return offset <= p.args_bytes && p.args_bytes - offset >= bytes; };
  for (std::uint32_t i = 0; i < p.patch_count; ++i) {
    const wire::CudaPatch& patch = p.patches[i];
    const std::uint64_t address = imports.at(patch.place, 0);
    if (!fits(patch.args_offset, 8) || address == 0) return {wire::Outcome::refused, fmt::format("patch {} is out of range", i)};
    std::memcpy(slot.m_args + patch.args_offset, &address, sizeof address);
  }
  for (std::uint32_t i = 0; i < p.map_count; ++i) {
    const wire::CudaMap& map = p.maps[i];
    const std::uint64_t address = imports.at(map.place, 1);
    if (!fits(map.args_offset, sizeof(cu::TensorMap)) || address == 0 || map.rank == 0 || map.rank > wire::k_max_map_rank)
      return {wire::Outcome::refused, fmt::format("map {} is out of range", i)};
    cu::TensorMap encoded{};
    if (Answer a = encode_map(d, map, address, encoded); a.outcome != wire::Outcome::ok) {
      a.text = fmt::format("map {}: {}", i, a.text);
      return a;
    }
    std::memcpy(slot.m_args + map.args_offset, &encoded, sizeof encoded);
  }
  slot.m_zeros.clear();
  for (std::uint32_t i = 0; i < p.zero_count; ++i) {
    const std::uint64_t address = imports.at(p.zeros[i].place, p.zeros[i].bytes);
    if (address == 0) return {wire::Outcome::refused, fmt::format("range {} to clear is out of range", i)};
    if (p.zeros[i].bytes > 0) slot.m_zeros.push_back({address, p.zeros[i].bytes});
  }
  slot.m_launches.clear();
  for (std::uint32_t i = 0; i < p.launch_count; ++i) {
    const wire::CudaLaunch& l = p.launches[i];
    if (l.entry >= entries.size() || l.grid <= 0 || l.grid > 0x7fffffff || l.block == 0 || l.block > 1024 || l.cluster == 0 ||
        l.shared_bytes < 0 || l.shared_bytes > 0x7fffffff)
      return {wire::Outcome::refused, fmt::format("launch {} is out of range", i)};
    slot.m_launches.push_back({l, entries[l.entry]});
  }
  return {};
}

Answer CudaSlot::bind(const cu::Driver& d, cu::Handle module) {
  for (Launch& l : m_launches) {
    if (const cu::Status s = d.module_function(&l.function, module, l.entry.c_str()); s != cu::kSuccess)
      return {wire::Outcome::load_failed, fmt::format("the image has no entry '{}': {}", l.entry, cu::describe(d, s))};
    // The limit belongs to the function, so it is the largest of all launches of it.
    std::int64_t most = 0;
    for (const Launch& other : m_launches)
      if (other.entry == l.entry) most = std::max(most, other.what.shared_bytes);
    if (most > 0)
      if (const cu::Status s = d.function_set(l.function, cu::kFunctionMaxDynamicShared, int(most)); s != cu::kSuccess)
        return {wire::Outcome::load_failed,
                fmt::format("{}: {} bytes of shared memory are too many: {}", l.text(), most, cu::describe(d, s))};
    int blocks = 0;
    const cu::Status s = d.occupancy_blocks(&blocks, l.function, int(l.what.block), std::size_t(l.what.shared_bytes));
    if (s != cu::kSuccess || blocks == 0)
      return {wire::Outcome::load_failed,
              fmt::format("{}: not one block fits an SM{}", l.text(), s == cu::kSuccess ? "" : ": " + cu::describe(d, s))};
  }
  return {};
}

Answer CudaSlot::queue(const cu::Driver& d, cu::Handle stream) {
  for (const Zero& z : m_zeros)
    if (const cu::Status s = d.fill(z.address, 0, z.bytes, stream); s != cu::kSuccess) return cuda_answer(d, s, "clearing a workspace");
  void* parameters[] = {m_args};
  for (const Launch& l : m_launches) {
    cu::LaunchAttribute attributes[3];
    unsigned n = 0;
    const auto add = [&](int id) -> cu::LaunchValue& {
      attributes[n].id = id;
      return attributes[n++].value;
    };
    if (l.what.cluster > 1) add(cu::kAttributeCluster).cluster = {l.what.cluster, 1, 1};
    if (l.what.flags & wire::launch_cooperative) add(cu::kAttributeCooperative).number = 1;
    if (l.what.flags & wire::launch_pdl) add(cu::kAttributePdl).number = 1;
    const cu::LaunchConfig config{.grid_x = unsigned(l.what.grid),
                                  .block_x = l.what.block,
                                  .shared_bytes = unsigned(l.what.shared_bytes),
                                  .stream = stream,
                                  .attributes = attributes,
                                  .attribute_count = n};
    if (const cu::Status s = d.launch(&config, l.function, parameters, nullptr); s != cu::kSuccess) return cuda_answer(d, s, l.text());
  }
  return {};
}

}  // namespace forge
