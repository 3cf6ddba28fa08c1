// SPDX-License-Identifier: Apache-2.0
// A blueprint, its defaults rendered, and what came of it as a launch plan. Input: blueprint.toml, ====, kernel.cpp.in, ====,
// launch.toml.in.
// link: forge_core
#include "core/blueprint.h"

#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(blueprint) {
  const auto texts = fuzz::parts(bytes, 3);
  const fs::path at = fs::path("blueprints") / "cpu" / "toy";
  const fs::path file = fuzz::put(at / "blueprint.toml", texts[0]);
  fuzz::put(at / "kernel.cpp.in", texts[1]);
  fuzz::put(at / "launch.toml.in", texts[2]);
  Paths paths;
  paths.data = fuzz::folder();
  const TargetSpec target = find_target("cpu:x86-64-avx2").value();
  const auto b = load_blueprint(paths, "toy", target);
  if (!b) return;
  const Names names = {{"M", 512}, {"N", 4096}, {"K", 64}, {"B", 8}, {"cores", 2}, {"l2_bytes", 1 << 20}, {"vector_bits", 256}};
  Choices choices = default_choices(*b);
  for (const BlueprintDecision& d : b->decisions) {
    HOLDS(find_option(d, d.default_value) != nullptr);
    const auto options = possible(d, names);
    if (options.empty()) continue;
    choices[d.name] = options.back()->value;
    if (const auto package = render(*b, choices, target, names)) (void)parse_launch_plan(package->plan_text, "launch.toml");
    for (const BlueprintStage& stage : b->stages) (void)render(*b, choices, target, names, stage.name);
  }
  (void)check_choices(*b, default_choices(*b), names);
}

}  // namespace forge
