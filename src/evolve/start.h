// SPDX-License-Identifier: Apache-2.0
// What evolve() and the tests need of start_run and replay_run besides evolve.h.
#pragma once
#include <functional>
#include <string>

#include "evolve/evolve.h"

namespace forge {

using Say = std::function<void(const std::string&)>;

// "gen:<sha prefix>": what the sealed generation passes on. Anything else: nothing, number 0.
Result<Heritage> find_heritage(const Store&, const std::string& reference);
Result<RunResult> start_run_from(const Paths&, Store&, const Task&, const Heritage&, const Say&);
// From a journal in replay mode and what run() made of it: the same decisions, or which event differs.
Result<ReplayResult> conclude_replay(const Journal&, const Result<RunResult>&);

}  // namespace forge
