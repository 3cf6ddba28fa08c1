// SPDX-License-Identifier: Apache-2.0
// How the built-in architect writes a plan down: decisions with their evidence, grouped into milestones with acceptances.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agents/builtin_common.h"

namespace forge {

// What the evidence says a kernel waits for.
struct Diagnosis {
  std::string limiter = "latency", text;
};  // "memory", "compute" or "latency"
Diagnosis diagnose(const Evidence&);

// What speaks for the value chosen, and against another, beyond the blueprint's own words.
struct Reasons {
  std::map<std::string, std::vector<EvidenceItem>> evidence;  // by decision
  std::map<std::string, std::vector<std::string>> cites;
  std::map<std::string, double> effect;                                // certified, by decision
  std::map<std::pair<std::string, std::string>, std::string> against;  // by decision and value
};

class Draft {
 public:
  Draft(const Blueprint&, const PlanRequest&, const Evidence& seen, const Reasons&, Choices);
  void keep(const Milestone&);  // of an earlier plan, as it is
  // A milestone with these decisions; `open`: local ones whose whole range the coder may try.
  void add(const std::string& title, const std::vector<const BlueprintDecision*>&, const std::set<std::string>& open,
           std::optional<PerformanceCondition>, int cost);
  Plan take() { return std::move(m_plan); }

 private:
  Decision decide(const BlueprintDecision&, const std::string& id, bool open) const;

  const Blueprint& m_blueprint;
  const PlanRequest& m_request;
  const Reasons& m_reasons;
  const Choices m_choices;
  const Names m_names;
  const Diagnosis m_seen;
  const std::string m_subject;
  std::map<std::string, std::string> m_ids;  // by decision name
  Plan m_plan;
};

}  // namespace forge
