// SPDX-License-Identifier: Apache-2.0
// The main flow: run (one reference to one promoted kernel), evolve (generations until the gain is within the floor), replay.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "agents/agent.h"
#include "agents/driver.h"
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
  double first_correct_seconds = 0, best_seconds = 0;  // of wall time, until the first correct kernel and until the best; 0: none
  std::vector<Plan> plans;
  std::vector<BranchOutcome> branches;
  std::vector<FailureCondition> failures;  // of reverted and blocked branches
};

// What a run takes over from the generation that it is built against.
struct Heritage {
  int number = 0;                                              // of the generation that this run makes
  std::string parent;                                          // id of the reference generation; empty: an expert
  std::vector<std::pair<std::string, std::string>> decisions;  // the reference's own
  std::vector<FailureCondition> avoided;                       // what failed in the run that made it
};

// Everything the flow needs from outside; tests pass fakes.
struct RunParts {
  Gate* gate = nullptr;
  ArchitectureAgent* architect = nullptr;
  CodingAgent* coder = nullptr;
  const KnowledgeBase* knowledge = nullptr;
  Journal* journal = nullptr;
  const Meter* meter = nullptr;  // tokens of agents that are models; null: none are
  const OperatorFolder* op = nullptr;
  const Machine* machine = nullptr;
  const Paths* paths = nullptr;  // to build probes' baselines for adoption; null: nothing counts as adopted
  fs::path home;                 // vault and ledger; empty: nothing is written (tests, replay)
  Heritage heritage;
  std::optional<KernelPackage> shown_reference;  // what the coder may read of it, where the task says so
  std::string run_id;
  std::function<void(const std::string&)> say;  // one line per event, for people
};
// DESIGN's run(task). Deterministic between journal steps. Ctrl-C: stop is Stop::user and the journal can be resumed.
Result<RunResult> run(const Task&, const RunParts&);

// The real parts put together: new run, resume of a run, replay of a run.
Result<RunResult> start_run(const Paths&, Store&, const Task&, const std::function<void(const std::string&)>& say);
Result<RunResult> resume_run(const Paths&, Store&, const std::string& run_id, const std::function<void(const std::string&)>& say);
struct ReplayResult {
  int steps = 0;
  bool same = false;
  std::string difference;
};
Result<ReplayResult> replay_run(const Paths&, const Store&, const std::string& run_id);

struct EvolveResult {
  std::vector<RunResult> generations;
  std::string ended;
};
Result<EvolveResult> evolve(const Paths&, Store&, const Task&, int max_generations, const std::function<void(const std::string&)>& say);

}  // namespace forge
