// SPDX-License-Identifier: Apache-2.0
// Evidence that only a GPU's image has: registers, local and shared memory, occupancy, and what its SASS consists of.
#pragma once
#include "core/evidence.h"
#include "core/launch_plan.h"
#include "core/package.h"
#include "core/target.h"

namespace forge {

// Warps of one entry that are resident on an SM at once, of the 64 that fit, and what limits them.
struct Occupancy {
  int blocks = 0, warps = 0;  // an SM
  std::string limit;          // "registers", "shared memory", "threads", "blocks"
};
Occupancy occupancy_of(const EntryResources&, int block, std::int64_t dynamic_shared, const Names& properties);

// One line a launch in the notes; the largest figures as metrics. `plan` is the image's for the timed shape.
void add_resource_metrics(Evidence&, const Image&, const ConcretePlan& plan, const Machine&);
void add_sass_metrics(Evidence&, const InstructionMix&);

}  // namespace forge
