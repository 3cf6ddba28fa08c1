// SPDX-License-Identifier: Apache-2.0
// Conditions as the knowledge base compiles them hold exactly when evaluate() says so, whatever order they are asked in. Input: a
// condition a line.
// link: forge_knowledge
#include "knowledge/conditions.h"

#include "fuzz/target.h"
#include "util/text.h"

namespace forge {

FORGE_FUZZ_TARGET(conditions) {
  Conditions all;
  std::vector<std::pair<Expr, std::uint32_t>> added;
  for (const std::string& line : split(std::string(bytes), '\n'))
    if (const auto e = parse_expr(line); e && added.size() < 32) {
      added.emplace_back(*e, all.add(*e));
      HOLDS(all.add(*e) == added.back().second);
    }
  all.finish();
  for (const Names& names :
       {Names{{"B", 8}, {"N", 4096}, {"big", INT64_MAX}, {"low", INT64_MIN}, {"zero", 0}}, Names{{"zero", 1}}, Names{}}) {
    Conditions::Asked asked(all, names);
    for (int round = 0; round < 2; ++round)
      for (const auto& [e, id] : added) {
        const auto value = evaluate(e, names);
        HOLDS(asked.holds(id) == (value && *value != 0));
      }
  }
}

}  // namespace forge
