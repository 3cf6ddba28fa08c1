// SPDX-License-Identifier: Apache-2.0
// Statistics on paired ratios. Pure functions; no clock, no I/O.
#pragma once
#include <cstdint>
#include <vector>

#include "core/verdict.h"

namespace forge {

double median(std::vector<double>);                         // of a copy; NaN when empty
// Ratios r_i = against_i / candidate_i of one job. Robust location of log r with its interval (docs/judging.md gives the method
// and its source). alpha is one-sided.
struct RatioStats { double mid = 1, low95 = 1, high95 = 1, lower = 1, upper = 1, sigma = 0; int n = 0; };
RatioStats paired_ratio(const std::vector<double>& candidate_s, const std::vector<double>& against_s, double alpha = 0.0005);
Comparison compare(const RatioStats&, double floor);        // faster, same, slower or ambiguous
// How many pairs tell an effect of `effect` (0.02 = 2 %) beyond the floor, at the given sigma, with power 0.9.
int pairs_needed(double sigma, double floor, double effect, double alpha = 0.0005);
// The floor from A/A samples: the smallest ratio that a run of n pairs tells from one.
NoiseFloor floor_from(const std::vector<double>& a_s, const std::vector<double>& b_s, int pairs_planned);

}  // namespace forge
