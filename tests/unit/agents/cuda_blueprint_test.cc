// SPDX-License-Identifier: Apache-2.0
// The blueprints for GPUs, as far as a machine without one can tell: every option renders, and its launch plan fits its operator.
#include <gtest/gtest.h>

#include <set>

#include "core/blueprint.h"
#include "core/entry.h"
#include "core/launch_plan.h"
#include "util/random.h"

namespace forge {
namespace {

std::vector<std::string> operators() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(fs::path(FORGE_SOURCE_DIR) / "blueprints" / "cuda")) {
    const std::string name = entry.path().filename().string();
    if (fs::exists(entry.path() / "blueprint.toml") && fs::exists(fs::path(FORGE_SOURCE_DIR) / "operators" / name)) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(CudaBlueprints, EveryOptionRendersAPlanThatFits) {
  Paths paths;
  paths.data = FORGE_SOURCE_DIR;
  const TargetSpec target = *find_target("cuda:sm_90a");
  Random random(7);
  for (const std::string& op : operators()) {
    const auto b = load_blueprint(paths, op, target);
    ASSERT_TRUE(b) << b.error().text();
    const fs::path file = fs::path(FORGE_SOURCE_DIR) / "operators" / op / "definition.json";
    const auto text = read_file(file);
    ASSERT_TRUE(text) << text.error().text();
    const auto definition = parse_definition(*text, file.string());
    ASSERT_TRUE(definition) << definition.error().text();
    Names names{{"sm_count", 132}};
    for (const Axis& a : definition->axes) names[a.name] = a.constant ? a.value : 4096;
    const Status plain = check_choices(*b, default_choices(*b), names);
    EXPECT_TRUE(plain) << op << ": " << plain.error().text();
    for (const BlueprintDecision& d : b->decisions)
      for (const BlueprintOption* o : possible(d, names)) {
        Choices choices;
        bool found = false;
        for (int attempt = 0; attempt < 1000 && !found; attempt++) {
          choices = default_choices(*b);
          if (attempt > 0)
            for (const BlueprintDecision& other : b->decisions) {
              const auto options = possible(other, names);
              choices[other.name] = options[random.below(options.size())]->value;
            }
          choices[d.name] = o->value;
          found = check_choices(*b, choices, names).has_value();
        }
        // Some values suit only some of the operators that share a blueprint.
        if (!found) continue;
        const auto p = render(*b, choices, target, names);
        ASSERT_TRUE(p) << p.error().text();
        const auto plan = parse_launch_plan(p->plan_text, "launch.toml");
        ASSERT_TRUE(plan) << op << " " << d.name << "=" << o->value << ": " << plan.error().text();
        const Status fits = check_plan(*plan, *definition, target, "launch.toml");
        EXPECT_TRUE(fits) << op << " " << d.name << "=" << o->value << ": " << fits.error().text();
        EXPECT_EQ(p->source.find("//@"), std::string::npos) << op;
        for (const BlueprintStage& stage : b->stages) {
          const auto without = render(*b, choices, target, names, stage.name);
          ASSERT_TRUE(without) << op << " without " << stage.name << ": " << without.error().text();
          EXPECT_NE(without->source, p->source) << op << " without " << stage.name;
          EXPECT_EQ(without->plan_text, p->plan_text) << op << " without " << stage.name;
        }
      }
  }
}

// An entry that advises what no blueprint knows would be read and never used.
TEST(CudaBlueprints, KnowDecisionsAndValuesThatEntriesAdvise) {
  Paths paths;
  paths.data = FORGE_SOURCE_DIR;
  const TargetSpec target = *find_target("cuda:sm_90a");
  std::set<std::pair<std::string, std::string>> known;
  for (const std::string& op : operators()) {
    const auto b = load_blueprint(paths, op, target);
    ASSERT_TRUE(b) << b.error().text();
    for (const BlueprintDecision& d : b->decisions)
      for (const BlueprintOption& o : d.options) known.insert({d.name, o.value});
  }
  for (const auto& folder : fs::directory_iterator(fs::path(FORGE_SOURCE_DIR) / "knowledge" / "cuda")) {
    const fs::path file = folder.path() / "entry.toml";
    const auto entry = parse_entry(*read_file(file), file.string());
    ASSERT_TRUE(entry) << entry.error().text();
    for (const Advice& a : entry->advice)
      EXPECT_TRUE(known.count({a.decision, a.value})) << entry->id << ": " << a.decision << "=" << a.value;
  }
}

}  // namespace
}  // namespace forge
