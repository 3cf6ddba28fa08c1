// SPDX-License-Identifier: Apache-2.0
// A blueprint: a parametrised kernel with a table of its decisions. blueprints/<family>/<operator>/: blueprint.toml,
// kernel.cpp.in, launch.toml.in; {{decision}} stands for the chosen value. Format: docs/formats/blueprint.md.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/evidence.h"
#include "core/expr.h"
#include "core/operator.h"
#include "core/package.h"
#include "core/target.h"
#include "util/fs.h"

namespace forge {

struct BlueprintOption {
  std::string value;
  std::string text;     // what it does, one line: goes into the plan
  Expr when;            // over machine properties and axes; empty: always possible
  Signature signature;  // mechanism check of this choice; empty: none
};

struct BlueprintDecision {
  std::string name;
  bool structural = true;                // else local: tuned by the coder
  int milestone = 0;                     // M<n> that it belongs to
  std::string limiter;                   // "memory", "compute", "latency": what it can relieve
  std::string default_value;             // the plain choice, taken when nothing speaks for another
  std::vector<BlueprintOption> options;  // in the order in which a revision should try them
  std::vector<std::string> depends_on;   // names of earlier decisions
};

// A part of the kernel that can be left out, to see what it costs: its results are then wrong, and its time says what the rest takes.
struct BlueprintStage {
  std::string name;
  std::string text;  // what it does, one line: goes into the timeline
};

// Over decision values that are integers, <decision>_is_<value> (0 or 1), <decision>_rows and _columns of values like 6x16, the
// machine's properties and the axes.
struct BlueprintConstraint {
  Expr must;
  std::string message;
};

struct Blueprint {
  std::string operator_name;
  std::vector<std::string> targets;
  std::vector<BlueprintDecision> decisions;
  std::vector<BlueprintConstraint> constraints;
  std::vector<BlueprintStage> stages;
  std::string source_template, plan_template, source_name, plan_name;  // names without .in
  fs::path folder;
};
using Choices = std::map<std::string, std::string>;

Result<Blueprint> load_blueprint(const Paths&, const std::string& operator_name, const TargetSpec&);
// What conditions and templates may name: axes at the timed workload, constant ones included, and the machine's properties.
Names blueprint_names(const Definition&, const TaskFile&, const Machine&);
// Values that are possible on this machine.
std::vector<const BlueprintOption*> possible(const BlueprintDecision&, const Names&);
// Null: none of that value.
const BlueprintOption* find_option(const BlueprintDecision&, const std::string& value);
// Every decision's default. Possible on every machine.
Choices default_choices(const Blueprint&);
// Demands a possible value for every decision, and says which constraint fails.
Status check_choices(const Blueprint&, const Choices&, const Names&);
// `without`: a stage that is left out; such a package is for unchecked timing alone. What is rendered otherwise does not depend on
// the stages.
Result<KernelPackage> render(const Blueprint&, const Choices&, const TargetSpec&, const Names&, const std::string& without = {});

}  // namespace forge
