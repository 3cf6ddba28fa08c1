// SPDX-License-Identifier: Apache-2.0
#include "gate/card_evidence.h"

#include <fmt/format.h>

#include <algorithm>

namespace forge {
namespace {

// Of compute capability 9.0 and 10.0 (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
constexpr int kWarpsPerSm = 64, kBlocksPerSm = 32, kRegisterUnit = 256;  // registers are given to warps in units
constexpr std::int64_t kSharedPerBlock = 1024;                           // that the system keeps of every block
constexpr std::int64_t kSharedUnit = 128;

std::int64_t property(const Names& properties, const char* name, std::int64_t otherwise) {
  const auto it = properties.find(name);
  return it == properties.end() ? otherwise : it->second;
}

std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

std::int64_t count(const std::map<std::string, std::int64_t>& mnemonics, std::initializer_list<const char*> starts) {
  std::int64_t n = 0;
  for (const auto& [mnemonic, times] : mnemonics)
    for (const char* start : starts)
      if (mnemonic == start || mnemonic.starts_with(std::string(start) + ".")) n += times;
  return n;
}

}  // namespace

Occupancy occupancy_of(const EntryResources& e, int block, std::int64_t dynamic_shared, const Names& properties) {
  const int warps = std::max(1, (block + 31) / 32);
  const std::int64_t registers = property(properties, "registers_per_sm", 65536),
                     shared = property(properties, "shared_bytes_per_sm", 233472);
  struct Bound {
    std::int64_t blocks;
    const char* what;
  };
  std::vector<Bound> bounds{{kWarpsPerSm / warps, "threads"}, {kBlocksPerSm, "blocks"}};
  // Warps share four register files: each takes a quarter of the registers, and whole warps only.
  if (e.registers > 0) bounds.push_back({registers / 4 / round_up(std::int64_t(e.registers) * 32, kRegisterUnit) * 4 / warps, "registers"});
  bounds.push_back({shared / round_up(e.static_shared + dynamic_shared + kSharedPerBlock, kSharedUnit), "shared memory"});
  const Bound least = *std::min_element(bounds.begin(), bounds.end(), [](const Bound& a, const Bound& b) { return a.blocks < b.blocks; });
  return {.blocks = int(least.blocks), .warps = int(least.blocks) * warps, .limit = least.what};
}

void add_resource_metrics(Evidence& e, const Image& image, const ConcretePlan& plan, const Machine& machine) {
  double registers = 0, frame = 0, shared = 0, occupancy = 100;
  bool known = false;
  for (const ConcreteLaunch& launch : plan.launches) {
    const auto r = std::find_if(image.resources.begin(), image.resources.end(), [&](const auto& x) { return x.entry == launch.entry; });
    if (r == image.resources.end()) {
      e.notes.push_back(fmt::format("the image says nothing of what {} needs", launch.entry));
      continue;
    }
    const Occupancy o = occupancy_of(*r, launch.block, launch.scratch_bytes, machine.properties);
    const double percent = 100.0 * o.warps / kWarpsPerSm;
    e.notes.push_back(
        fmt::format("{}: grid {} of {} threads{}, {} registers, {} + {} bytes of shared memory, {} bytes of local memory a thread; {} "
                    "blocks and {} warps "
                    "an SM ({:.0f} %), limited by {}",
                    launch.entry, launch.grid, launch.block, launch.cluster > 1 ? fmt::format(" in clusters of {}", launch.cluster) : "",
                    r->registers, r->static_shared, launch.scratch_bytes, r->frame, o.blocks, o.warps, percent, o.limit));
    registers = std::max(registers, double(r->registers));
    frame = std::max(frame, double(r->frame));
    shared = std::max(shared, double(r->static_shared + launch.scratch_bytes));
    occupancy = std::min(occupancy, percent);
    known = true;
  }
  if (!known) return;
  e.metrics["registers"] = registers;
  e.metrics["local_bytes"] = frame;
  e.metrics["shared_bytes"] = shared;
  e.metrics["occupancy_percent"] = occupancy;
  e.metrics["launches"] = double(plan.launches.size());
}

void add_sass_metrics(Evidence& e, const InstructionMix& mix) {
  e.mix = mix;
  e.metrics["instructions"] = double(mix.instructions);
  std::int64_t hot = 0;
  for (const auto& [mnemonic, times] : mix.hot) hot += times;
  e.metrics["hot_instructions"] = double(hot);
  e.metrics["spills"] = double(count(mix.mnemonics, {"ldl", "stl"}));
  e.metrics["matrix_instructions"] = double(count(mix.mnemonics, {"hgmma", "qgmma", "igmma", "hmma", "qmma", "imma", "dmma"}));
  e.metrics["hot_matrix"] = double(count(mix.hot, {"hgmma", "qgmma", "igmma", "hmma", "qmma", "imma", "dmma"}));
  e.metrics["hot_fma"] = double(count(mix.hot, {"ffma", "hfma2", "dfma"}));
  e.metrics["global_loads"] = double(count(mix.mnemonics, {"ldg"}));
  e.metrics["global_stores"] = double(count(mix.mnemonics, {"stg"}));
  e.metrics["shared_loads"] = double(count(mix.mnemonics, {"lds", "ldsm"}));
  e.metrics["shared_stores"] = double(count(mix.mnemonics, {"sts", "stsm"}));
  e.metrics["async_copies"] = double(count(mix.mnemonics, {"ldgsts"}));
  e.metrics["tma_loads"] = double(count(mix.mnemonics, {"utmaldg", "ublkcp"}));
  e.metrics["tma_stores"] = double(count(mix.mnemonics, {"utmastg", "utmared"}));
  e.metrics["barriers"] = double(count(mix.mnemonics, {"bar", "syncs"}));
  if (mix.undecoded > 0) e.notes.push_back(fmt::format("{} instructions could not be decoded", mix.undecoded));
}

}  // namespace forge
