// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "evolve/start.h"

namespace forge {

Result<ReplayResult> conclude_replay(const Journal& journal, const Result<RunResult>& result) {
  ReplayResult out{.steps = static_cast<int>(journal.events().size()), .same = true, .difference = {}};
  if (result && result->stop == Stop::user) return fail(Code::interrupted, "the replay was stopped");
  if (!journal.replaying()) {
    // The whole record was repeated. Beyond the end of an unfinished run there is nothing to compare with.
    if (result || result.error().code == Code::diverged) return out;
    return fail(result.error());
  }
  out.same = false;
  if (result) {
    out.difference = "the run ended before the record did";
  } else {
    if (result.error().code != Code::diverged) return fail(result.error());
    out.steps = std::max(0, result.error().line - 1);
    out.difference = result.error().text();
  }
  return out;
}

}  // namespace forge
