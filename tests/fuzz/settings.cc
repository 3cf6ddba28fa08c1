// SPDX-License-Identifier: Apache-2.0
// What a user configures. Input: config.toml, ====, models.toml, ====, a model's name with its server, ====, a Host header.
// link: forge_cli
#include "cli/command.h"
#include "fuzz/target.h"
#include "model/wire.h"
#include "report/web.h"

namespace forge {

FORGE_FUZZ_TARGET(settings) {
  const auto texts = fuzz::parts(bytes, 4);
  const fs::path home = fuzz::put("home/config.toml", texts[0]).parent_path();
  fuzz::put("home/models.toml", texts[1]);
  if (const auto c = read_config(home)) HOLDS(c->goal >= 0 && c->budget.candidates > 0);
  if (const auto m = read_model_settings(home, texts[2])) HOLDS(m->max_output > 0 && m->attempts > 0);
  const std::string key = "sk-0123456789";
  if (const auto e = read_endpoint(texts[2], [&](const char*) { return key; }))
    HOLDS(without_key(e->identity() + key, *e).find(key) == std::string::npos || e->key.empty());
  (void)host_is_ours(texts[3], "127.0.0.1", "forge.example");
  (void)host_is_ours(texts[3], "0.0.0.0", "forge.example");
  HOLDS(!is_loopback(texts[3]) || texts[3].starts_with("127.") || texts[3].find(':') != std::string::npos);
}

}  // namespace forge
