// SPDX-License-Identifier: Apache-2.0
// The architecture agent's plan: decisions with their evidence, grouped into milestones with acceptances.
// Format: docs/formats/plan.md.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/evidence.h"
#include "util/result.h"

namespace forge {

struct EvidenceItem {
  bool observed = false;  // else a hypothesis
  std::string text;       // one sentence, with the figure
};

struct Rejected {
  std::string value, why;
};

struct Decision {
  std::string id;                  // "D<m>.<n>"
  std::string name;                // "store", "register_block": the vocabulary that entries share
  std::string choice;              // the value chosen
  bool structural = true;          // else local: the coding agent may tune it within `range`
  std::vector<std::string> range;  // local: values the coder may try
  std::vector<Rejected> rejected;
  std::vector<EvidenceItem> evidence;
  std::string expected_effect;
  std::vector<std::string> depends_on;  // ids of decisions
  std::vector<std::string> cites;       // ids of entries
};

enum class Against { reference, branch_best, global_best };
const char* name(Against);

struct PerformanceCondition {
  Against against = Against::reference;
  double min_gain = 0;
};  // T_against / T >= 1 + min_gain

// Correctness is always demanded.
struct Acceptance {
  std::optional<PerformanceCondition> performance;
  Signature mechanism;
};

struct Milestone {
  std::string id;  // "M0", "M1", ...
  std::string title;
  std::vector<Decision> decisions;
  std::vector<std::string> prerequisites;  // milestone ids
  int cost = 1;                            // expected hand-ins
  Acceptance acceptance;
};

// A failed decision combination, so that a later revision does not walk into it again.
struct FailureCondition {
  std::string decision, value, because;
};

struct Plan {
  int format = 1;
  std::string operator_name, target;
  int revision = 0;
  int restart_at = 0;                 // index of the earliest milestone that changed
  std::string reason;                 // why this plan, or why the revision
  std::vector<Milestone> milestones;  // M0 first
  std::vector<FailureCondition> avoided;
};

std::string plan_to_json(const Plan&);
Result<Plan> parse_plan(const std::string& json, const std::string& file);
// Ids unique and well formed, M0 present and structural without speed threshold, dependencies known, acyclic and earlier,
// every decision with a choice and at least one piece of evidence. The error names the field.
Status check_plan(const Plan&);

}  // namespace forge
