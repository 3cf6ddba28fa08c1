// SPDX-License-Identifier: Apache-2.0
#include "gate/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "util/progress.h"

namespace forge {
namespace {

bool undecided(const JobResult& job, const JobWatch& watch, double floor) {
  const auto r = paired_ratio(inside_seconds(job.calls[0]), inside_seconds(job.calls[std::size_t(watch.side)]));
  if (r.lower > watch.need || r.upper < watch.need) return false;
  const auto c = compare(r, floor);
  return !(watch.gain_wanted && (c == Comparison::same || c == Comparison::slower));
}

bool hopeless(const JobResult& job, const JobWatch& watch) {
  return paired_ratio(inside_seconds(job.calls[0]), inside_seconds(job.calls[std::size_t(watch.side)])).upper < watch.need * kHopeless;
}

void note_check(CorrectnessReport& report, const CheckResult& check, const std::string& where) {
  ++report.checks;
  report.elements += check.elements;
  if (check.worst > report.worst || report.worst_where.empty()) {
    report.worst = check.worst;
    report.worst_where = where;
  }
}

class Job {
 public:
  Job(const JobPlan& plan, const std::vector<JobSide>& sides, Stage& stage, Random& random)
      : m_plan(plan), m_sides(sides), m_stage(stage), m_random(random), m_order(sides.size()) {
    std::iota(m_order.begin(), m_order.end(), 0);
    m_result.calls.resize(sides.size());
    m_result.planned = plan.pairs;
  }

  Result<JobResult> run(const std::string& what) {
    for (int i = 0; i < m_plan.warm_up && !m_result.failure; ++i) FORGE_TRY(round(false));
    const LoadSample before = sample_load();
    look_at_card();
    int target = m_plan.pairs;
    for (int done = 0; done < target && !m_result.failure;) {
      Progress::show(fmt::format("{}: pair {} of {}", what, done + 1, target));
      FORGE_TRY(round(true));
      if (++done % kCardBlock == 0) look_at_card();
      if (m_plan.may_stop_early && done == kPilotPairs && done < target && !m_plan.watch.empty() && !m_result.failure &&
          hopeless(m_result, m_plan.watch.front())) {
        m_result.stopped_early = true;
        break;
      }
      if (done == target && m_plan.may_extend && !m_result.extended && !m_result.failure && any_undecided()) {
        m_result.extended = true;
        target *= 2;
      }
    }
    const LoadSample after = sample_load();
    look_at_card();
    m_result.load = foreign_load(before, after);
    m_result.seconds = after.wall_s - before.wall_s;
    if (const auto rounds = m_result.calls[0].size()) m_result.round_seconds = m_result.seconds / double(rounds);
    Progress::clear();
    return std::move(m_result);
  }

 private:
  void look_at_card() {
    if (m_plan.card) m_result.card.push_back(m_plan.card());
  }
  bool any_undecided() const {
    return std::any_of(m_plan.watch.begin(), m_plan.watch.end(), [&](const JobWatch& w) { return undecided(m_result, w, m_plan.floor); });
  }

  Status round(bool record) {
    if (stop_requested()) return tl::unexpected(Error{.code = Code::interrupted, .message = "stopped while timing"});
    shuffle(m_order, m_random);  // anew, not ABBA: a fair coin per pair is what makes the signed-rank test exact
    std::vector<CallTiming> timings(m_sides.size());
    for (int i : m_order) {
      const JobSide& side = m_sides[std::size_t(i)];
      const auto scrubbed = side.runner->scrub();
      FORGE_TRY(m_stage.refresh());
      const auto call = scrubbed ? side.runner->call() : tl::unexpected(scrubbed.error());
      if (!call) {
        m_result.failure = JobFailure{i, call.error().reason, call.error().detail, call.error().killed};
        return {};
      }
      timings[std::size_t(i)] = *call;
      // Drawn after the call, so that nothing in the call can depend on it.
      if (side.checking == Checking::none || (side.checking == Checking::random_third && m_random.below(3) != 0)) continue;
      const CheckResult check = m_stage.check();
      if (check.reason != Reason::accepted) {
        m_result.failure = JobFailure{i, check.reason, check.detail};
        return {};
      }
      if (i == 0) note_check(m_result.checks, check, m_stage.label());
    }
    if (record)
      for (std::size_t i = 0; i < timings.size(); ++i) m_result.calls[i].push_back(timings[i]);
    return {};
  }

  const JobPlan& m_plan;
  const std::vector<JobSide>& m_sides;
  Stage& m_stage;
  Random& m_random;
  std::vector<int> m_order;
  JobResult m_result;
};

double half_width(const RatioStats& r) {  // of the log ratio, at kAlpha
  if (!(r.lower > 0)) return 1;
  return std::min(1.0, 0.5 * std::log(r.upper / r.lower));
}

// Of both clocks, for telling whether they agree. A candidate has a say in how far its times scatter, above all by the inside clock,
// which it may forge; that must not make anything agree.
double half_widths(const RatioStats& inside, const RatioStats& outside) {
  const double trusted = std::min(half_width(outside), 0.1);
  return trusted + std::min(half_width(inside), trusted + 0.005);
}

}  // namespace

Result<JobResult> run_job(const JobPlan& plan, const std::vector<JobSide>& sides, Stage& stage, Random& random, const std::string& what) {
  return Job(plan, sides, stage, random).run(what);
}

std::vector<double> inside_seconds(const std::vector<CallTiming>& calls) {
  std::vector<double> out;
  for (const auto& c : calls) out.push_back(c.inside_s);
  return out;
}

std::vector<double> outside_seconds(const std::vector<CallTiming>& calls) {
  std::vector<double> out;
  for (const auto& c : calls) out.push_back(c.outside_s);
  return out;
}

std::string cpu_time_problem(const std::vector<CallTiming>& calls, int workers) {
  for (const auto& c : calls) {
    // 2 ms and 5 %: the kernel's accounting, and the runner's own work between the judge's two readings.
    if (c.cpu_s > c.outside_s * workers * 1.05 + 0.002)
      return fmt::format("{:.3f} ms of CPU time in a call of {:.3f} ms on {} workers", c.cpu_s * 1e3, c.outside_s * 1e3, workers);
  }
  return inside_problem(calls);
}

std::string inside_problem(const std::vector<CallTiming>& calls) {
  for (const auto& c : calls)
    if (c.inside_s > c.outside_s * 1.01 + 20e-6)
      return fmt::format("the inside clock says {:.3f} ms, the outside clock {:.3f} ms", c.inside_s * 1e3, c.outside_s * 1e3);
  return {};
}

namespace {

// What a call costs beside its kernels is the same on both sides, so their difference d is the kernels' own. It is told against the
// other side's time t, which is trusted: an expert's, or a sealed kernel's that was audited itself. The interval is that of d / t, where
// an error of either sign weighs the same; then t / (t + d).
RatioStats outside_ratio(const BatchTimes& times, int candidate, int against, double against_s) {
  const std::vector<double>&mine = times.per_call_s.at(candidate), &other = times.per_call_s.at(against);
  std::vector<double> with, without;
  for (std::size_t r = 0; r < mine.size(); ++r) {
    with.push_back(std::exp(std::clamp((mine[r] - other[r]) / against_s, -20.0, 20.0)));
    without.push_back(1);
  }
  RatioStats stats = paired_ratio(with, without);
  for (double* bound : {&stats.mid, &stats.low95, &stats.high95, &stats.lower, &stats.upper})
    *bound = 1 / std::max(1 - std::log(*bound), 1e-3);  // a difference beyond the whole call is noise, or worse
  return stats;
}

}  // namespace

int batch_calls(double seconds) {
  constexpr double jitter = 15e-6, wanted = 0.0025;  // of a batch over all repetitions; of a call's time
  constexpr double longest = 10;                     // of a batch of 2N: one call's patience is a batch's too
  // No more than that takes: long calls in a row run into the card's power limit, where the inside clock's single ones do not.
  const int calls = std::clamp(int(std::ceil(jitter / (wanted * std::max(seconds, 1e-6)))), 4, 64);
  return std::min(calls, int(longest / 2 / std::max(seconds, 1e-6)));
}

Result<BatchTimes> run_batches(const BatchPlan& plan, const std::vector<JobSide>& sides, Batch& batch, Stage& stage, Random& random,
                               const std::string& what) {
  BatchTimes result;
  result.calls = plan.calls;
  const double began = monotonic_seconds();
  const auto failed = [&](int i, const RunnerFailure& f) {
    result.failure = JobFailure{i, f.reason, f.detail + " (in a batch)", f.killed};
    return std::optional<double>();
  };
  // One batch of a side: fresh content in every slot, the calls, every output of every slot compared. Seconds; none: it failed.
  const auto run = [&](int i, int calls) -> Result<std::optional<double>> {
    const JobSide& side = sides[std::size_t(i)];
    if (auto scrubbed = side.runner->scrub(); !scrubbed) return failed(i, scrubbed.error());
    FORGE_TRY(side.one_slot ? stage.refresh() : batch.refresh(calls));
    const auto seconds = side.runner->batch(calls);
    if (!seconds) return failed(i, seconds.error());
    const CheckResult check = side.one_slot ? stage.check() : batch.check(calls);
    if (check.reason != Reason::accepted) return failed(i, {check.reason, check.detail});
    if (i == 0) {
      note_check(result.checks, check, stage.label());
      result.checks.checks += calls - 1;
    }
    return std::optional<double>(*seconds);
  };
  const auto flushes = [&](int i, int calls) -> Result<std::optional<double>> {
    const auto seconds = sides[std::size_t(i)].runner->batch(calls, true);
    if (!seconds) return failed(i, seconds.error());
    return std::optional<double>(*seconds);
  };
  for (const BatchSide& s : plan.sides) {  // warms up
    FORGE_TRY_ASSIGN(const auto seconds, run(s.side, plan.calls));
    if (!seconds) return result;
  }
  const auto narrow = [&](const BatchSide& s) {
    if (s.side == plan.sides[0].side) return true;
    const RatioStats r = outside_ratio(result, plan.sides[0].side, s.side, s.seconds);
    return std::log(r.high95 / r.low95) / 2 <= s.wanted;
  };
  const auto enough = [&](int repetitions) {
    if (repetitions < plan.repetitions) return monotonic_seconds() - began > plan.end_s;
    return repetitions >= plan.most || monotonic_seconds() - began > plan.patience_s ||
           std::all_of(plan.sides.begin(), plan.sides.end(), narrow);
  };
  for (int repetition = 0; !enough(repetition); ++repetition) {
    if (stop_requested()) return tl::unexpected(Error{.code = Code::interrupted, .message = "stopped while timing"});
    Progress::show(fmt::format("{}: outside clock, {} of {} or more", what, repetition + 1, plan.repetitions));
    // A call that knew how many follow could do their work with its own, or leave its own to them, and save what launches cost. So every
    // number of calls is as likely as any other, and what the judge finds in the other slots' outputs must be what it left there.
    const int some = 1 + int(random.below(std::size_t(2 * plan.calls))), calls = 2 * plan.calls + 1;
    struct Turn {
      int side, calls;
      bool flush_only;
    };
    std::vector<Turn> turns;
    for (const BatchSide& s : plan.sides)
      for (const int n : {some, calls - some}) turns.insert(turns.end(), {{s.side, n, false}, {s.side, n, true}});
    shuffle(turns, random);
    std::map<int, double> with, without;  // by side: seconds of the batches, and of their flushes alone
    for (const Turn& turn : turns) {
      FORGE_TRY_ASSIGN(const auto seconds, turn.flush_only ? flushes(turn.side, turn.calls) : run(turn.side, turn.calls));
      if (!seconds) {
        Progress::clear();
        return result;
      }
      (turn.flush_only ? without : with)[turn.side] += *seconds;
    }
    // The flush of the candidate's process is code that its kernels can reach, and a slow one would be its gain.
    double most = 0;
    for (const auto& [side, seconds] : without) most = side == 0 ? most : std::max(most, seconds);
    if (most > 0) without[0] = std::min(without[0], most + calls * kFlushSeconds);
    for (const auto& [side, seconds] : with) result.per_call_s[side].push_back((seconds - without[side]) / calls);
  }
  Progress::clear();
  result.seconds = monotonic_seconds() - began;
  return result;
}

PairedTiming make_pairing(const JobResult& job, const std::vector<JobSide>& sides, int candidate, int against, double floor) {
  const auto& c = job.calls[std::size_t(candidate)];
  const auto& a = job.calls[std::size_t(against)];
  PairedTiming out;
  out.against = sides[std::size_t(against)].label;
  out.candidate_s = inside_seconds(c);
  out.against_s = inside_seconds(a);
  const RatioStats inside = paired_ratio(out.candidate_s, out.against_s);
  out.comparison = compare(inside, floor);
  out.speedup = {inside.low95, inside.mid, inside.high95};
  out.lower_bound = inside.lower;
  out.upper_bound = inside.upper;
  out.pairs = inside.n;
  out.extended = job.extended;
  if (job.audit == Audit::batches) {
    if (!job.batches.per_call_s.count(candidate) || !job.batches.per_call_s.count(against)) return out;  // no audit: see batches_missing
    const double other = median(out.against_s);
    const RatioStats outside = outside_ratio(job.batches, candidate, against, other);
    out.outside_speedup = {outside.low95, outside.mid, outside.high95};
    const double shorter = other / std::max(1.0, outside.mid);  // not the inside's, which may be forged
    out.outside_resolution = half_widths(inside, outside) + kBatchSeconds / shorter + kBatchRatio;
    return out;
  }
  const RatioStats outside = paired_ratio(outside_seconds(c), outside_seconds(a));
  out.outside_speedup = {outside.low95, outside.mid, outside.high95};
  // What the outside clock can tell: its own spread, the inside's, and how far the constant cost of a turn (go, wake, done), read off
  // the trusted side, pulls the ratio towards one.
  std::vector<double> cost;
  for (const auto& t : a) cost.push_back(std::max(0.0, t.outside_s - t.inside_s));
  const double turn = median(cost), t_c = median(out.candidate_s), t_a = median(out.against_s);
  const double dilution = std::abs(std::log((t_a + turn) / (t_c + turn)) - std::log(t_a / t_c));
  out.outside_resolution = half_widths(inside, outside) + dilution + 0.002;
  return out;
}

}  // namespace forge
