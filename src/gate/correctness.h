// SPDX-License-Identifier: Apache-2.0
// A correctness run: one kernel through the judge's workloads, every output element of every call compared.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/operator.h"
#include "core/verdict.h"
#include "gate/judge.h"
#include "runner/runner.h"

namespace forge {

struct KernelFailure {
  Reason reason = Reason::runner_broke;
  std::string detail;
  bool killed = false;  // RunnerFailure::killed
};

struct CorrectnessRun {
  CorrectnessReport report;
  std::optional<KernelFailure> failure;  // the first one; the run ended there
};

// The call of a kernel on a stage: of an image, or of an expert when `image` is null.
Result<CallSpec> call_on(Stage&, const Image* image, int workers);
// `calls` calls of fresh content on each workload, the first workload one more (same buffers, new content: a stale answer shows).
Result<CorrectnessRun> run_correctness(Judge&, Runner&, const Image* image, int workers, const std::vector<Workload>&, bool fresh,
                                       int calls);

}  // namespace forge
