// SPDX-License-Identifier: Apache-2.0
// Why signed ranks: the order inside each pair is drawn by a fair coin, so under "the sides are equal" a pair's log ratio and its
// negative are equally likely, whatever the noise (outliers, drift, autocorrelation of the machine): exactly what Wilcoxon's
// signed-rank test assumes. It is then a randomisation test, and its level is exact. Walsh averages invert it into an interval;
// their median, the Hodges-Lehmann estimate, has 95.5 % of the mean's efficiency on normal noise, and more on heavier tails
// (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3.1-3.3; Hodges and Lehmann, Ann. Math. Stat. 34, 1963).
#include "gate/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace forge {
namespace {

constexpr double kHuge = 1e9;             // a bound that bounds nothing; finite, since records are JSON
constexpr double kSmallestFloor = 0.002;  // placement alone shifts identical code by about as much
constexpr double kSameMargin = 0.02;      // on a very noisy machine "same" must not come to mean anything
constexpr double kWidthFactor = 1.0233;   // sqrt(pi / 3): interval of Hodges-Lehmann against that of a mean, normal noise

template <class F>
double bisect(double low, double high, F&& too_small) {
  for (int i = 0; i < 200; ++i) {
    const double mid = 0.5 * (low + high);
    (too_small(mid) ? low : high) = mid;
  }
  return 0.5 * (low + high);
}

std::vector<double> sorted_walsh_averages(const std::vector<double>& x) {
  std::vector<double> w;
  w.reserve(x.size() * (x.size() + 1) / 2);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = i; j < x.size(); ++j) w.push_back(0.5 * (x[i] + x[j]));
  std::sort(w.begin(), w.end());
  return w;
}

struct Bounds {
  double low, high;
};

Bounds signed_rank_bounds(const std::vector<double>& walsh, int n, double p) {
  const auto k = signed_rank_critical(n, p);
  if (k < 1) return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  return {walsh[std::size_t(k - 1)], walsh[walsh.size() - std::size_t(k)]};
}

double ratio_of_log(double x) { return std::clamp(std::exp(x), 0.0, kHuge); }

}  // namespace

double median(std::vector<double> v) {
  if (v.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(v.begin(), v.end());
  const auto n = v.size();
  return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

double normal_quantile(double p) {
  return bisect(-40, 40, [&](double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)) > p; });
}

// The distribution function for whole degrees of freedom: Abramowitz and Stegun 26.7.3 and 26.7.4.
double student_t_quantile(double p, int df) {
  auto upper_tail = [df](double t) {
    const double theta = std::atan(t / std::sqrt(double(df))), c = std::cos(theta), s = std::sin(theta);
    double sum = 0, term = df % 2 ? c : 1;
    for (int k = df % 2 ? 1 : 0; k <= df - 2; k += 2) {
      sum += term;
      term *= c * c * (k + 1) / (k + 2);
    }
    const double a = df % 2 ? (theta + s * sum) * 2 / M_PI : s * sum;  // P(|T| < t)
    return 0.5 * (1 - a);
  };
  return bisect(0, 1e5, [&](double t) { return upper_tail(t) > p; });
}

std::int64_t signed_rank_critical(int n, double p) {
  // Probabilities of the rank sums, one pair at a time: rank r joins the sum with probability a half.
  std::vector<double> density(std::size_t(n) * std::size_t(n + 1) / 2 + 1, 0.0);
  density[0] = 1;
  std::size_t top = 0;
  for (std::size_t r = 1; r <= std::size_t(n); ++r) {
    top += r;
    for (std::size_t t = top + 1; t-- > 0;) density[t] = 0.5 * density[t] + (t >= r ? 0.5 * density[t - r] : 0.0);
  }
  double cumulative = 0;
  for (std::size_t t = 0; t < density.size(); ++t) {
    cumulative += density[t];
    if (cumulative > p) return std::int64_t(t);
  }
  return std::int64_t(density.size()) - 1;
}

RatioStats paired_ratio(const std::vector<double>& candidate_s, const std::vector<double>& against_s, double alpha) {
  std::vector<double> x;
  const auto n_max = std::min(candidate_s.size(), against_s.size());
  for (std::size_t i = 0; i < n_max; ++i)
    if (candidate_s[i] > 0 && against_s[i] > 0) x.push_back(std::log(against_s[i] / candidate_s[i]));
  RatioStats out;
  out.n = int(x.size());
  // A sample that is no positive time is a broken clock: bounds that bound nothing, so that nothing follows from them.
  if (out.n < 3 || x.size() != n_max) {
    out.mid = x.empty() ? 1 : ratio_of_log(median(x));
    out.low95 = out.lower = 0;
    out.high95 = out.upper = kHuge;
    return out;
  }
  const auto walsh = sorted_walsh_averages(x);
  const double mid = median(walsh);
  Bounds b95{}, b{};
  if (out.n >= kMinPairs) {
    b95 = signed_rank_bounds(walsh, out.n, 0.025);
    b = signed_rank_bounds(walsh, out.n, alpha);
    // From the 80 % interval: it feels outliers as the verdict's interval does, yet varies less from job to job than a wider one.
    const Bounds b80 = signed_rank_bounds(walsh, out.n, 0.1);
    out.sigma = 0.5 * (b80.high - b80.low) * std::sqrt(double(out.n)) / (normal_quantile(0.1) * kWidthFactor);
  } else {
    double mean = 0, square = 0;
    for (double v : x) mean += v / out.n;
    for (double v : x) square += (v - mean) * (v - mean);
    out.sigma = std::sqrt(square / (out.n - 1));
    const double se = out.sigma / std::sqrt(double(out.n));
    const double t95 = student_t_quantile(0.025, out.n - 1) * se, t = student_t_quantile(alpha, out.n - 1) * se;
    b95 = {mean - t95, mean + t95};
    b = {mean - t, mean + t};
  }
  out.mid = ratio_of_log(mid);
  out.low95 = ratio_of_log(b95.low);
  out.high95 = ratio_of_log(b95.high);
  out.lower = ratio_of_log(b.low);
  out.upper = ratio_of_log(b.high);
  return out;
}

Comparison compare(const RatioStats& r, double floor) {
  if (r.n >= kMinPairs && r.lower > 1 + floor) return Comparison::faster;
  if (r.n >= 3 && r.upper < 1 - floor) return Comparison::slower;
  const double near = floor + std::min(floor, kSameMargin);
  if (r.n >= kMinPairs && r.low95 > 1 - near && r.high95 < 1 + near) return Comparison::same;
  return Comparison::ambiguous;
}

int pairs_needed(double sigma, double floor, double effect, double alpha) {
  // Never plan for less than half the effect: near the floor the number of pairs would have no bound.
  const double gap = std::max(effect - floor, effect / 2);
  const double z = (normal_quantile(alpha) + normal_quantile(0.1)) * kWidthFactor;
  const double n = std::ceil(z * sigma / gap * (z * sigma / gap)) + 2;  // + 2: signed ranks are discrete at small n
  return std::max(kMinPairs, int(std::min(n, 1e6)));
}

namespace {
double chance_of(double sigma, int pairs) { return normal_quantile(0.025) * kWidthFactor * sigma / std::sqrt(double(std::max(1, pairs))); }
}  // namespace

int pairs_for_floor(double sigma, double ratio) {
  const double root = chance_of(sigma, 1) / std::max(ratio, kSmallestFloor);
  return int(std::ceil(std::min(root * root, 1e6)));
}

NoiseFloor floor_from(const std::vector<double>& a_s, const std::vector<double>& b_s, int pairs_planned) {
  const RatioStats r = paired_ratio(a_s, b_s);
  NoiseFloor out;
  out.sigma = r.sigma;
  out.pairs = r.n;
  // What two processes of the same code differ by, or what chance leaves of a job of that many pairs, whichever is more.
  out.ratio = std::max({kSmallestFloor, std::abs(std::log(r.mid)), chance_of(r.sigma, pairs_planned)});
  return out;
}

}  // namespace forge
