// SPDX-License-Identifier: Apache-2.0
// This machine as a target of either family.
#pragma once
#include <string>

#include "core/target.h"
#include "util/fs.h"

namespace forge {

// By the target's family; nothing is measured.
Result<Machine> probe_machine(const TargetSpec&);
// Cached in the one place of `home`, by family.
Result<Ceilings> survey_ceilings(const Machine&, const fs::path& home);
// The target of that name, or the widest CPU target that runs here when it is empty; probed, with its ceilings.
Result<Machine> survey_machine(const std::string& target, const fs::path& home);
fs::path ceilings_cache(const fs::path& home, const std::string& family = "cpu");

}  // namespace forge
