// SPDX-License-Identifier: Apache-2.0
// The outside clock's audit of a job on a GPU: batches of pipelined calls of the candidate and of the sides that the inside clock
// calls beaten. It can only take a "faster" away, so it is not run where there is none. docs/judging.md, "Two clocks".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "gate/real_gate.h"

namespace forge {
namespace {

constexpr int k_fewest_calls = 4;

// A side that cannot run a batch is no witness, and that is no fault of the candidate's: it may be the candidate that no graph holds.
bool no_witness(int side, Reason reason) { return reason == Reason::load_failed || (side > 0 && !process_died(reason)); }

// What to ask of a side: nothing, where the inside clock does not call it beaten; else an interval of half the distance between the
// inside's ratio and what the outside one must exclude (decide.cc).
std::optional<BatchSide> asked(const JobResult& job, const JobPlan& plan, int side) {
  const std::vector<double> seconds = inside_seconds(job.calls[std::size_t(side)]);
  const RatioStats r = paired_ratio(inside_seconds(job.calls[0]), seconds);
  bool beaten = compare(r, plan.floor) == Comparison::faster;
  double need = 1;
  for (const JobWatch& w : plan.watch)
    if (w.side == side && r.lower > w.need) {
      beaten = true;
      need = std::min(need, w.need);
    }
  if (!beaten) return {};
  return BatchSide{.side = side, .seconds = median(seconds), .wanted = std::log(r.mid / need) / 2};
}

}  // namespace

Status RealGate::audit(Job& job, Stage& stage, const std::vector<Side>& sides, const std::string& what) {
  JobResult& result = job.result;
  result.audit = m_parts.audit;
  if (m_parts.audit != Audit::batches || !job.plan.audited || result.failure) return {};
  BatchPlan plan;
  plan.sides = {{}};
  double seconds = 0;
  for (std::size_t i = 1; i < sides.size(); ++i) {
    if (sides[i].label == "self") continue;
    const auto side = asked(result, job.plan, int(i));
    if (!side) continue;
    // Of the trusted side: the candidate has no say in how often it is run.
    seconds = plan.sides.size() == 1 ? side->seconds : std::min(seconds, side->seconds);
    plan.sides.push_back(*side);
  }
  const auto missing = [&](const std::string& why) {
    result.batches_missing = why;
    return Status{};
  };
  if (plan.sides.size() == 1) return missing("the inside clock calls no side slower than the candidate");

  plan.calls = batch_calls(seconds);
  const Workload& timed = m_parts.judge->timed();
  if (!m_batch || m_batch->slots() < 2 * plan.calls) {
    m_batch.reset();
    auto batch = m_parts.judge->batch(timed.axes, timed.generator, kBases, 2 * plan.calls);
    if (!batch) return missing(batch.error().text());
    m_batch = std::move(*batch);
  }
  plan.calls = std::min(plan.calls, m_batch->slots() / 2);
  if (plan.calls < k_fewest_calls)
    return missing(fmt::format("a batch takes {} calls: the card's memory holds {} contents, and a call takes {:.2g} s", 2 * k_fewest_calls,
                               m_batch->slots(), seconds));
  // The slots are gigabytes, and go when another job wants more of them: nobody keeps them mapped until then. Who cannot let go has died,
  // and the next job finds that out.
  const auto let_go = [&] {
    for (const BatchSide& side : plan.sides)
      if (sides[std::size_t(side.side)].who->image) (void)job.sides[std::size_t(side.side)].runner->prepare_batch({});
  };
  for (const BatchSide& side : plan.sides) {
    const int i = side.side;
    Contestant& who = *sides[std::size_t(i)].who;
    if (!who.image) continue;
    const auto calls = m_batch->calls_for(who.image_or_null(), m_machine.cores);
    if (!calls) {
      let_go();
      return missing(calls.error().text());
    }
    if (auto ready = who.runner->prepare_batch(*calls); !ready) {
      let_go();
      if (no_witness(i, ready.error().reason)) return missing(ready.error().detail);
      result.failure = JobFailure{i, ready.error().reason, ready.error().detail, ready.error().killed};
      return {};
    }
  }
  auto ran = run_batches(plan, job.sides, *m_batch, stage, m_random, what);
  let_go();
  if (!ran) return tl::unexpected(ran.error());
  result.batches = std::move(*ran);
  result.seconds += result.batches.seconds;
  std::string why;
  if (const auto& f = result.batches.failure; f && no_witness(f->side, f->reason))
    why = f->detail;
  else if (!f && int(result.batches.per_call_s[0].size()) < plan.repetitions)
    why = fmt::format("{} repetitions were not done within {:g} s", plan.repetitions, plan.end_s);
  if (!why.empty()) {
    result.batches.per_call_s.clear();
    return missing(why);
  }
  result.failure = result.batches.failure;
  if (result.failure && result.failure->side > 0 && process_died(result.failure->reason))
    sides[std::size_t(result.failure->side)].who->runner.reset();
  const CorrectnessReport& checks = result.batches.checks;
  result.checks.checks += checks.checks;
  result.checks.elements += checks.elements;
  if (checks.worst > result.checks.worst) {
    result.checks.worst = checks.worst;
    result.checks.worst_where = checks.worst_where;
  }
  return {};
}

}  // namespace forge
