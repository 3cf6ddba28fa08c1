// SPDX-License-Identifier: Apache-2.0
// A knowledge entry and its evidence. Input: entry.toml, ====, evidence/<class>.json.
// link: forge_core
#include "core/entry.h"

#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(entry) {
  const auto texts = fuzz::parts(bytes, 2);
  auto e = parse_entry(texts[0], "entry.toml");
  const auto c = parse_certification(texts[1], "evidence.json");
  if (c) {
    const std::string json = certification_to_json(*c);
    const auto again = parse_certification(json, "again");
    HOLDS(again && certification_to_json(*again) == json);
  }
  if (!e) return;
  HOLDS(state_on(*e, "cpu:none") == (e->retired ? EntryState::retired : EntryState::proposed));
  if (c) {
    e->evidence.push_back(*c);
    (void)state_on(*e, c->device_class);
  }
}

}  // namespace forge
