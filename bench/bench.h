// SPDX-License-Identifier: Apache-2.0
// What the benchmarks share: two ways timed in turns in one run, told as a ratio with its interval, and the memory of the process.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "gate/statistics.h"
#include "util/progress.h"

namespace forge::bench {

// "VmHWM": the most that was resident so far; "VmRSS": now. MB of 10^6 bytes.
inline double memory_mb(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key + ":")) return static_cast<double>(std::stoll(line.substr(key.size() + 1))) * 1024 / 1e6;
  return 0;
}
inline void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }  // VmHWM begins anew at VmRSS

// The processor's time of this process: what is left of a figure when the machine is shared.
inline double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

inline double timed(const std::function<void()>& work) {
  const double start = monotonic_seconds();
  work();
  return monotonic_seconds() - start;
}

inline void line(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
}

// One warm-up each, then `pairs` turns; which of the two is first alternates.
inline void beside(const std::string& what, int pairs, const std::function<void()>& now, const std::function<void()>& former) {
  now(), former();
  std::vector<double> a, b;
  for (int i = 0; i < pairs; ++i) {
    if (i % 2) b.push_back(timed(former));
    a.push_back(timed(now));
    if (i % 2 == 0) b.push_back(timed(former));
  }
  const RatioStats r = paired_ratio(a, b);
  line(fmt::format("{:<44} {:10.3f} ms   plainly {:10.3f} ms   ratio {:.2f} [{:.2f} {:.2f}], {} pairs", what, 1e3 * median(a),
                   1e3 * median(b), r.mid, r.low95, r.high95, r.n));
}

}  // namespace forge::bench
