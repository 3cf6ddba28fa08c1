// SPDX-License-Identifier: Apache-2.0
// The gate's statistics put to the test on this machine: copies of a kernel against itself (none may be faster), and a kernel
// against itself with a spin of known cost (it must be called). The same job, checks and comparison as any hand-in.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gate/gate.h"
#include "gate/real_gate.h"
#include "util/progress.h"

namespace forge {
namespace {

// One kernel's bench: a warm judge and stage, fresh runners for each trial.
class Bench {
 public:
  static Result<Bench> make(const Paths& paths, const Machine& machine, const std::string& operator_name) {
    Bench b;
    FORGE_TRY_ASSIGN(b.m_parts, real_parts(paths, operator_name, machine, b.m_options));
    b.m_workers = machine.cores;
    const Workload& timed = b.m_parts.judge->timed();
    FORGE_TRY_ASSIGN(b.m_stage, b.m_parts.judge->stage(timed.axes, timed.generator, 2, false));
    return b;
  }

  Result<Image> build(const KernelPackage& package) {
    auto lease = m_parts.lease(Lease::Kind::build);
    if (!lease) return tl::unexpected(lease.error());
    auto image = m_parts.build(package);
    if (!image) return fail(Code::build_failed, package.origin + ": " + image.error().detail);
    return *image;
  }

  Result<std::unique_ptr<Runner>> start(const Image& image) {
    auto runner = m_parts.start_image(image);
    if (!runner) return fail(Code::crashed, "the runner did not start: " + runner.error().detail);
    FORGE_TRY_ASSIGN(const CallSpec call, m_stage->call_for(image, m_workers));
    if (auto ready = (*runner)->prepare(call); !ready)
      return fail(Code::crashed, "the kernel could not be prepared: " + ready.error().detail);
    return std::move(*runner);
  }

  Result<JobResult> job(const JobPlan& plan, Runner& candidate, Runner& reference, const std::string& what) {
    auto lease = m_parts.lease(Lease::Kind::measure);
    if (!lease) return tl::unexpected(lease.error());
    const std::vector<JobSide> sides{{"candidate", &candidate, Checking::every_call, m_workers},
                                     {"reference", &reference, Checking::every_call, m_workers}};
    FORGE_TRY_ASSIGN(JobResult result, run_job(plan, sides, *m_stage, m_random, what));
    if (result.failure)
      return fail(Code::crashed,
                  fmt::format("a kernel failed in the self-test: {}: {}", name(result.failure->reason), result.failure->detail));
    return result;
  }

  // The floor of two fresh processes, and the plan of all trials.
  Result<NoiseFloor> floor(const Image& image) {
    FORGE_TRY_ASSIGN(auto a, start(image));
    FORGE_TRY_ASSIGN(auto b, start(image));
    FORGE_TRY_ASSIGN(const JobResult r, job({.pairs = 30, .may_extend = false, .may_stop_early = false}, *a, *b, "noise floor"));
    const auto x = inside_seconds(r.calls[0]), y = inside_seconds(r.calls[1]);
    m_plan.pairs = plan_pairs(floor_from(x, y, 30), m_options, m_parts.wanted_floor, r.round_seconds);
    const NoiseFloor f = floor_between(x, y, m_plan.pairs, m_parts.process_seconds);
    m_plan.floor = f.ratio;
    m_seconds = median(x);
    return f;
  }

  Result<RatioStats> trial(Runner& candidate, Runner& reference, const std::string& what) {
    JobPlan plan = m_plan;
    plan.watch = {{1, 1 + plan.floor, true}};
    plan.may_stop_early = false;
    FORGE_TRY_ASSIGN(const JobResult r, job(plan, candidate, reference, what));
    return paired_ratio(inside_seconds(r.calls[0]), inside_seconds(r.calls[1]));
  }

  double seconds() const { return m_seconds; }

 private:
  GateOptions m_options;
  GateParts m_parts;
  std::unique_ptr<Stage> m_stage;
  Random m_random{os_entropy()};
  JobPlan m_plan;
  int m_workers = 1;
  double m_seconds = 0;
};

bool is_cuda(const KernelPackage& package) { return package.source_name == "kernel.cu"; }

// The same kernel, then a launch that only spins. On a CPU a turn is one of a chain of dependent additions that the compiler cannot
// shorten. On a GPU it is a cycle of the clock: ptxas knows no volatile additions, and removes a loop of them whole.
KernelPackage with_spin(const KernelPackage& package, std::int64_t turns) {
  KernelPackage out = package;
  out.origin = fmt::format("{} with a spin of {}", package.origin, turns);
  if (is_cuda(package)) {  // one warp: the launch ends when it does
    out.source += fmt::format(
        "\nextern \"C\" __global__ void __launch_bounds__(32) selftest_spin(const __grid_constant__ forge_args) {{\n"
        "  const long long begin = clock64();\n"
        "  while (clock64() - begin < {}LL) {{\n"
        "  }}\n"
        "}}\n",
        turns);
    out.plan_text += "\n[[launch]]\nentry = \"selftest_spin\"\ngrid = \"1\"\nblock = 32\n";
    return out;
  }
  out.source += fmt::format(
      "\nextern \"C\" __attribute__((visibility(\"default\"))) void selftest_spin(const forge_args*, const forge_block*) {{\n"
      "  unsigned long x = 1;\n"
      "  for (long i = 0; i < {}L; ++i) __asm__ volatile(\"addq $1, %0\" : \"+r\"(x));\n"
      "}}\n",
      turns);
  out.plan_text += "\n[[launch]]\nentry = \"selftest_spin\"\ngrid = \"resident\"\n";
  return out;
}

// Turns that make the kernel slower by `effect`. The cost of a turn is measured on a spin of ten times the effect, which stands far
// out of the noise; then the real spin is measured, and corrected only when its interval excludes the effect. On a GPU the launch
// alone costs something: that is measured first.
Result<std::int64_t> calibrate(Bench& bench, const KernelPackage& package, Runner& plain, double effect) {
  const JobPlan plan{.pairs = 30, .may_extend = false, .may_stop_early = false};
  const auto slower_by = [&](std::int64_t turns, const std::string& step) -> Result<RatioStats> {
    FORGE_TRY_ASSIGN(const Image image, bench.build(with_spin(package, turns)));
    FORGE_TRY_ASSIGN(auto spun, bench.start(image));
    FORGE_TRY_ASSIGN(const JobResult r, bench.job(plan, *spun, plain, "calibrating the spin, " + step));
    return paired_ratio(inside_seconds(r.calls[1]), inside_seconds(r.calls[0]));
  };
  double launch = 0;
  if (is_cuda(package)) {
    FORGE_TRY_ASSIGN(const RatioStats empty, slower_by(1, "its launch alone"));
    launch = std::max(0.0, empty.mid - 1);
    if (launch > 0.8 * effect)
      return fail(
          Code::unsupported,
          fmt::format("a launch alone slows this kernel by {:.2f} %: an effect of {:.2f} % cannot be made", launch * 100, effect * 100),
          "take a longer kernel, or a larger effect");
  }
  double turns = std::max(1000.0, 10 * effect * bench.seconds() * 3e9);  // one turn takes about a cycle
  for (int step = 0; step < 4; ++step) {
    FORGE_TRY_ASSIGN(const RatioStats slower, slower_by(std::int64_t(turns), fmt::format("step {}", step + 1)));
    if (step > 0 && slower.low95 <= 1 + effect && 1 + effect <= slower.high95) break;
    if (!(slower.mid - 1 - launch > effect / 10))
      return fail(Code::unsupported,
                  fmt::format("a spin of {} turns cannot be seen: measured {:.4f} against {:.4f} wanted", turns, slower.mid - 1, effect),
                  is_cuda(package)
                      ? "try again; or take a kernel that memory limits: one that the card's power limits gains by an idle tail"
                      : "try again on a quieter machine");
    turns *= (effect - launch) / (slower.mid - 1 - launch);
  }
  return std::int64_t(turns);
}

}  // namespace

Result<AaResult> selftest_aa(const Paths& paths, const Machine& machine, const std::string& operator_name, const KernelPackage& package,
                             int trials) {
  const double began = monotonic_seconds();
  FORGE_TRY_ASSIGN(Bench bench, Bench::make(paths, machine, operator_name));
  FORGE_TRY_ASSIGN(const Image image, bench.build(package));
  FORGE_TRY_ASSIGN(const NoiseFloor floor, bench.floor(image));
  FORGE_TRY_ASSIGN(auto reference, bench.start(image));
  AaResult out{.floor = floor.ratio};
  for (int i = 0; i < trials; ++i) {
    FORGE_TRY_ASSIGN(auto copy, bench.start(image));
    FORGE_TRY_ASSIGN(const RatioStats r, bench.trial(*copy, *reference, fmt::format("copy {} of {}", i + 1, trials)));
    switch (compare(r, floor.ratio)) {
      case Comparison::faster:
        ++out.faster;
        break;
      case Comparison::slower:
        ++out.slower;
        break;
      case Comparison::same:
        ++out.same;
        break;
      case Comparison::ambiguous:
        ++out.ambiguous;
        break;
    }
    out.speedups.push_back(r.mid);
    ++out.trials;
  }
  out.seconds = monotonic_seconds() - began;
  return out;
}

Result<PowerResult> selftest_power(const Paths& paths, const Machine& machine, const std::string& operator_name,
                                   const KernelPackage& package, int trials, double effect) {
  if (!(effect > 0 && effect < 1))
    return fail(
        Error{.code = Code::bad_input, .message = "the effect must be between 0 and 1", .field = "effect", .fix = "use 0.03 for 3 %"});
  const double began = monotonic_seconds();
  FORGE_TRY_ASSIGN(Bench bench, Bench::make(paths, machine, operator_name));
  FORGE_TRY_ASSIGN(const Image image, bench.build(package));
  FORGE_TRY_ASSIGN(const NoiseFloor floor, bench.floor(image));
  FORGE_TRY_ASSIGN(auto plain, bench.start(image));
  FORGE_TRY_ASSIGN(const std::int64_t turns, calibrate(bench, package, *plain, effect));
  PowerResult out{.effect = effect, .floor = floor.ratio, .slow = with_spin(package, turns)};
  FORGE_TRY_ASSIGN(const Image slow_image, bench.build(out.slow));
  FORGE_TRY_ASSIGN(auto slow, bench.start(slow_image));
  for (int i = 0; i < trials; ++i) {
    const bool candidate_slow = i % 2 == 0;
    FORGE_TRY_ASSIGN(auto candidate, bench.start(candidate_slow ? slow_image : image));
    Runner& reference = candidate_slow ? *plain : *slow;
    FORGE_TRY_ASSIGN(const RatioStats r, bench.trial(*candidate, reference, fmt::format("trial {} of {}", i + 1, trials)));
    const Comparison called = compare(r, floor.ratio);
    out.called_right += called == (candidate_slow ? Comparison::slower : Comparison::faster);
    out.calls.push_back(fmt::format("{}: {}", candidate_slow ? "slower" : "faster", name(called)));
    out.speedups.push_back(r.mid);
    ++out.trials;
  }
  out.seconds = monotonic_seconds() - began;
  return out;
}

}  // namespace forge
