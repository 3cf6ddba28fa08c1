// SPDX-License-Identifier: Apache-2.0
// Input: definition.json.
// link: forge_exchange
#include "core/operator.h"
#include "exchange/draft.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(definition) {
  const auto d = parse_definition(std::string(bytes), "definition.json");
  if (!d) return;
  std::map<std::string, std::int64_t> variable;
  for (const Axis& a : d->axes)
    if (!a.constant) variable[a.name] = 7;
  const auto axes = complete_axes(*d, variable);
  HOLDS(axes.has_value());
  for (const auto& tensors : {d->inputs, d->outputs})
    for (const TensorSpec& t : tensors) {
      (void)element_count(t, *axes);
      (void)byte_count(t, *axes);
      HOLDS(find_tensor(*d, t.name) != nullptr);
    }
  const auto again = parse_definition(definition_to_json(*d), "again");
  HOLDS(again && again->inputs == d->inputs && again->outputs == d->outputs && again->axes == d->axes);
}

}  // namespace forge
