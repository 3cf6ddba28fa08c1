// SPDX-License-Identifier: Apache-2.0
#include "gate/correctness.h"

#include <fmt/format.h>

#include "util/progress.h"

namespace forge {

Result<CallSpec> call_on(Stage& stage, const Image* image, int workers) {
  if (!image) return stage.call_for_expert();
  return stage.call_for(*image, workers);
}

Result<CorrectnessRun> run_correctness(Judge& judge, Runner& runner, const Image* image, int workers,
                                       const std::vector<Workload>& workloads, bool fresh, int calls) {
  CorrectnessRun run;
  auto failed = [&](Reason reason, std::string detail) {
    run.failure = KernelFailure{reason, std::move(detail)};
    Progress::clear();
    return run;
  };
  const auto lost = [&](const Stage& stage, const RunnerFailure& f) {
    run.failure = KernelFailure{f.reason, stage.label() + ": " + f.detail, f.killed};
    Progress::clear();
    return run;
  };
  for (std::size_t w = 0; w < workloads.size(); ++w) {
    if (stop_requested()) return tl::unexpected(Error{.code = Code::interrupted, .message = "stopped while checking correctness"});
    FORGE_TRY_ASSIGN(auto stage, judge.stage(workloads[w].axes, workloads[w].generator, 1, fresh));
    Progress::show(fmt::format("correctness: {} ({} of {})", stage->label(), w + 1, workloads.size()));
    auto call = call_on(*stage, image, workers);
    if (!call) {
      if (call.error().code == Code::unsupported) return failed(Reason::unsupported_shape, stage->label() + ": " + call.error().message);
      if (call.error().field == "workspace.bytes") return failed(Reason::workspace_too_large, stage->label() + ": " + call.error().message);
      if (call.error().code == Code::bad_input) return failed(Reason::plan_invalid, stage->label() + ": " + call.error().text());
      return tl::unexpected(call.error());
    }
    if (auto ready = runner.prepare(*call); !ready) return lost(*stage, ready.error());
    for (int i = 0; i < calls + (w == 0 ? 1 : 0); ++i) {
      if (auto scrubbed = runner.scrub(); !scrubbed) return lost(*stage, scrubbed.error());
      FORGE_TRY(stage->refresh());
      if (auto timing = runner.call(); !timing) return lost(*stage, timing.error());
      const CheckResult check = stage->check();
      if (check.reason != Reason::accepted) return failed(check.reason, check.detail);
      ++run.report.checks;
      run.report.elements += check.elements;
      if (check.worst > run.report.worst || run.report.worst_where.empty()) {
        run.report.worst = check.worst;
        run.report.worst_where = stage->label();
      }
    }
    run.report.workloads.push_back(stage->label());
  }
  Progress::clear();
  return run;
}

}  // namespace forge
