// SPDX-License-Identifier: Apache-2.0
// What Nsight Compute's command line prints: the raw page (one row a kernel) and the source page (one row an instruction), as CSV
// among lines of its own ("==PROF== ...", "==ERROR== ..."). Parsers only; whatever is not understood is left out, never guessed.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "build/build.h"

namespace forge {

struct KernelCounters {
  std::string kernel, grid, block;       // "(132, 1, 1)", as printed
  std::map<std::string, double> values;  // by metric: seconds, bytes, percent, counts
};
struct NcuOutput {
  std::vector<KernelCounters> kernels;  // in the order of the call
  std::vector<std::string> errors;      // of ==ERROR== lines
};
NcuOutput parse_ncu_counters(const std::string& output);

// Of the source page in SASS; one entry a launch.
std::vector<CountedKernel> parse_ncu_source(const std::string& output);

// Records of CSV: fields with quotes may hold commas, line ends and doubled quotes.
std::vector<std::vector<std::string>> parse_csv(std::string_view);
// "1,234.5"; nothing for what is no number ("n/a").
std::optional<double> ncu_number(std::string);

}  // namespace forge
