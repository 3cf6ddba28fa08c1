// SPDX-License-Identifier: Apache-2.0
// The main flow: run (one reference to one promoted kernel), evolve (generations until the gain is within the floor), replay.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "agents/agent.h"
#include "core/record.h"
#include "store/store.h"
#include "util/fs.h"

namespace forge {

struct RunResult {
  std::string run_id;
  Stop stop = Stop::exhausted;
  bool sealed = false, promoted = false;
  std::optional<Generation> generation;
  std::optional<Verdict> confirmation;
  ReferenceInfo reference;
  NoiseFloor floor;
  Spent spent;
  std::vector<Plan> plans;
  std::vector<BranchOutcome> branches;
};

// Everything the flow needs from outside; tests pass fakes.
struct RunParts {
  Gate* gate = nullptr;
  ArchitectureAgent* architect = nullptr;
  CodingAgent* coder = nullptr;
  const KnowledgeBase* knowledge = nullptr;
  Journal* journal = nullptr;
  const OperatorFolder* op = nullptr;
  const Machine* machine = nullptr;
  fs::path home;                                    // vault and ledger; empty: nothing sealed (tests, replay)
  std::string run_id;
  std::function<void(const std::string&)> say;      // one line per event, for people
};
// DESIGN's run(task). Deterministic between journal steps.
Result<RunResult> run(const Task&, const RunParts&);

// The real parts put together: new run, resume of a run, replay of a run.
Result<RunResult> start_run(const Paths&, Store&, const Task&, const std::function<void(const std::string&)>& say);
Result<RunResult> resume_run(const Paths&, Store&, const std::string& run_id, const std::function<void(const std::string&)>& say);
struct ReplayResult { int steps = 0; bool same = false; std::string difference; };
Result<ReplayResult> replay_run(const Paths&, const Store&, const std::string& run_id);

struct EvolveResult { std::vector<RunResult> generations; std::string ended; };
Result<EvolveResult> evolve(const Paths&, Store&, const Task&, int max_generations, const std::function<void(const std::string&)>& say);

}  // namespace forge
