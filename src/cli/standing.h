// SPDX-License-Identifier: Apache-2.0
// Where a run by hand stands, read from its journal alone. JSON is declared through core/json_io.h: include from .cc only.
#pragma once
#include <string>
#include <vector>

#include "core/json_io.h"
#include "store/store.h"

namespace forge {

struct Standing {
  std::string run;
  Task task;
  bool ended = false;
  std::string stop;  // of an ended run
  std::string plan;  // ids of the milestones of the last plan
  // of the open milestone; empty: none is open
  std::string milestone, title;
  int attempt = 0;
  std::size_t turn = 0;  // hand-ins and other turns so far
  fs::path folder;
  struct HandIn {
    std::string milestone, verdict, reason, detail;
    double speedup = 0;  // against the reference; 0: none measured
  };
  std::vector<HandIn> hand_ins;  // of the run, oldest first; details as an agent may read them
  int hand_ins_left = 0;
  double gate_seconds_left = 0;
};
Result<Standing> standing_of(const Paths&, const Store&, const std::string& run);
std::string describe(const Standing&);
Json to_json_value(const Standing&);

}  // namespace forge
