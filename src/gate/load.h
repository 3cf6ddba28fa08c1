// SPDX-License-Identifier: Apache-2.0
// What else the machine did while we measured: busy and stolen time from /proc/stat, less what this process and its children used.
#pragma once

namespace forge {

struct LoadSample {
  double busy_s = 0, steal_s = 0;  // all cores, since boot
  double own_s = 0;                // this process and its live descendants
  double wall_s = 0;               // monotonic
  int cores = 0;                   // 0: /proc/stat could not be read
};
LoadSample sample_load();

int live_descendants();  // of this process

struct ForeignLoad {
  bool known = false;
  double foreign_percent = 0, steal_percent = 0;
};  // of all cores
ForeignLoad foreign_load(const LoadSample& before, const LoadSample& after);

}  // namespace forge
