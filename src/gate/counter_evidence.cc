// SPDX-License-Identifier: Apache-2.0
// Counters of a call's kernels as evidence: sums over the kernels, percentages weighted by their time.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "gate/ncu.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr std::size_t kNameBytes = 200, kKernelNotes = 12;
constexpr double kSectorBytes = 32;

std::optional<double> counter(const KernelCounters& k, const char* name) {
  const auto it = k.values.find(name);
  return it == k.values.end() ? std::nullopt : std::optional(it->second);
}
double seconds_of(const KernelCounters& k) { return counter(k, "gpu__time_duration.sum").value_or(0); }

struct CounterRule {
  const char *metric, *counter;
  enum class How { sum, by_time, largest } how;
  double factor = 1;
};
using How = CounterRule::How;
constexpr CounterRule kRules[] = {
    {"counter_seconds", "gpu__time_duration.sum", How::sum},
    {"counter_dram_read_bytes", "dram__bytes_read.sum", How::sum},
    {"counter_dram_write_bytes", "dram__bytes_write.sum", How::sum},
    {"counter_dram_percent", "dram__throughput.avg.pct_of_peak_sustained_elapsed", How::by_time},
    {"counter_l2_read_bytes", "lts__t_sectors_op_read.sum", How::sum, kSectorBytes},
    {"counter_l2_hit_percent", "lts__t_sector_hit_rate.pct", How::by_time},
    {"counter_sm_percent", "sm__throughput.avg.pct_of_peak_sustained_elapsed", How::by_time},
    {"counter_warps_active_percent", "sm__warps_active.avg.pct_of_peak_sustained_active", How::by_time},
    {"counter_instructions", "smsp__inst_executed.sum", How::sum},
    {"counter_tensor_instructions", "sm__inst_executed_pipe_tensor.sum", How::sum},
    {"counter_shared_conflicts", "l1tex__data_bank_conflicts_pipe_lsu.sum", How::sum},
    {"counter_registers", "launch__registers_per_thread", How::largest},
    {"counter_shared_bytes", "launch__shared_mem_per_block", How::largest},
};

// "2 blocks an SM, limited by registers"; empty when nothing is known.
std::string resident(const KernelCounters& k) {
  constexpr std::pair<const char*, const char*> kLimits[] = {{"launch__occupancy_limit_registers", "registers"},
                                                             {"launch__occupancy_limit_shared_mem", "shared memory"},
                                                             {"launch__occupancy_limit_warps", "threads"},
                                                             {"launch__occupancy_limit_blocks", "blocks"}};
  std::optional<double> least;
  const char* by = "";
  for (const auto& [name, what] : kLimits)
    if (const auto blocks = counter(k, name); blocks && (!least || *blocks < *least)) least = blocks, by = what;
  return least ? fmt::format(", {:.0f} blocks an SM, limited by {}", *least, by) : "";
}

std::string told(const KernelCounters& k, int times) {
  std::string out = fmt::format("kernel {}{}: grid {} of {} threads", utf8_head(k.kernel, kNameBytes),
                                times > 1 ? fmt::format(" ({} times)", times) : "", k.grid, k.block);
  const auto add = [&](const char* name, const char* format) {
    if (const auto value = counter(k, name)) out += fmt::format(fmt::runtime(format), *value);
  };
  if (counter(k, "launch__cluster_size").value_or(0) > 1) add("launch__cluster_size", " in clusters of {:.0f}");
  add("launch__registers_per_thread", ", {:.0f} registers");
  add("launch__shared_mem_per_block", ", {:.0f} bytes of shared memory");
  out += resident(k);
  if (seconds_of(k) > 0) out += "; " + format_seconds(seconds_of(k));
  add("dram__throughput.avg.pct_of_peak_sustained_elapsed", ", DRAM {:.0f} %");
  add("sm__throughput.avg.pct_of_peak_sustained_elapsed", ", SM {:.0f} %");
  add("lts__t_sector_hit_rate.pct", ", L2 hits {:.0f} %");
  return out;
}

// Nothing when no kernel has the counter, or for a percentage no time.
std::optional<double> over_kernels(const std::vector<KernelCounters>& kernels, const CounterRule& rule) {
  double total = 0, weight = 0, largest = 0;
  bool known = false;
  for (const KernelCounters& k : kernels) {
    const auto value = counter(k, rule.counter);
    if (!value) continue;
    known = true;
    const double w = rule.how == How::by_time ? seconds_of(k) : 1;
    total += w * *value;
    weight += w;
    largest = std::max(largest, *value);
  }
  if (!known || !(weight > 0)) return std::nullopt;
  return rule.factor * (rule.how == How::largest ? largest : rule.how == How::sum ? total : total / weight);
}

}  // namespace

std::size_t slowest_kernel(const CallCounters& counters) {
  const auto& kernels = counters.kernels;
  const auto slowest =
      std::max_element(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return seconds_of(a) < seconds_of(b); });
  return std::size_t(slowest - kernels.begin());
}

void add_counter_metrics(Evidence& e, const CallCounters& counters) {
  const auto& kernels = counters.kernels;
  e.metrics["counter_kernels"] = double(kernels.size());
  for (const CounterRule& rule : kRules)
    if (const auto value = over_kernels(kernels, rule)) e.metrics[rule.metric] = *value;

  double all = 0;
  std::map<std::string, double> by_name;
  std::map<std::string, std::pair<const KernelCounters*, int>> shapes;  // launches alike are told once
  for (const KernelCounters& k : kernels) {
    all += seconds_of(k);
    by_name[k.kernel] += seconds_of(k);
    auto& [slowest, times] = shapes[k.kernel + k.grid + k.block];
    if (!slowest || seconds_of(k) > seconds_of(*slowest)) slowest = &k;
    ++times;
  }
  if (all > 0) {
    std::vector<std::pair<double, std::string>> ranked;
    for (const auto& [name, seconds] : by_name) ranked.emplace_back(seconds / all, utf8_head(name, kNameBytes));
    std::sort(ranked.begin(), ranked.end(), std::greater<>());
    e.hot_symbols.clear();
    for (auto& [share, name] : ranked) e.hot_symbols.emplace_back(std::move(name), share);
  }
  std::vector<std::pair<const KernelCounters*, int>> launches;
  for (const auto& [key, shape] : shapes) launches.push_back(shape);
  std::stable_sort(launches.begin(), launches.end(),
                   [](const auto& a, const auto& b) { return seconds_of(*a.first) * a.second > seconds_of(*b.first) * b.second; });
  for (std::size_t i = 0; i < std::min(launches.size(), kKernelNotes); ++i) e.notes.push_back(told(*launches[i].first, launches[i].second));
  if (launches.size() > kKernelNotes) e.notes.push_back(fmt::format("... and {} launches more", launches.size() - kKernelNotes));
  if (!counters.made.empty()) e.notes.push_back("under Nsight Compute it was: " + counters.made);
  e.notes.insert(e.notes.end(), counters.notes.begin(), counters.notes.end());
  for (const CounterRule& rule : kRules)
    if (!e.metrics.contains(rule.metric) && std::none_of(counters.notes.begin(), counters.notes.end(),
                                                         [&](const auto& n) { return n.find(rule.counter) != std::string::npos; }))
      e.notes.push_back(fmt::format("no counter {}: Nsight Compute gave no number", rule.counter));
}

}  // namespace forge
