// SPDX-License-Identifier: Apache-2.0
// What a record says of how a job was measured, and what a verdict notes about it. Where families of targets differ, it is here.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/target.h"
#include "gate/timing.h"

namespace forge {

using Conditions = std::map<std::string, std::string>;

inline constexpr const char* kCpuProtocol = "cpu-paired-1";
inline constexpr const char* kCudaProtocol = "cuda-paired-1";

// Clocks, caches, load; on a GPU also SM clocks by side, temperature and power, throttling, other processes. Absences are named.
void add_conditions(Conditions&, const Machine&, const JobResult&, const std::vector<JobSide>&);
// Other work on the machine or the card, throttling, an outside clock that was not asked.
std::vector<std::string> job_notes(const JobResult&);
// A call whose clocks contradict each other or the work that was possible. Empty when consistent.
std::string call_problem(Audit, const std::vector<CallTiming>&, int workers);

}  // namespace forge
