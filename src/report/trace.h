// SPDX-License-Identifier: Apache-2.0
// A run as OpenTelemetry spans, from its journal alone, in the OTLP file format: one JSON line that any collector reads. Agents are
// told of by the GenAI conventions; prompts, arguments and answers stay in the journal.
#pragma once
#include <string>
#include <vector>

#include "store/journal.h"

namespace forge {
// One line, with its newline. The same journal gives the same line: ids come from the run's id, times from the events. The journal
// keeps whole seconds of the clock and the exact length of every step, so a span begins up to a second before it did.
Result<std::string> render_trace(const std::vector<Event>&);
}  // namespace forge
