// SPDX-License-Identifier: Apache-2.0
// From a measurement to accepted or a named reason: pure functions, shared by the gate and its fake.
// docs/judging.md, "The performance condition".
#pragma once
#include <string>

#include "core/plan.h"
#include "core/verdict.h"

namespace forge {

struct Decided {
  Reason reason = Reason::ambiguous;
  std::string detail;
};
// accepted, too_slow, clocks_disagree or ambiguous. Without a condition everything correct is accepted.
Decided decide_performance(const std::optional<PerformanceCondition>&, const Measurement&);
// The ratio that the lower bound must exceed: 1 + min_gain, and never less than the floor unless the plan allows a loss.
double threshold_of(const PerformanceCondition&, double floor);
// Inside and outside clock agree within what the outside clock can tell.
bool clocks_agree(const PairedTiming&);
// What a comparison may be called once both clocks have spoken: "faster" becomes ambiguous where the outside clock's interval does not
// lie above 1, be it too coarse or not asked.
Comparison settled(const PairedTiming&);
// A Verdict of a correct candidate, accepted or missed.
Verdict make_verdict(const Decided&, CorrectnessReport, Measurement);

}  // namespace forge
