// SPDX-License-Identifier: Apache-2.0
#include "device/survey.h"

#include "device/cpu.h"
#include "device/cuda.h"

namespace forge {

Result<Machine> probe_machine(const TargetSpec& target) { return target.family == "cuda" ? probe_cuda(target) : probe_cpu(target); }

fs::path ceilings_cache(const fs::path& home, const std::string& family) {
  return home / "cache" / (family == "cpu" ? "ceilings.json" : "ceilings-" + family + ".json");
}

Result<Ceilings> survey_ceilings(const Machine& machine, const fs::path& home) {
  const std::string& family = machine.target.family;
  const fs::path cache = ceilings_cache(home, family);
  return family == "cuda" ? measure_cuda_ceilings(machine, cache) : measure_ceilings(machine, cache);
}

Result<Machine> survey_machine(const std::string& wanted, const fs::path& home) {
  FORGE_TRY_ASSIGN(const TargetSpec target, wanted.empty() ? native_cpu_target() : find_target(wanted));
  FORGE_TRY_ASSIGN(Machine machine, probe_machine(target));
  FORGE_TRY_ASSIGN(machine.ceilings, survey_ceilings(machine, home));
  return machine;
}

}  // namespace forge
