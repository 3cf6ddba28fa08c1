// SPDX-License-Identifier: Apache-2.0
// The management library (libnvidia-ml.so.1), opened at run time. Without it every answer is "unknown".
#pragma once
#include <string>
#include <vector>

namespace forge {

// What the card says of itself; negative: unknown.
struct CardState {
  double temperature_c = -1, power_w = -1;
  std::string throttle;  // reasons in force, empty: none
  int processes = -1;    // that compute on the card
};
CardState card_state();
std::vector<int> card_processes();  // ids of all that compute on the card; empty when unknown
std::string nvml_driver_version();  // "580.159.04", or "unknown: no libnvidia-ml.so.1"

}  // namespace forge
