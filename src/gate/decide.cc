// SPDX-License-Identifier: Apache-2.0
#include "gate/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace forge {

double threshold_of(const PerformanceCondition& condition, double floor) {
  if (condition.min_gain < 0) return 1 + condition.min_gain;  // the plan allows a loss (a structural restart)
  return 1 + std::max(condition.min_gain, floor);
}

bool clocks_agree(const PairedTiming& p) {
  if (!(p.outside_speedup.mid > 0)) return false;  // no audit: fail closed
  return std::abs(std::log(p.speedup.mid / p.outside_speedup.mid)) <= p.outside_resolution;
}

Comparison settled(const PairedTiming& p) {
  const bool unconfirmed = p.comparison == Comparison::faster && !(p.outside_speedup.low > 1);
  return unconfirmed ? Comparison::ambiguous : p.comparison;
}

namespace {
Decided disagreement(const PairedTiming& p) {
  if (!(p.outside_speedup.mid > 0))
    return {Reason::ambiguous, fmt::format("{}: {:.4f} by the inside clock, and no outside clock to confirm it", p.against, p.speedup.mid)};
  return {Reason::clocks_disagree, fmt::format("{}: inside clock {:.4f}, outside clock {:.4f}, resolution {:.4f}", p.against, p.speedup.mid,
                                               p.outside_speedup.mid, p.outside_resolution)};
}
}  // namespace

Decided decide_performance(const std::optional<PerformanceCondition>& condition, const Measurement& m) {
  if (!condition) {
    for (const PairedTiming& p : m.pairs)
      if (p.comparison == Comparison::faster && !clocks_agree(p)) return disagreement(p);
    return {Reason::accepted, "correct; no performance condition"};
  }
  const std::string against = name(condition->against);
  const PairedTiming* p = find_pairing(m, against);
  if (!p) return {Reason::ambiguous, fmt::format("the job had no side \"{}\" to compare with", against)};
  const double floor = m.floor.ratio, need = threshold_of(*condition, floor);
  const auto figures = fmt::format("{:.4f} of {} (95 %: {:.4f} to {:.4f}), needed: more than {:.4f}; floor {:.2f} %, {} pairs",
                                   p->speedup.mid, against, p->speedup.low, p->speedup.high, need, floor * 100, p->pairs);
  if (p->lower_bound > need) {
    // A forged inside clock would show here: "faster" is worth nothing unless the judge's own clock says so too.
    if (!clocks_agree(*p)) return disagreement(*p);
    // An outside clock too coarse to see the gain agrees with anything: then nothing is proved.
    if (!(p->outside_speedup.low > std::min(need, 1.0)))
      return {Reason::ambiguous, fmt::format("the outside clock cannot confirm it ({:.4f}, 95 %: {:.4f} to {:.4f}); speedup {}",
                                             p->outside_speedup.mid, p->outside_speedup.low, p->outside_speedup.high, figures)};
    return {Reason::accepted, "speedup " + figures};
  }
  const bool no_gain = condition->min_gain >= 0 && (p->comparison == Comparison::same || p->comparison == Comparison::slower);
  if (p->upper_bound < need || no_gain) return {Reason::too_slow, "speedup " + figures};
  return {Reason::ambiguous, "speedup " + figures};
}

Verdict make_verdict(const Decided& d, CorrectnessReport report, Measurement m) {
  if (d.reason == Reason::accepted) return Verdict::passed(std::move(report), std::move(m));
  return Verdict::missed(d.reason, d.detail, std::move(report), std::move(m));
}

}  // namespace forge
