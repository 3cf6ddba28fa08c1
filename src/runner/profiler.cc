// SPDX-License-Identifier: Apache-2.0
// A sampling profiler for code that nobody gave us symbols for: a CPU-time interval timer interrupts whichever thread runs,
// the handler notes where. Afterwards addresses become mapping names, and the bytes around the hottest places are copied out.
#include <fmt/format.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <sstream>

#include "runner/serve.h"

namespace forge {
namespace {

constexpr int k_most_samples = 1 << 16;
constexpr int k_interval_us = 1000;
constexpr std::uint64_t k_bucket = 256;  // bytes: a hot loop's size

std::uint64_t g_samples[k_most_samples];
std::atomic<int> g_count{0};

void on_tick(int, siginfo_t*, void* context) {
  const int i = g_count.fetch_add(1, std::memory_order_relaxed);
  if (i < k_most_samples) g_samples[i] = static_cast<std::uint64_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
}

struct MapLine {
  std::uint64_t begin = 0, end = 0;
  bool executable = false;
  std::string name;
};

std::vector<MapLine> read_maps() {
  std::vector<MapLine> lines;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    MapLine m;
    std::string range, rights, offset, device, inode;
    std::istringstream in(line);
    in >> range >> rights >> offset >> device >> inode;
    std::getline(in >> std::ws, m.name);
    const auto dash = range.find('-');
    if (dash == std::string::npos || rights.size() < 3) continue;
    m.begin = std::stoull(range.substr(0, dash), nullptr, 16);
    m.end = std::stoull(range.substr(dash + 1), nullptr, 16);
    m.executable = rights[0] == 'r' && rights[2] == 'x';
    // Executable memory without a file behind it is code that a library wrote itself.
    if (m.name.empty() || m.name.rfind("/memfd:", 0) == 0 || m.name.rfind("/dev/zero", 0) == 0 || m.name.rfind("[anon", 0) == 0)
      m.name = "jit";
    else if (const auto slash = m.name.rfind('/'); slash != std::string::npos)
      m.name = m.name.substr(slash + 1);
    lines.push_back(m);
  }
  return lines;
}

const MapLine* find_map(const std::vector<MapLine>& lines, std::uint64_t address) {
  for (const auto& m : lines)
    if (address >= m.begin && address < m.end) return m.executable ? &m : nullptr;
  return nullptr;
}

// The window starts at a sampled address, so that a disassembler starts at an instruction.
void copy_hot_code(const std::vector<std::uint64_t>& sorted, const std::vector<MapLine>& maps, wire::Samples& out) {
  std::map<std::uint64_t, std::uint32_t> buckets;
  for (const auto a : sorted) ++buckets[a / k_bucket];
  std::vector<std::pair<std::uint32_t, std::uint64_t>> hottest;
  for (const auto& [bucket, n] : buckets) hottest.emplace_back(n, bucket * k_bucket);
  std::sort(hottest.rbegin(), hottest.rend());
  for (const auto& [n, bucket] : hottest) {
    if (out.hot_count == wire::k_max_hot) return;
    const std::uint64_t address = *std::lower_bound(sorted.begin(), sorted.end(), bucket);
    const MapLine* map = find_map(maps, address);
    bool covered = !map;
    for (std::uint32_t i = 0; i < out.hot_count; ++i)
      covered |= address >= out.hot[i].address && address < out.hot[i].address + out.hot[i].bytes;
    if (covered) continue;
    const std::uint64_t earliest = std::max(map->begin, address > wire::k_hot_bytes / 2 ? address - wire::k_hot_bytes / 2 : 0);
    const std::uint64_t begin = *std::lower_bound(sorted.begin(), sorted.end(), earliest);
    wire::HotCode& hot = out.hot[out.hot_count++];
    hot.address = begin;
    hot.samples = n;
    hot.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(wire::k_hot_bytes, map->end - begin));
    std::memcpy(hot.code, reinterpret_cast<const void*>(begin), hot.bytes);
  }
}

// An even share for each window, evenly spread over it.
void copy_hot_places(const std::vector<std::uint64_t>& sorted, wire::Samples& out) {
  constexpr std::size_t share = wire::k_max_sampled / wire::k_max_hot;
  for (std::uint32_t i = 0; i < out.hot_count; ++i) {
    const wire::HotCode& hot = out.hot[i];
    std::vector<std::uint64_t> places;
    for (auto at = std::lower_bound(sorted.begin(), sorted.end(), hot.address); at != sorted.end() && *at < hot.address + hot.bytes; ++at)
      if (places.empty() || places.back() != *at) places.push_back(*at);
    const std::size_t step = places.size() / share + 1;
    for (std::size_t k = 0; k < places.size(); k += step) out.places[out.place_count++] = places[k];
  }
}

}  // namespace

void sample_profile(double seconds, const std::function<bool()>& run, wire::Samples& out) {
  g_count = 0;
  struct sigaction action {};
  action.sa_sigaction = on_tick;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval every{{0, k_interval_us}, {0, k_interval_us}};
  if (setitimer(ITIMER_PROF, &every, nullptr) != 0) {
    copy_text(out.note, "no profiling timer here");
    return;
  }
  const double until = clock_seconds() + seconds;
  bool alive = true;
  do alive = run();
  while (alive && clock_seconds() < until);
  const itimerval off{};
  setitimer(ITIMER_PROF, &off, nullptr);

  std::vector<std::uint64_t> sorted(g_samples, g_samples + std::min(g_count.load(), k_most_samples));
  std::sort(sorted.begin(), sorted.end());
  out.samples = static_cast<std::uint32_t>(sorted.size());
  const auto maps = read_maps();
  std::map<std::string, std::uint32_t> where;
  for (const auto a : sorted) {
    const MapLine* m = find_map(maps, a);
    ++where[m ? m->name : "unknown"];
  }
  std::vector<std::pair<std::uint32_t, std::string>> by_share;
  for (const auto& [name, n] : where) by_share.emplace_back(n, name);
  std::sort(by_share.rbegin(), by_share.rend());
  for (const auto& [n, name] : by_share) {
    if (out.mapping_count == wire::k_max_mappings) break;
    copy_text(out.mappings[out.mapping_count].name, name);
    out.mappings[out.mapping_count++].samples = n;
  }
  copy_hot_code(sorted, maps, out);
  copy_hot_places(sorted, out);
  if (!alive)
    copy_text(out.note, "run() failed while it was sampled");
  else if (sorted.size() < 50)
    copy_text(out.note, fmt::format("only {} samples", sorted.size()));
}

}  // namespace forge
