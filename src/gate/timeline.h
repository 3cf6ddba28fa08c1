// SPDX-License-Identifier: Apache-2.0
// Where a kernel's time goes, by leaving its stages out: the whole and one variant a stage, side by side in one unchecked job.
// A variant's results are wrong on purpose, so it goes to Gate::time alone, which makes diagnostics and never a verdict.
#pragma once
#include <string>
#include <vector>

#include "core/blueprint.h"
#include "gate/gate.h"

namespace forge {

struct StageTime {
  std::string name, text;
  std::string problem;   // why its variant was not timed
  double without_s = 0;  // what the rest takes
  double saved_s = 0;    // of the whole; less than 0: the rest is slower alone
  double share = 0;      // saved_s over the whole
};

struct Timeline {
  double seconds = 0;      // the whole
  double again_share = 0;  // what a second copy of the whole "saves": what the job cannot tell
  std::vector<StageTime> stages;
  double sum = 0;         // of the shares
  bool complete() const;  // every stage was timed
};

// `timed`: the whole, the whole again, then one variant a stage.
Result<Timeline> make_timeline(const std::vector<BlueprintStage>&, const std::vector<Diagnostic>& timed);
Result<Timeline> time_stages(Gate&, const Blueprint&, const Choices&, const TargetSpec&, const Names&);
// What the sum of the savings says of how much the stages overlap, one sentence.
std::string describe_overlap(const Timeline&);

}  // namespace forge
