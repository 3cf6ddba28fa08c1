// SPDX-License-Identifier: Apache-2.0
#include "agents/use_json.h"

namespace forge {

Json to_json_value(const TokenUse& u) {
  Json out{{"input", u.input}, {"cache_read", u.cache_read}, {"cache_write", u.cache_write}, {"output", u.output}, {"dollars", u.dollars}};
  if (u.estimated) out["estimated"] = true;
  return out;
}

void read_use(JsonReader r, TokenUse& use) {
  r.need("input", use.input);
  r.need("cache_read", use.cache_read);
  r.need("cache_write", use.cache_write);
  r.need("output", use.output);
  r.need("dollars", use.dollars);
  r.maybe("estimated", use.estimated);
}

}  // namespace forge
