// SPDX-License-Identifier: Apache-2.0
// What the journal and the vault hold as JSON: verdicts, generations, tasks, and the other nouns. Input: one of them.
// link: forge_agents
#include "core/record.h"

#include "agents/model_json.h"
#include "core/json_io.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(record) {
  const std::string text(bytes);
  if (const auto v = parse_verdict(text, "verdict.json")) {
    const std::string json = verdict_to_json(*v);
    const auto again = parse_verdict(json, "again");
    HOLDS(again && verdict_to_json(*again) == json);
    HOLDS(v->measurement().has_value() <= v->correct());
  }
  if (const auto g = parse_generation(text, "generation.json")) {
    const std::string json = generation_to_json(*g);
    const auto again = parse_generation(json, "again");
    HOLDS(again && generation_to_json(*again) == json);
  }
  if (const auto t = parse_task(text, "task.json")) {
    const auto again = parse_task(task_to_json(*t), "again");
    HOLDS(again && task_to_json(*again) == task_to_json(*t));
  }
  if (const auto r = read_model_reply(text)) {
    const auto again = read_model_reply(model_reply_to_json(*r));
    HOLDS(again && model_reply_to_json(*again) == model_reply_to_json(*r));
  }
  const auto j = parse_json(text, "noun.json");
  if (!j) return;
  (void)read_noise_floor(*j, "noun.json");
  (void)read_evidence(*j, "noun.json");
  (void)read_paired_timing(*j, "noun.json");
  (void)read_diagnostics(*j, "noun.json");
  (void)read_package(*j, "noun.json");
  (void)read_machine(*j, "noun.json");
}

}  // namespace forge
