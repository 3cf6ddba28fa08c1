// SPDX-License-Identifier: Apache-2.0
// A made-up machine for the gate's tests: kernels are behaviours looked up by their source text, time is drawn, not measured.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/real_gate.h"
#include "util/random.h"

namespace forge::fakes {

struct Behaviour {
  double seconds = 1e-3;
  double inside_factor = 1;                  // of the inside clock: a forged one is below 1
  double cpu_factor = 1.9;                   // CPU seconds per second of the call
  Reason result = Reason::accepted;          // what a check finds
  std::optional<RunnerFailure> start, call;  // failures
  bool once = false;                         // `call` strikes once, then never again
  int fail_after = 0;                        // calls that go well before `call` or `result` strike
  std::optional<Reason> batch_result;        // what a check finds after a batch, when it differs
  double batch_constant = 0;                 // seconds that its batches take however many calls they have
  double flush_seconds = 70e-6;              // in its process
  double flush_alone_seconds = 0;            // more, where no call follows it
  bool batch_refused = false;                // it cannot be recorded
};

struct World {
  std::map<std::string, Behaviour> kernels;  // by source, or by plugin path for experts
  double sigma = 0.004;                      // of one call
  Random random{42};
  Reason last = Reason::accepted;  // what the last call left in the outputs
  bool content_too_early = false;  // written before a scrub, which is not on the clock
  int scrubs = 0, refreshes = 0, checks = 0, calls = 0, starts = 0, leases_measure = 0, leases_build = 0;
  std::atomic<int> builds = 0;
  int fresh_stages = 0, stages = 0;
  int slots = 1000;  // that the card's memory holds
  int batches = 0, batch_calls = 0, batches_mapped = 0;
  double batch_jitter = 2e-6;
  int batch_group = 0;             // of "fast": calls that one does the work of, the first of them, or (negative) the last
  int batch_answered = 0;          // calls whose outputs the last batch wrote
  std::vector<std::string> order;  // of calls, by kernel
  std::function<void()> on_call;
  std::optional<BuildFailure> build_failure;  // of every build
};

class FakeRunner : public Runner {
 public:
  FakeRunner(World& world, std::string kernel) : m_world(world), m_kernel(std::move(kernel)) {}
  RunnerResult<void> prepare(const CallSpec&) override { return {}; }
  RunnerResult<void> scrub() override {
    ++m_world.scrubs;
    m_world.content_too_early |= m_world.refreshes != m_world.calls;
    return {};
  }
  RunnerResult<CallTiming> call() override {
    Behaviour& b = m_world.kernels.at(m_kernel);
    ++m_world.calls;
    if (m_world.on_call) m_world.on_call();
    m_world.order.push_back(m_kernel);
    const bool strikes = ++m_calls > b.fail_after;
    if (b.call && strikes) {
      const RunnerFailure failure = *b.call;
      if (b.once) b.call.reset();
      return tl::unexpected(failure);
    }
    m_world.last = strikes ? b.result : Reason::accepted;
    const double t = b.seconds * std::exp(m_world.sigma * m_world.random.normal());
    return CallTiming{.inside_s = t * b.inside_factor, .outside_s = t + 20e-6, .cpu_s = t * b.cpu_factor};
  }
  RunnerResult<void> prepare_batch(const std::vector<CallSpec>& calls) override {
    m_world.batches_mapped += (calls.empty() ? 0 : 1) - m_maps_batch;
    m_maps_batch = !calls.empty();
    return {};
  }
  // Flush and kernel, one after the other, between a go and a done of 60 us.
  RunnerResult<double> batch(int calls, bool flush_only) override {
    const Behaviour& b = m_world.kernels.at(m_kernel);
    ++m_world.batches;
    if (flush_only)
      return 60e-6 + b.batch_constant + calls * (b.flush_seconds + b.flush_alone_seconds) + m_world.batch_jitter * m_world.random.normal();
    m_world.batch_calls += calls;
    m_world.last = b.batch_result.value_or(Reason::accepted);
    ++m_world.calls;  // scrub, refresh and batch alternate as calls do
    if (b.batch_refused) return tl::unexpected(RunnerFailure{Reason::load_failed, "cannot be recorded"});
    m_world.batch_answered = calls;
    if (const int group = m_world.batch_group; group != 0 && m_kernel == "fast")
      m_world.batch_answered = group > 0 ? (calls + group - 1) / group * group : calls / -group * -group;
    return 60e-6 + b.batch_constant + calls * (b.flush_seconds + b.seconds) + m_world.batch_jitter * m_world.random.normal();
  }
  RunnerResult<CodeProfile> profile(double) override {
    CodeProfile p;
    p.where = {{"jit", 0.9}, {"libfake.so", 0.1}};
    p.hot_code = {{0x1000, std::string("\xc5\xfc\x58\xc1\xc3", 5)}};  // vaddps ymm0, ymm0, ymm1; ret
    p.samples = 100;
    return p;
  }
  Result<OnceProgram> once(const CallSpec&, const fs::path& folder) const override {
    return OnceProgram{{"/bin/" + m_kernel, "--once", (folder / "call").string()}, {}};
  }
  std::string description() const override { return "fake " + m_kernel; }
  std::vector<std::string> sandbox() const override { return {"seccomp", "missing: landlock"}; }

 private:
  World& m_world;
  std::string m_kernel;
  int m_calls = 0;
  bool m_maps_batch = false;
};

class FakeStage : public Stage {
 public:
  FakeStage(World& world, std::string label) : m_world(world), m_label(std::move(label)) {}
  const std::string& label() const override { return m_label; }
  const AxisValues& axes() const override { return m_axes; }
  Status refresh() override {
    ++m_world.refreshes;
    return {};
  }
  CheckResult check() override {
    ++m_world.checks;
    return {.reason = m_world.last, .detail = "y[3]", .worst = 0.25, .elements = 100};
  }
  Result<CallSpec> call_for(const Image& image, int) override {
    if (image.sha256 == "img-narrow" && m_label != "timed") return fail(Code::unsupported, "requires M % 128 == 0");
    return CallSpec{};
  }
  CallSpec call_for_expert() override { return {}; }

 private:
  World& m_world;
  std::string m_label;
  AxisValues m_axes;
};

class FakeBatch : public Batch {
 public:
  FakeBatch(World& world, int slots) : m_world(world), m_slots(slots) {}
  int slots() const override { return m_slots; }
  Status refresh(int) override {
    ++m_world.refreshes;
    return {};
  }
  CheckResult check(int calls) override {
    const Reason reason = m_world.batch_answered > calls   ? Reason::out_of_bounds
                          : m_world.batch_answered < calls ? Reason::not_written
                                                           : m_world.last;
    return {.reason = reason, .detail = "y[3] in a batch", .worst = 0.25, .elements = 100 * calls};
  }
  Result<std::vector<CallSpec>> calls_for(const Image*, int) override { return std::vector<CallSpec>(std::size_t(m_slots)); }

 private:
  World& m_world;
  int m_slots;
};

class FakeJudge : public Judge {
 public:
  explicit FakeJudge(World& world) : m_world(world) {
    m_timed.name = "timed";
    m_timed.axes = {{"M", 1024}};
  }
  Result<std::unique_ptr<Stage>> stage(const std::map<std::string, std::int64_t>& axes, const std::string&, int, bool fresh) override {
    ++m_world.stages;
    m_world.fresh_stages += fresh;
    return std::make_unique<FakeStage>(m_world, axes == m_timed.axes ? "timed" : "hidden");
  }
  Result<std::unique_ptr<Batch>> batch(const std::map<std::string, std::int64_t>&, const std::string&, int, int slots) override {
    if (m_world.slots < 2) return fail(Code::unsupported, "the card is full");
    return std::make_unique<FakeBatch>(m_world, std::min(slots, m_world.slots));
  }
  std::vector<Workload> correctness_workloads() override {
    Workload hidden;
    hidden.name = "hidden";
    hidden.axes = {{"M", 37}};
    return {m_timed, hidden};
  }
  const Workload& timed() const override { return m_timed; }

 private:
  World& m_world;
  Workload m_timed;
};

// `object`: bytes of a real relocatable object, which mechanism checks disassemble.
inline GateParts parts(World& world, const std::string& object) {
  GateParts p;
  p.op.definition.name = "toy";
  p.op.definition.axes = {Axis{"M", false, 0}, Axis{"N", true, 64}};
  p.op.definition.inputs = {TensorSpec{"x", DType::f32, false, {"M", "N"}}};
  p.op.definition.outputs = {TensorSpec{"y", DType::f32, false, {"M", "N"}}};
  p.op.task.timed.axes = {{"M", 1024}};
  p.op.task.flops = *parse_expr("2 * M * N");
  p.op.task.bytes = *parse_expr("8 * M * N");
  p.op.experts = {{"onednn", "expert-a"}, {"openblas", "expert-b"}};
  p.judge = std::make_shared<FakeJudge>(world);
  p.build = [&world, object](const KernelPackage& k) -> tl::expected<Image, BuildFailure> {
    ++world.builds;
    if (world.build_failure) return tl::unexpected(*world.build_failure);
    if (!world.kernels.count(k.source)) return tl::unexpected(BuildFailure{Reason::build_failed, "no such kernel", "error: line 1"});
    Image image;
    image.bytes = object;
    image.sha256 = "img-" + k.source;
    image.build.flags = {"-O3"};
    return image;
  };
  auto start = [&world](const std::string& kernel) -> RunnerResult<std::unique_ptr<Runner>> {
    ++world.starts;
    const Behaviour& b = world.kernels.at(kernel);
    if (b.start) return tl::unexpected(*b.start);
    return std::make_unique<FakeRunner>(world, kernel);
  };
  p.start_image = [start](const Image& image) { return start(image.sha256.substr(4)); };
  p.start_expert = start;
  p.find_sealed = [](const std::string& prefix) -> Result<Generation> {
    if (prefix != "abc") return fail(Code::not_found, "no such generation");
    Generation g;
    g.id = "abcdef0123456789";
    g.operator_name = "toy";
    g.target = "cpu:test";
    g.package.source = "sealed";
    g.image_sha = "img-sealed";
    return g;
  };
  p.lease = [&world](Lease::Kind kind) -> Result<LeaseHold> {
    ++(kind == Lease::Kind::measure ? world.leases_measure : world.leases_build);
    return LeaseHold{};
  };
  p.ceilings = [] { return Result<Ceilings>(Ceilings{.gflops = 100, .read_gbs = 20, .copy_gbs = 10}); };
  p.compiler = "g++ fake";
  return p;
}

inline KernelPackage package(const std::string& source) {
  KernelPackage p;
  p.source = source;
  p.origin = source;
  return p;
}

inline Machine machine() {
  Machine m;
  m.target.name = "cpu:test";
  m.device_class = "cpu:test-class";
  m.boot_id = "boot";
  m.cores = 2;
  m.properties = {{"l2_bytes", 1 << 20}};
  return m;
}

inline Task task(const std::string& reference) {
  Task t;
  t.operator_name = "toy";
  t.target = "cpu:test";
  t.reference = reference;
  return t;
}

}  // namespace forge::fakes
