// SPDX-License-Identifier: Apache-2.0
// Map: check_kernel (build, admit, correctness, mechanism) -> run_sides (one paired job) -> conclude (a verdict). submit, confirm and
// against_expert differ in what is fresh and in who takes part. References: reference.cc; evidence: analysis.cc; tuning: diagnostics.cc.
#include "gate/real_gate.h"

#include <fmt/format.h>

#include <algorithm>

#include "gate/decide.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr std::size_t kWarmRivals = 3;  // runner processes kept for the next jobs
constexpr const char* kCandidate = "candidate";
constexpr std::size_t kLogCap = 16 << 10;  // bytes of build log in a verdict

}  // namespace

bool process_died(Reason r) {
  return r == Reason::crashed || r == Reason::timed_out || r == Reason::out_of_memory || r == Reason::runner_broke;
}

struct RealGate::Checked {
  std::string package_sha;
  Image image;
  std::unique_ptr<Contestant> who;
  std::optional<Verdict> ended;  // rejected or missed before timing
  CorrectnessReport report;
  SignatureResult mechanism;
  InstructionMix mix;
  std::string log;
  GateTimes times;
  std::vector<std::string> notes;
  double began = 0;

  Verdict finish(Verdict v) {
    v.package_sha = package_sha;
    v.image_sha = image.sha256;
    v.mechanism = mechanism;
    v.mix = mix;
    v.build_log = utf8_head(log, kLogCap);
    times.total = monotonic_seconds() - began;
    v.times = times;
    v.notes = notes;
    return v;
  }
};

RealGate::RealGate(GateParts parts, Task task, Machine machine, GateOptions options)
    : m_parts(std::move(parts)), m_task(std::move(task)), m_machine(std::move(machine)), m_options(options), m_random(os_entropy()) {}

Result<RealGate::Built> RealGate::build(const KernelPackage& package, double* waited) {
  const std::string sha = package_hash(package);
  if (const auto it = m_images.find(sha); it != m_images.end()) return Built(it->second);
  auto lease = m_parts.lease(Lease::Kind::build);
  if (!lease) return tl::unexpected(lease.error());
  if (waited) *waited += lease->waited;
  Progress::show("building " + package.origin);
  Built image = m_parts.build(package);
  Progress::clear();
  if (!image && image.error().ours) return tl::unexpected(*image.error().ours);
  if (image) m_images[sha] = *image;
  return image;
}

RunnerResult<std::unique_ptr<Runner>> RealGate::start_runner(const Contestant& who) const {
  const auto begin = [&] { return who.image ? m_parts.start_image(*who.image) : m_parts.start_expert(who.plugin); };
  auto runner = begin();
  if (!runner && runner.error().killed) runner = begin();  // killed from outside: that says nothing of what it held
  return runner;
}

RunnerResult<std::unique_ptr<Contestant>> RealGate::start(const Image& image, const std::string& id) const {
  auto who = std::make_unique<Contestant>();
  who->id = id;
  who->image = image;
  auto runner = start_runner(*who);
  if (!runner) return tl::unexpected(runner.error());
  who->runner = std::move(*runner);
  return who;
}

RunnerResult<std::unique_ptr<Contestant>> RealGate::start_again(const Contestant& old) const {
  auto runner = start_runner(old);
  if (!runner) return tl::unexpected(runner.error());
  auto who = std::make_unique<Contestant>();
  who->id = old.id;
  who->description = old.description;
  who->image = old.image;
  who->plugin = old.plugin;
  who->runner = std::move(*runner);
  return who;
}

Result<Contestant*> RealGate::rival(const KernelPackage& package) {
  const std::string sha = package_hash(package);
  for (auto it = m_rivals.begin(); it != m_rivals.end(); ++it)
    if (it->first == sha) {
      m_rivals.splice(m_rivals.begin(), m_rivals, it);
      return m_rivals.front().second.get();
    }
  FORGE_TRY_ASSIGN(const Built image, build(package));
  if (!image) return fail(Code::build_failed, "a rival that was built before does not build: " + image.error().detail);
  auto who = start(*image, sha);
  if (!who) return fail(Code::crashed, "a rival's runner did not start: " + who.error().detail);
  keep_as_rival(std::move(*who));
  return m_rivals.front().second.get();
}

void RealGate::keep_as_rival(std::unique_ptr<Contestant> who) {
  m_rivals.remove_if([&](const auto& r) { return r.first == who->id; });
  const std::string id = who->id;
  m_rivals.emplace_front(id, std::move(who));
  while (m_rivals.size() > kWarmRivals) m_rivals.pop_back();
}

Result<Stage*> RealGate::timed_stage() {
  if (!m_stage) {
    const Workload& timed = m_parts.judge->timed();
    Progress::show("oracle: expected values of the timed workload");
    FORGE_TRY_ASSIGN(m_stage, m_parts.judge->stage(timed.axes, timed.generator, kBases, false));
    Progress::clear();
  }
  return m_stage.get();
}

Result<RealGate::Checked> RealGate::check_kernel(const KernelPackage& package, const Signature& signature, bool fresh) {
  Checked c;
  c.began = monotonic_seconds();
  c.package_sha = package_hash(package);
  FORGE_TRY_ASSIGN(const Built image, build(package, &c.times.waited));
  const double took = monotonic_seconds() - c.began - c.times.waited;
  if (!image) {
    c.times.build = took;
    c.log = image.error().log;
    c.ended = Verdict::rejected(image.error().reason, image.error().detail);
    return c;
  }
  c.image = *image;
  c.log = image->build.log;
  c.times.build = std::min(took, image->build.seconds);  // less from the cache
  c.times.admit = took - c.times.build;
  for (const auto& line : image->build.sandbox)
    if (line.find("missing") != std::string::npos) c.notes.push_back("builder's sandbox: " + line);

  // Checking loads all cores: it shares the device with builds, never with another process's measurement.
  auto lease = m_parts.lease(Lease::Kind::build);
  if (!lease) return tl::unexpected(lease.error());
  c.times.waited += lease->waited;
  const double start_s = monotonic_seconds(), prepared = m_parts.judge->preparing_seconds();
  c.who = std::make_unique<Contestant>();
  c.who->id = c.package_sha;
  c.who->image = c.image;
  FORGE_TRY_ASSIGN(const CorrectnessRun run, check_alone(*c.who, m_parts.judge->correctness_workloads(), fresh, fresh ? 2 : 1, c.notes));
  c.times.correctness = monotonic_seconds() - start_s;
  c.times.oracle = m_parts.judge->preparing_seconds() - prepared;
  c.report = run.report;
  if (c.who->runner)
    for (const auto& line : c.who->runner->sandbox())
      if (line.find("missing") != std::string::npos) c.notes.push_back("runner's sandbox: " + line);
  if (run.failure) {
    c.ended = Verdict::rejected(run.failure->reason, run.failure->detail);
    return c;
  }
  if (auto mix = m_parts.disassemble(c.image)) {
    c.mix = std::move(*mix);
  } else if (!signature.empty() || mix.error().code != Code::unsupported) {
    return tl::unexpected(mix.error());  // a mechanism that cannot be looked for is neither there nor missing
  } else {
    c.notes.push_back("instructions not counted: " + mix.error().text());
  }
  c.mechanism = check_signature(signature, c.mix);
  if (signature.empty()) c.mechanism.ok = true;
  if (!c.mechanism.ok) c.ended = Verdict::missed(Reason::mechanism_missing, join(c.mechanism.found, "; "), c.report, std::nullopt);
  return c;
}

Result<CorrectnessRun> RealGate::check_alone(Contestant& who, const std::vector<Workload>& workloads, bool fresh, int calls,
                                             std::vector<std::string>& notes) {
  for (bool again = false;; again = true) {
    who.prepared = nullptr;
    CorrectnessRun run;
    if (again) who.runner.reset();
    if (!who.runner) {
      if (auto started = start_runner(who); started)
        who.runner = std::move(*started);
      else
        run.failure = KernelFailure{started.error().reason, started.error().detail, started.error().killed};
    }
    if (who.runner) {
      FORGE_TRY_ASSIGN(run, run_correctness(*m_parts.judge, *who.runner, who.image_or_null(), m_machine.cores, workloads, fresh, calls));
    }
    if (!run.failure || !run.failure->killed || again) return run;
    notes.push_back(fmt::format("{}: its process was lost ({}); checked again in a fresh one", who.id.substr(0, 24), run.failure->detail));
  }
}

int plan_pairs(const NoiseFloor& floor, const GateOptions& options, double wanted_floor, double round_seconds) {
  int pairs = std::min(pairs_needed(floor.sigma, floor.ratio, options.wanted_effect), options.max_pairs);
  if (wanted_floor > 0) pairs = std::max(pairs, std::min(pairs_for_floor(floor.sigma, wanted_floor), kMostFloorPairs));
  if (round_seconds > 0) pairs = std::min(pairs, int(options.timing_seconds / round_seconds));
  return std::max(kMinPairs, pairs);
}

JobPlan RealGate::plan_job(std::size_t sides) const {
  JobPlan plan;
  if (!m_floor) return plan;
  plan.floor = m_floor->ratio;
  // The time of a pair comes from the reference's job, so that no candidate has a say in how often it is measured.
  plan.pairs = plan_pairs(*m_floor, m_options, m_parts.wanted_floor, m_side_seconds * double(sides));
  return plan;
}

RunnerResult<void> RealGate::make_ready(Contestant& who, Stage& stage, const CallSpec& call) const {
  for (bool again = false;; again = true) {
    if (!who.runner) {
      auto started = start_runner(who);
      if (!started) return tl::unexpected(started.error());
      who.runner = std::move(*started);
    }
    auto ready = who.runner->prepare(call);
    who.prepared = ready ? &stage : nullptr;
    if (ready || !ready.error().killed || again) return ready;
    who.runner.reset();  // perhaps it was killed while it waited for this job
  }
}

Result<RealGate::Job> RealGate::run_sides(Stage& stage, const JobPlan& plan, const std::vector<Side>& sides, const std::string& what) {
  Job job;
  job.plan = plan;
  job.plan.card = m_parts.card;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    Contestant& who = *sides[i].who;
    job.sides.push_back({sides[i].label, nullptr, sides[i].checking, m_machine.cores, !who.image});
    job.who.push_back(&who);
    if (!who.runner || who.prepared != &stage) {
      FORGE_TRY_ASSIGN(const CallSpec call, call_on(stage, who.image_or_null(), m_machine.cores));
      if (auto ready = make_ready(who, stage, call); !ready) {
        job.result.failure = JobFailure{int(i), ready.error().reason, ready.error().detail, ready.error().killed};
        return job;
      }
    }
    job.sides[i].runner = who.runner.get();
  }
  auto lease = m_parts.lease(Lease::Kind::measure);
  if (!lease) return tl::unexpected(lease.error());
  job.waited = lease->waited;
  FORGE_TRY_ASSIGN(job.result, run_job(job.plan, job.sides, stage, m_random, what));
  const auto died = [&] {
    if (!job.result.failure) return false;
    const JobFailure& f = *job.result.failure;
    return sides[std::size_t(f.side)].label == kCandidate ? f.killed : f.killed || process_died(f.reason);
  };
  if (!died()) {
    FORGE_TRY(audit(job, stage, sides, what));
    if (!died()) return job;
  }
  // One of our own sides died, as a process may on a crowded machine, or the candidate's was killed: the job is declared anew, once,
  // with a fresh process.
  const JobFailure first = *job.result.failure;
  const Side& dead = sides[std::size_t(first.side)];
  FORGE_TRY_ASSIGN(const CallSpec call, call_on(stage, dead.who->image_or_null(), m_machine.cores));
  dead.who->runner.reset();  // never a dead process in a later job, whatever comes of this one
  if (!make_ready(*dead.who, stage, call)) return job;
  job.sides[std::size_t(first.side)].runner = dead.who->runner.get();
  job.repeated =
      fmt::format("the {} died ({}: {}); the job was begun again with a fresh process", dead.label, name(first.reason), first.detail);
  FORGE_TRY_ASSIGN(job.result, run_job(job.plan, job.sides, stage, m_random, what));
  if (died()) sides[std::size_t(job.result.failure->side)].who->runner.reset();
  FORGE_TRY(audit(job, stage, sides, what));
  return job;
}

Result<NoiseFloor> RealGate::measure_floor() {
  FORGE_TRY(ensure_open());
  if (!m_reference) return NoiseFloor{};  // nothing to compare with itself: each job then measures the floor of its own candidate
  auto again = start_again(*m_reference);
  if (!again) return fail(Code::crashed, "a second process of the reference did not start: " + again.error().detail);
  FORGE_TRY_ASSIGN(Stage * stage, timed_stage());
  std::vector<double> a, b;
  const auto measure = [&](int pairs) -> Status {
    const JobPlan plan{.pairs = pairs, .may_extend = false, .may_stop_early = false};
    FORGE_TRY_ASSIGN(const Job job, run_sides(*stage, plan,
                                              {{"reference", m_reference.get(), Checking::random_third},
                                               {"reference again", again->get(), Checking::random_third}},
                                              "noise floor"));
    if (job.result.failure)
      return fail(Code::crashed, "the reference failed while its noise floor was measured: " + job.result.failure->detail);
    if (!job.repeated.empty()) a.clear(), b.clear();  // another pair of processes
    for (const auto& [to, side] : {std::pair{&a, 0u}, std::pair{&b, 1u}})
      for (const double seconds : inside_seconds(job.result.calls[side])) to->push_back(seconds);
    m_side_seconds = job.result.round_seconds / 2;
    return {};
  };
  constexpr int kPairs = 24;
  FORGE_TRY(measure(kPairs));
  // A floor that is wanted low takes the pairs of the jobs it is for. How far the first ones scatter decides, never where they lie.
  if (m_parts.wanted_floor > 0) {
    const int pairs = plan_pairs(floor_from(a, b, kPairs), m_options, m_parts.wanted_floor, 2 * m_side_seconds);
    if (pairs > kPairs) {
      FORGE_TRY(measure(pairs - kPairs));
    }
  }
  m_info.seconds = median(a);
  m_floor = floor_of(a, b, int(a.size()));
  m_floor = floor_of(a, b, plan_job(2).pairs);
  return *m_floor;
}

NoiseFloor floor_between(const std::vector<double>& a_s, const std::vector<double>& b_s, int pairs_planned, double process_seconds) {
  NoiseFloor floor = floor_from(a_s, b_s, pairs_planned);
  // Two processes are one draw of how far processes lie apart, and more pairs make that no surer.
  if (const double seconds = std::min(median(a_s), median(b_s)); seconds > 0)
    floor.ratio = std::max(floor.ratio, process_seconds / seconds);
  return floor;
}

NoiseFloor RealGate::floor_of(const std::vector<double>& a_s, const std::vector<double>& b_s, int pairs_planned) const {
  NoiseFloor floor = floor_between(a_s, b_s, pairs_planned, m_parts.process_seconds);
  floor.device_class = m_machine.device_class;
  floor.boot_id = m_machine.boot_id;
  floor.protocol = m_parts.protocol;
  return floor;
}

std::map<std::string, std::string> RealGate::conditions(const Job& job) const {
  Conditions c = m_machine.environment;
  c["protocol"] = m_parts.protocol;
  c["compiler"] = m_parts.compiler;
  c["started"] = utc_now();
  add_conditions(c, m_machine, job.result, job.sides);
  for (std::size_t i = 0; i < job.who.size(); ++i) {
    const Contestant& who = *job.who[i];
    c["side." + job.sides[i].label] =
        who.image ? fmt::format("{} image {}", who.id.substr(0, 12), who.image->sha256) : who.id + " " + who.description;
  }
  if (const auto& image = job.who[0]->image) c["flags"] = join(image->build.flags, " ");
  c["sandbox"] = join(job.who[0]->runner->sandbox(), "; ");
  return c;
}

Result<Verdict> RealGate::conclude(Checked& c, const Job& job, const std::optional<PerformanceCondition>& condition,
                                   const NoiseFloor& floor) {
  const JobResult& r = job.result;
  c.times.timing += r.seconds;
  c.times.waited += job.waited;
  if (!job.repeated.empty()) c.notes.push_back(job.repeated);
  if (r.failure) {
    const auto& f = *r.failure;
    if (f.side == 0) return c.finish(Verdict::rejected(f.reason, f.detail + " (in a timed call)"));
    // Our own side broke: no fault of the candidate's, and no verdict.
    return fail(Code::crashed,
                fmt::format("the {} failed in a timing job: {}: {}", job.sides[std::size_t(f.side)].label, name(f.reason), f.detail));
  }
  CorrectnessReport report = c.report;
  report.checks += r.checks.checks;
  report.elements += r.checks.elements;
  if (r.checks.worst > report.worst) {
    report.worst = r.checks.worst;
    report.worst_where = r.checks.worst_where;
  }
  Measurement m;
  m.seconds = median(inside_seconds(r.calls[0]));
  m.floor = floor;
  m.conditions = conditions(job);
  for (std::size_t i = 1; i < job.sides.size(); ++i)
    if (job.sides[i].label != "self") m.pairs.push_back(make_pairing(r, job.sides, 0, int(i), floor.ratio));
  for (const std::string& note : job_notes(r)) c.notes.push_back(note);
  Decided d = decide_performance(condition, m);
  if (const auto problem = call_problem(r.audit, r.calls[0], m_machine.cores); !problem.empty()) d = {Reason::clocks_disagree, problem};
  for (PairedTiming& p : m.pairs) {
    if (settled(p) == p.comparison) continue;
    c.notes.push_back(
        fmt::format("against {}: {:.4f} by the inside clock, which the outside clock does not confirm ({:.4f}, 95 %: {:.4f} to {:.4f})",
                    p.against, p.speedup.mid, p.outside_speedup.mid, p.outside_speedup.low, p.outside_speedup.high));
    p.comparison = settled(p);
  }
  return c.finish(make_verdict(d, std::move(report), std::move(m)));
}

Result<Verdict> RealGate::submit(const Submission& s) {
  FORGE_TRY(ensure_open());
  const auto& condition = s.acceptance.performance;
  if (!s.timed && condition) return fail(Code::internal, "an untimed hand-in has a performance condition");
  if (s.timed && m_reference && !m_floor) FORGE_TRY(measure_floor());
  FORGE_TRY_ASSIGN(Checked c, check_kernel(s.package, s.acceptance.mechanism, false));
  if (c.ended) return c.finish(*c.ended);
  if (!s.timed) return c.finish(Verdict::passed(std::move(c.report), Measurement{}));

  std::vector<Side> sides{{kCandidate, c.who.get(), Checking::every_call}};
  std::unique_ptr<Contestant> self;
  const double before_timing = monotonic_seconds();
  if (m_reference) sides.push_back({"reference", m_reference.get(), m_reference->image ? Checking::every_call : Checking::random_third});
  if (condition && condition->against != Against::reference) {
    const auto& package = condition->against == Against::branch_best ? s.branch_best : s.global_best;
    if (!package)
      return fail(Code::internal, std::string("the acceptance names ") + name(condition->against) + ", which was not handed over");
    FORGE_TRY_ASSIGN(Contestant * other, rival(*package));
    sides.push_back({name(condition->against), other, Checking::every_call});
  }
  if (condition && condition->against == Against::reference && !m_reference)
    return fail(Code::internal, "the acceptance names the reference, and the run has none");
  NoiseFloor floor;
  if (m_floor) {
    floor = *m_floor;
  } else {  // no reference: the candidate against itself gives this job's floor
    auto again = start_again(*c.who);
    if (!again) return c.finish(Verdict::rejected(again.error().reason, "a second process: " + again.error().detail));
    self = std::move(*again);
    sides.push_back({"self", self.get(), Checking::every_call});
  }
  JobPlan plan = plan_job(sides.size());
  plan.audited = true;
  if (condition) {
    for (std::size_t i = 1; i < sides.size(); ++i)
      if (sides[i].label == name(condition->against))
        plan.watch = {{int(i), threshold_of(*condition, floor.ratio), condition->min_gain >= 0}};
  } else if (!s.all_pairs) {
    plan.pairs = kMinPairs;  // no threshold: a figure for the trajectory is all that is wanted
  }
  FORGE_TRY_ASSIGN(Stage * stage, timed_stage());
  FORGE_TRY_ASSIGN(const Job job, run_sides(*stage, plan, sides, "timing " + s.milestone));
  c.times.timing = monotonic_seconds() - before_timing - job.result.seconds - job.waited;  // set-up; conclude adds the job
  if (self && !job.result.failure) {
    floor = floor_of(inside_seconds(job.result.calls[0]), inside_seconds(job.result.calls.back()), job.result.planned);
  }
  FORGE_TRY_ASSIGN(Verdict v, conclude(c, job, condition, floor));
  if (v.accepted())
    if (const auto* p = find_pairing(v, "reference")) m_before[c.package_sha] = p->comparison;
  if (v.correct()) keep_as_rival(std::move(c.who));
  return v;
}

Result<Verdict> RealGate::confirm(const KernelPackage& package, const std::vector<Signature>& mechanisms) {
  FORGE_TRY(ensure_open());
  if (m_reference && !m_floor) FORGE_TRY(measure_floor());
  Signature all;
  for (const auto& s : mechanisms) all.all.insert(all.all.end(), s.all.begin(), s.all.end());
  FORGE_TRY_ASSIGN(Checked c, check_kernel(package, all, true));
  if (c.ended) return c.finish(*c.ended);

  // Nothing of the run is used again: new processes, new bases from new seeds, a floor of this very job.
  const Workload& timed = m_parts.judge->timed();
  FORGE_TRY_ASSIGN(const auto stage, m_parts.judge->stage(timed.axes, timed.generator, kBases, true));
  std::unique_ptr<Contestant> fresh[2];
  const Contestant& twin = m_reference ? *m_reference : *c.who;
  for (auto& f : fresh) {
    auto started = start_again(twin);
    if (!started) return fail(Code::crashed, "a fresh process for the confirmation did not start: " + started.error().detail);
    f = std::move(*started);
  }
  const Checking checking = twin.image ? Checking::every_call : Checking::random_third;
  const std::string label = m_reference ? "reference" : "self";
  JobPlan plan = plan_job(3);
  plan.audited = true;
  std::optional<PerformanceCondition> condition;
  if (m_reference) {
    condition = PerformanceCondition{};
    plan.watch = {{1, threshold_of(*condition, m_floor->ratio), true}};
  }
  FORGE_TRY_ASSIGN(
      const Job job,
      run_sides(*stage, plan,
                {{kCandidate, c.who.get(), Checking::every_call}, {label, fresh[0].get(), checking}, {"self", fresh[1].get(), checking}},
                "confirmation"));
  NoiseFloor floor;
  if (!job.result.failure) floor = floor_of(inside_seconds(job.result.calls[1]), inside_seconds(job.result.calls[2]), job.result.planned);
  FORGE_TRY_ASSIGN(Verdict v, conclude(c, job, condition, floor));
  const auto before = m_before.find(c.package_sha);
  const PairedTiming* now = find_pairing(v, "reference");
  if (now && before != m_before.end() && before->second == Comparison::faster &&
      (now->comparison == Comparison::slower || now->comparison == Comparison::same)) {
    return c.finish(Verdict::missed(Reason::not_confirmed, fmt::format("accepted as faster, now {}: {}", name(now->comparison), v.detail()),
                                    *v.correctness(), *v.measurement()));
  }
  return v;
}

Result<Verdict> RealGate::against_expert(const KernelPackage& package) {
  FORGE_TRY(ensure_open());
  if (m_reference && !m_floor) FORGE_TRY(measure_floor());  // a resumed run's: the job is planned from it
  Contestant* expert = m_reference && !m_reference->image ? m_reference.get() : m_expert.get();
  if (!expert) {
    std::vector<std::string> considered;
    double seconds = 0;
    FORGE_TRY_ASSIGN(m_expert, open_expert("", considered, seconds));
    expert = m_expert.get();
  }
  return duel(package, "expert", *expert);
}

Result<Verdict> RealGate::against(const KernelPackage& package, const KernelPackage& other) {
  FORGE_TRY(ensure_open());
  if (m_reference && !m_floor) FORGE_TRY(measure_floor());
  FORGE_TRY_ASSIGN(Contestant * opponent, rival(other));
  return duel(package, "rival", *opponent);
}

Result<Verdict> RealGate::duel(const KernelPackage& package, const std::string& label, Contestant& other) {
  FORGE_TRY_ASSIGN(Checked c, check_kernel(package, {}, false));
  if (c.ended) return c.finish(*c.ended);
  auto again = start_again(other);
  if (!again) return fail(Code::crashed, fmt::format("a second process of the {} did not start: {}", label, again.error().detail));
  FORGE_TRY_ASSIGN(Stage * stage, timed_stage());
  JobPlan plan = plan_job(3);
  plan.audited = true;
  plan.watch = {{1, 1 + plan.floor, true}};
  FORGE_TRY_ASSIGN(const Job job, run_sides(*stage, plan,
                                            {{kCandidate, c.who.get(), Checking::every_call},
                                             {label, &other, Checking::random_third},
                                             {"self", again->get(), Checking::random_third}},
                                            "against the " + label));
  NoiseFloor floor;
  if (!job.result.failure) floor = floor_of(inside_seconds(job.result.calls[1]), inside_seconds(job.result.calls[2]), job.result.planned);
  return conclude(c, job, std::nullopt, floor);
}

}  // namespace forge
