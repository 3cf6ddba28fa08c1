// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: JSON of what only a run's journal holds. Event formats: docs/formats/journal-events.md.
#pragma once
#include "core/json_io.h"
#include "evolve/evolve.h"

namespace forge {

using Decisions = std::vector<std::pair<std::string, std::string>>;

Json decisions_to_json(const Decisions&);
Json failures_to_json(const std::vector<FailureCondition>&);
Json acceptance_to_json(const Acceptance&);
Json reference_to_json(const ReferenceInfo&);
Json retrieved_to_json(const std::vector<Retrieved>&);
Json diagnostics_to_json(const std::vector<Diagnostic>&);
Json heritage_to_json(const Heritage&);
Json spent_to_json(const Spent&);

Result<Decisions> read_decisions(const Json&);
Result<ReferenceInfo> read_reference(const Json&);
Result<std::vector<Retrieved>> read_retrieved(const Json&);
Result<Heritage> read_heritage(const Json&);

}  // namespace forge
