// SPDX-License-Identifier: Apache-2.0
// Input: definition.json, ====, task.toml.
// link: forge_core
#include "core/operator.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(task_file) {
  const auto texts = fuzz::parts(bytes, 2);
  const auto d = parse_definition(texts[0], "definition.json");
  if (!d) return;
  const auto t = parse_task_file(texts[1], "task.toml", *d);
  if (!t) return;
  HOLDS(t->judges.size() == d->outputs.size());
  for (const std::string family : {"cpu", "cuda"}) {
    const auto axes = complete_axes(*d, timed_workload(*t, family).axes);
    if (!axes) continue;
    (void)evaluate(t->flops, *axes);
    (void)evaluate(t->bytes, *axes);
  }
}

}  // namespace forge
