// SPDX-License-Identifier: Apache-2.0
// The three importers over whole folders. Input: definition.json, ====, workloads.jsonl, ====, problem.py, ====, task.yml, ====,
// reference.py. What is taken must be an operator that reads back.
// link: forge_exchange
#include "exchange/import.h"

#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(import) {
  const auto texts = fuzz::parts(bytes, 5);
  fuzz::put("set/definitions/op/toy.json", texts[0]);
  fuzz::put("set/workloads/op/toy.jsonl", texts[1]);
  fuzz::put("set/problems/1_toy.py", texts[2]);
  fuzz::put("set/tasks/toy/task.yml", texts[3]);
  fuzz::put("set/tasks/toy/reference.py", texts[4]);
  const auto items = import_tasks(fuzz::folder() / "set");
  if (!items) return;
  for (const ImportItem& item : *items) {
    HOLDS(item.taken.has_value() != item.refused.has_value());
    if (!item.taken) continue;
    HOLDS(!item.taken->name.empty() && item.taken->name.find('/') == std::string::npos);
    for (const ExportedFile& f : item.taken->files) HOLDS(fs::path(f.name).is_relative() && f.name.find("..") == std::string::npos);
  }
}

}  // namespace forge
