// SPDX-License-Identifier: Apache-2.0
// Statistics on paired ratios. Pure functions; no clock, no I/O. docs/judging.md gives the method and its sources.
#pragma once
#include <cstdint>
#include <vector>

#include "core/verdict.h"

namespace forge {

inline constexpr double kAlpha = 0.0005;  // one-sided, of "faster" and "slower"
inline constexpr int kMinPairs = 11;      // fewer pairs cannot reach kAlpha by signs alone: 2^-11 < 0.0005 < 2^-10

double median(std::vector<double>);  // of a copy; NaN when empty
// Ratios r_i = against_i / candidate_i of one job: the Hodges-Lehmann location of log r, with intervals by inversion of the
// exact Wilcoxon signed-rank test (n >= kMinPairs) or Student's t (fewer: for pilots). alpha is one-sided.
// sigma: of one pair's log ratio, as the 80 % interval's width implies it. With fewer than 3 pairs the bounds are 0 and a huge number.
struct RatioStats {
  double mid = 1, low95 = 1, high95 = 1, lower = 1, upper = 1, sigma = 0;
  int n = 0;
};
RatioStats paired_ratio(const std::vector<double>& candidate_s, const std::vector<double>& against_s, double alpha = kAlpha);
Comparison compare(const RatioStats&, double floor);  // faster, same, slower or ambiguous
// How many pairs tell a true effect of `effect` (0.02 = 2 %) as beyond the floor, at the given sigma, with power 0.9.
int pairs_needed(double sigma, double floor, double effect, double alpha = kAlpha);
// How many pairs of that sigma leave chance no more than `ratio` to a floor (0.005 = 0.5 %).
int pairs_for_floor(double sigma, double ratio);
// The floor from A/A samples: the smallest ratio that a run of n pairs tells from one.
NoiseFloor floor_from(const std::vector<double>& a_s, const std::vector<double>& b_s, int pairs_planned);

// The largest k with P(T <= k - 1) <= p for Wilcoxon's T of n pairs; 0 when there is none. Exposed for its test.
std::int64_t signed_rank_critical(int n, double p);
double student_t_quantile(double p, int degrees_of_freedom);  // upper tail p
double normal_quantile(double p);                             // upper tail p

}  // namespace forge
