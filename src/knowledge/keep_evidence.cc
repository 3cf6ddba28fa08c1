// SPDX-License-Identifier: Apache-2.0
#include "knowledge/keep_evidence.h"

#include <fmt/format.h>

namespace forge {

namespace {
bool settles(const Certification& c) { return c.applicable && c.outcome != EntryState::proposed; }
}  // namespace

std::string why_keep(const Certification& kept, const Certification& now) {
  if (!kept.applicable) return "";
  const std::string evidence = fmt::format("the evidence of {} was kept", kept.date);
  if (!now.applicable) return evidence + ": it was measured, and now the probe could not run";
  if (settles(kept) && !settles(now))
    return evidence + fmt::format(": it is settled ({}), which this is not (floor {:.2f} % then, {:.2f} % now)", name(kept.outcome),
                                  100 * kept.floor, 100 * now.floor);
  if (settles(kept) == settles(now) && !(now.floor <= kept.floor))
    return evidence + fmt::format(": its floor was {:.2f} %, and is {:.2f} % now", 100 * kept.floor, 100 * now.floor);
  return "";
}

}  // namespace forge
