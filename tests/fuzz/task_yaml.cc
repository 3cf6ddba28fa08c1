// SPDX-License-Identifier: Apache-2.0
// Input: task.yml.
// link: forge_exchange
#include "exchange/task_yaml.h"

#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(task_yaml) {
  const auto sections = parse_task_yaml(std::string(bytes), "task.yml");
  if (!sections) HOLDS(!sections.error().message.empty());
}

}  // namespace forge
