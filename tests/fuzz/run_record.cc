// SPDX-License-Identifier: Apache-2.0
// What only a run's journal holds: decisions, the reference, retrieved entries, what a run takes over, tokens. Input: one of them as JSON.
// What is read is written, and reads back as the same.
// link: forge_evolve
#include "agents/use_json.h"
#include "core/json_reader.h"
#include "evolve/run_json.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(run_record) {
  const auto j = parse_json(std::string(bytes), "journal");
  if (!j) return;
  if (const auto d = read_decisions(*j)) HOLDS(read_decisions(decisions_to_json(*d)).value_or(Decisions{{"", ""}}) == *d);
  if (const auto r = read_reference(*j)) {
    const auto again = read_reference(reference_to_json(*r));
    HOLDS(again && dump(reference_to_json(*again)) == dump(reference_to_json(*r)));
  }
  if (const auto r = read_retrieved(*j)) {
    const auto again = read_retrieved(retrieved_to_json(*r));
    HOLDS(again && dump(retrieved_to_json(*again)) == dump(retrieved_to_json(*r)));
  }
  if (const auto h = read_heritage(*j)) {
    const auto again = read_heritage(heritage_to_json(*h));
    HOLDS(h->number >= 0 && again && dump(heritage_to_json(*again)) == dump(heritage_to_json(*h)));
  }
  TokenUse use;
  JsonReader reader(*j, "journal");
  read_use(reader, use);
  (void)reader.finish();
}

}  // namespace forge
