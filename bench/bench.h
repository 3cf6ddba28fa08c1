// SPDX-License-Identifier: Apache-2.0
// What the benchmarks share: two ways timed in turns in one run, told as a ratio with its interval, and the memory of the process.
#pragma once
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
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

// How many, from the command line; ends the program where that is no whole number from 1 on.
inline int count_from(int argc, char** argv, int usual) {
  if (argc < 2) return usual;
  const std::string_view text = argv[1];
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count > 0) return count;
  std::fprintf(stderr, "'%s' is no whole number from 1 to %d: how many to make (usually %d)\n", argv[1], std::numeric_limits<int>::max(),
               usual);
  std::exit(2);
}

}  // namespace forge::bench
