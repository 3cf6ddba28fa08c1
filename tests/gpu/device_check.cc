// SPDX-License-Identifier: Apache-2.0
// The device layer and the GPU's runner on a real card: probe, ceilings, memory shared read-only, a copy kernel end to end, kernels that
// do wrong, noise of a pair of equal sides, both clocks, cold L2, residue, a forged event, a batch done by its first call. Not part of
// ctest: it needs a GPU.
//   device_check <cubin of tests/gpu/device/kernels.cu> <forge-runner> [expert plugins of gemm_f16 ...]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "device/cuda.h"
#include "device/nvml.h"
#include "gate/decide.h"
#include "gate/timing.h"
#include "runner/runner.h"
#include "util/progress.h"

namespace forge {
namespace {

int failures = 0;
void say(const std::string& what, bool good, const std::string& detail) {
  failures += !good;
  std::printf("%s %-26s %s\n", good ? "ok  " : "FAIL", what.c_str(), detail.c_str());
  std::fflush(stdout);
}

struct Check {
  std::shared_ptr<CudaContext> context;
  std::string cubin, program;
  TargetSpec target;
  int sms = 1;
  double l2_bytes = 0;

  CudaRunnerOptions options(double timeout = 20) const { return {.call_timeout_s = timeout, .program = program, .target = target}; }

  RunnerResult<std::unique_ptr<Runner>> start(const std::string& entry, double timeout = 20) const {
    Image image;
    image.bytes = cubin;
    image.sha256 = entry;
    LaunchSpec launch;
    launch.entry = entry;
    image.plan.launches.push_back(launch);
    if (entry == "forge_event") image.plan.launches.push_back({.entry = "copy"});
    return start_cuda_image_runner(image, options(timeout));
  }
};

struct Pair {  // x and y of n bytes, x random
  DeviceBuffer x, y;
  std::vector<std::uint32_t> content;
  static Pair make(Check& c, std::size_t bytes) {
    Pair p{*DeviceBuffer::make(bytes, "x"), *DeviceBuffer::make(bytes, "y"), {}};
    p.content.resize(bytes / 4);
    p.fresh(c, 1);
    return p;
  }
  void fresh(Check& c, unsigned seed) {
    std::uint64_t s = seed;
    for (auto& w : content) w = static_cast<std::uint32_t>((s = s * 6364136223846793005u + 1442695040888963407u) >> 32);
    (void)c.context->copy_to_device(x.data(), content.data(), content.size() * 4);
    (void)c.context->fill(y.data(), 0x5a, y.bytes());
    (void)c.context->synchronize();
  }
  std::size_t wrong(Check& c) const {
    std::vector<std::uint32_t> got(content.size());
    if (!c.context->copy_to_host(got.data(), y.data(), got.size() * 4)) return got.size();
    std::size_t n = 0;
    for (std::size_t i = 0; i < got.size(); ++i) n += got[i] != content[i];
    return n;
  }
  CallSpec call(const std::string& entry, std::int64_t grid, int block, std::int64_t shared = 0, std::size_t slot = 0,
                std::size_t slot_bytes = 0) const {
    CallSpec s;
    const std::size_t bytes = slot_bytes ? slot_bytes : x.bytes();
    s.plan.launches.push_back({.entry = entry, .grid = grid, .scratch_bytes = shared, .block = block});
    s.layout.fields = {{.kind = ArgField::Kind::tensor, .name = "x", .offset = 0, .bytes = 8},
                       {.kind = ArgField::Kind::tensor, .name = "y", .offset = 8, .bytes = 8},
                       {.kind = ArgField::Kind::axis, .name = "n", .offset = 16, .bytes = 4}};
    s.layout.bytes = 24;
    s.input_specs = {{.name = "x"}};
    s.output_specs = {{.name = "y"}};
    s.inputs = {{.access = Access::read, .device = &x, .offset = slot * bytes}};
    s.outputs = {{.access = Access::write, .device = &y, .offset = slot * bytes}};
    s.axes = {{"n", static_cast<std::int64_t>(bytes / 16)}};
    return s;
  }
};

constexpr std::size_t kMiB = std::size_t(1) << 20;

void copies(Check& c) {
  Pair p = Pair::make(c, 32 * kMiB);
  const double begin = monotonic_seconds();
  auto r = c.start("copy");
  if (!r) return say("copy: start", false, r.error().detail);
  say("copy: start", true, fmt::format("{:.0f} ms", 1e3 * (monotonic_seconds() - begin)));
  for (const auto& line : (*r)->sandbox()) std::printf("       %s\n", line.c_str());
  if (auto s = (*r)->prepare(p.call("copy", c.sms * 4, 512)); !s) return say("copy: prepare", false, s.error().detail);
  std::size_t wrong = 0;
  double scrub = 0, call = 0, inside = 0, mhz = 0;
  constexpr int kTurns = 40;  // over two reloads of the module
  for (int i = 0; i < kTurns; ++i) {
    const double a = monotonic_seconds();
    if (auto s = (*r)->scrub(); !s) return say("copy: scrub", false, s.error().detail);
    scrub += monotonic_seconds() - a;
    if (i < 4) p.fresh(c, unsigned(i) + 2);
    const double b = monotonic_seconds();
    auto t = (*r)->call();
    if (!t) return say("copy: call", false, t.error().detail);
    call += monotonic_seconds() - b;
    inside += t->inside_s;
    mhz = t->sm_mhz;
    if (i < 4) wrong += p.wrong(c);
  }
  say("copy: right", wrong == 0,
      fmt::format("{} words of 4 calls wrong; scrub {:.2f} ms, call {:.2f} ms, inside {:.1f} us, {:.0f} MHz; {}", wrong,
                  scrub / kTurns * 1e3, call / kTurns * 1e3, inside / kTurns * 1e6, mhz, (*r)->description()));
}

void wrong_kernels(Check& c) {
  struct Case {
    const char* entry;
    std::vector<Reason> reasons;
    std::int64_t grid = 1;
    int block = 32;
    std::int64_t shared = 0;
  };
  Pair p = Pair::make(c, 8 * kMiB);
  for (const Case& k :
       {Case{"write_input", {Reason::out_of_bounds, Reason::crashed}}, Case{"past_end", {Reason::out_of_bounds, Reason::crashed}},
        Case{"wild", {Reason::crashed}}, Case{"misaligned", {Reason::crashed}}, Case{"hang", {Reason::timed_out}},
        Case{"copy", {Reason::load_failed}, 1, 512, 400 * 1024}}) {
    auto r = c.start(k.entry, 2);
    if (!r) {
      say(std::string("wrong: ") + k.entry, false, r.error().detail);
      continue;
    }
    auto s = (*r)->prepare(p.call(k.entry, k.grid, k.block, k.shared));
    const double begin = monotonic_seconds();
    const auto t = s ? (*r)->call() : tl::unexpected(s.error());
    const double took = monotonic_seconds() - begin;
    const bool good = !t && std::count(k.reasons.begin(), k.reasons.end(), t.error().reason) > 0;
    say(std::string("wrong: ") + k.entry, good,
        fmt::format("{:.0f} ms: {}: {}", took * 1e3, t ? "accepted" : name(t.error().reason), t ? "" : t.error().detail));
  }
  std::vector<std::uint32_t> x(p.content.size());
  (void)c.context->copy_to_host(x.data(), p.x.data(), x.size() * 4);
  say("wrong: input unharmed", x == p.content, "after a write to it");
}

void residues(Check& c) {
  Pair p = Pair::make(c, kMiB);
  auto r = c.start("residue");
  if (!r || !(*r)->prepare(p.call("residue", c.sms, 256, 220 * 1024))) return say("residue", false, "does not start");
  std::uint64_t found = 0;
  for (int i = 0; i < 4; ++i) {
    (void)(*r)->scrub();
    (void)c.context->fill(p.y.data(), 0, p.y.bytes());
    (void)c.context->synchronize();
    if (auto t = (*r)->call(); !t) return say("residue", false, t.error().detail);
    std::vector<std::uint32_t> y(p.content.size());
    (void)c.context->copy_to_host(y.data(), p.y.data(), y.size() * 4);
    for (int b = 0; b < c.sms; ++b) found += y[std::size_t(b) * 4];
  }
  say("residue: shared memory", found == 0, fmt::format("{} tagged words found in 4 calls", found));
}

// Pairs of sides in random order; the 95 % interval of their ratio must lie within 1 +- limit.
void pairs(Check& c, const std::string& what, Runner& a, Runner& b, int n, double limit) {
  std::mt19937 random(7);
  std::vector<double> a_times, b_times, outside;
  double mhz = 0;
  for (int i = -3; i < n; ++i) {
    double t[2] = {};
    const int first = int(random() & 1);
    for (int k = 0; k < 2; ++k) {
      Runner& side = (k ^ first) ? b : a;
      auto r = side.call();
      if (!r) return say(what, false, r.error().detail);
      t[k ^ first] = r->inside_s;
      outside.push_back(r->outside_s);
      mhz = r->sm_mhz;
    }
    if (i < 0) continue;
    a_times.push_back(t[0]);
    b_times.push_back(t[1]);
  }
  const RatioStats r = paired_ratio(a_times, b_times);
  const double worst = std::max(std::abs(std::log(r.low95)), std::abs(std::log(r.high95)));
  say(what, worst <= limit,
      fmt::format("B/A {:.4f} [{:.4f} {:.4f}] over {} pairs; A {:.2f} us inside, {:.0f} us outside, {:.0f} MHz", r.mid, r.low95, r.high95,
                  n, 1e6 * median(a_times), 1e6 * median(outside), mhz));
  (void)c;
}

void noise(Check& c) {
  for (const std::size_t mib : {24, 200}) {
    Pair p = Pair::make(c, mib * kMiB);
    auto a = c.start("copy"), b = c.start("copy"), pinned = c.start("copy_pinned");
    if (!a || !b || !pinned) return say("A/A", false, "does not start");
    for (auto* r : {&a, &b})
      if (auto s = (**r)->prepare(p.call("copy", c.sms * 4, 512)); !s) return say("A/A", false, s.error().detail);
    if (auto s = (*pinned)->prepare(p.call("copy_pinned", c.sms * 4, 512)); !s) return say("A/A", false, s.error().detail);
    pairs(c, fmt::format("A/A: copy of {} MiB", mib), **a, **b, 200, 0.005);
    if (mib == 24) pairs(c, "cold L2: evict_last", **a, **pinned, 60, 0.02);
    if (mib == 24) continue;
    (void)b->reset();
    (void)pinned->reset();
  }
}

Result<double> by_batches(Runner& r, int n) {  // seconds a call: medians of five
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const auto calls = r.batch(n), flushes = r.batch(n, true);
    for (const auto* b : {&calls, &flushes})
      if (!*b) return fail(Code::crashed, b->error().detail);
    seconds.push_back((*calls - *flushes) / n);
  }
  return median(seconds);
}

void forged(Check& c) {
  constexpr int kSlots = 16;
  constexpr std::size_t kSlot = 64 * kMiB;
  Pair p = Pair::make(c, kSlots * kSlot);
  double honest = 0;  // by which an honest call's batches differ from its events
  for (const char* entry : {"copy", "forge_event"}) {
    const bool forged = std::string(entry) == "forge_event";
    auto r = c.start(entry);
    if (!r) return say("batch", false, r.error().detail);
    const auto make = [&](std::size_t slot) {
      CallSpec s = p.call("copy", c.sms * 4, 512, 0, slot, kSlot);
      if (forged) s.plan.launches.push_back({.entry = "forge_event", .grid = c.sms, .scratch_bytes = 0, .block = 1024});
      return s;
    };
    std::vector<CallSpec> slots;
    for (std::size_t i = 0; i < kSlots; ++i) slots.push_back(make(i));
    if (auto s = (*r)->prepare(make(0)); !s) return say("batch: prepare", false, s.error().detail);
    if (auto s = (*r)->prepare_batch(slots); !s) return say("batch: prepare_batch", false, s.error().detail);
    std::vector<double> inside;
    for (int i = 0; i < 15; ++i) {
      const auto t = (*r)->call();
      if (!t) return say(fmt::format("batch: {}", entry), forged, t.error().detail);
      inside.push_back(t->inside_s);
    }
    const auto s = by_batches(**r, kSlots);
    if (!s) return say("batch", false, s.error().text());
    const double event = median(inside), off = *s / event - 1;
    if (forged) {
      say("forged event", std::abs(*s - event - honest) > kBatchSeconds + kBatchRatio * *s,
          fmt::format("events {:.2f} us, batches {:.2f} us: the audit must see it", event * 1e6, *s * 1e6));
    } else {
      honest = *s - event;
      // Behind the events, the flush of the next call pays for what the copy left in L2 that memory does not have yet: at most all of it.
      say("batch: copy of 64 MiB", std::abs(*s - event) < 4e-6 + c.l2_bytes / 4e12,
          fmt::format("events {:.2f} us, batches {:.2f} us ({:+.1f} %)", event * 1e6, *s * 1e6, 100 * off));
    }
  }
}

// Slots of a Pair whose content is never new: what is checked is that the calls that are made write, and no others' outputs are written.
class PairBatch final : public Batch, public Stage {
 public:
  PairBatch(Check& c, const Pair& pair, int slots, std::size_t slot) : m_check(c), m_pair(pair), m_slots(slots), m_slot(slot) {}
  int slots() const override { return m_slots; }
  Status refresh(int) override {
    FORGE_TRY(m_check.context->fill(m_pair.y.data(), kFill, m_pair.y.bytes()));
    return m_check.context->synchronize();
  }
  CheckResult check(int calls) override {
    for (int s = 0; s < m_slots; ++s) {
      unsigned char last = 0;
      (void)m_check.context->copy_to_host(&last, m_pair.y.data() + m_slot * std::size_t(s + 1) - 2, 1);
      const auto& content = m_pair.content;
      const auto right = static_cast<unsigned char>(content[m_slot / 4 * std::size_t(s + 1) - 1] >> 16);
      if (s < calls && last != right) return {.reason = Reason::not_written, .detail = fmt::format("call {} of {}", s + 1, calls)};
      if (s >= calls && last != kFill) return {.reason = Reason::out_of_bounds, .detail = fmt::format("call {} of {}", s + 1, calls)};
    }
    return {};
  }
  Result<std::vector<CallSpec>> calls_for(const Image*, int) override { return std::vector<CallSpec>{}; }
  const std::string& label() const override { return m_label; }
  const AxisValues& axes() const override { return m_axes; }
  Status refresh() override { return refresh(0); }
  CheckResult check() override { return {}; }
  Result<CallSpec> call_for(const Image&, int) override { return CallSpec{}; }
  CallSpec call_for_expert() override { return {}; }

 private:
  static constexpr unsigned char kFill = 0x5a;
  Check& m_check;
  const Pair& m_pair;
  int m_slots;
  std::size_t m_slot;
  std::string m_label = "copy";
  AxisValues m_axes;
};

// An honest copy against itself by the outside clock, and a candidate of whose calls one does two's work.
void batches(Check& c) {
  constexpr int kSlots = 128;
  constexpr std::size_t kSlot = 32 * kMiB;
  Pair p = Pair::make(c, kSlots * kSlot);
  std::vector<CallSpec> honest, ahead;
  for (std::size_t i = 0; i < kSlots; ++i) {
    honest.push_back(p.call("copy", c.sms * 4, 512, 0, i, kSlot));
    ahead.push_back(honest.back());
    ahead.back().axes = {{"n", i % 2 ? 0 : 2 * kSlot / 16}};
  }
  for (const bool cheats : {false, true}) {
    const std::string what = cheats ? "batches: two calls in one" : "batches: A/A";
    auto mine = c.start("copy"), other = c.start("copy");
    if (!mine || !other) return say(what, false, "does not start");
    for (const auto& [r, slots] : {std::pair{&*mine, cheats ? &ahead : &honest}, std::pair{&*other, &honest}}) {
      if (auto s = (*r)->prepare(honest[0]); !s) return say(what, false, s.error().detail);
      if (auto s = (*r)->prepare_batch(*slots); !s) return say(what, false, s.error().detail);
    }
    const std::vector<JobSide> sides{{.label = "candidate", .runner = mine->get()}, {.label = "reference", .runner = other->get()}};
    const BatchPlan plan{.calls = kSlots / 2, .sides = {{}, {.side = 1, .seconds = 20e-6, .wanted = 0.005}}};
    PairBatch content(c, p, kSlots, kSlot);
    Random random(os_entropy());
    auto times = run_batches(plan, sides, content, content, random, what);
    if (!times) return say(what, false, times.error().text());
    if (times->failure || cheats) {
      const auto reason = times->failure ? times->failure->reason : Reason::accepted;
      say(what, cheats && reason == Reason::out_of_bounds,
          fmt::format("{}, {}", name(reason), times->failure ? times->failure->detail : std::string()));
      continue;
    }
    JobResult job;
    job.audit = Audit::batches;
    job.calls = {std::vector<CallTiming>(12, {.inside_s = 20e-6}), std::vector<CallTiming>(12, {.inside_s = 20e-6})};
    job.batches = *times;
    const Interval r = make_pairing(job, sides, 0, 1, 0.005).outside_speedup;
    say(what, std::abs(r.mid - 1) < 0.01,
        fmt::format("{:.2f} and {:.2f} us a call, ratio {:.4f} [{:.4f} {:.4f}], {} repetitions", 1e6 * median(times->per_call_s[0]),
                    1e6 * median(times->per_call_s[1]), r.mid, r.low, r.high, times->per_call_s[0].size()));
  }
}

void expert(Check& c, const std::string& plugin) {
  constexpr std::int64_t kN = 8192;
  auto a = DeviceBuffer::make(std::size_t(kN * kN) * 2, "A"), b = DeviceBuffer::make(std::size_t(kN * kN) * 2, "B"),
       o = DeviceBuffer::make(std::size_t(kN * kN) * 2, "C");
  if (!a || !b || !o) return say("expert", false, "no memory");
  std::vector<std::uint16_t> half(std::size_t(kN * kN));
  std::mt19937 random(3);
  for (auto& h : half) h = static_cast<std::uint16_t>((random() & 0x8fff) | 0x3000);
  (void)c.context->copy_to_device(a->data(), half.data(), half.size() * 2);
  (void)c.context->copy_to_device(b->data(), half.data(), half.size() * 2);
  auto options = c.options();
  options.load_timeout_s = 60;
  const double begin = monotonic_seconds();
  auto r = start_cuda_expert_runner(plugin, options);
  const std::string label = "expert: " + plugin.substr(plugin.rfind('/') + 1);
  if (!r) return say(label, false, r.error().detail);
  CallSpec s;
  s.input_specs = {{.name = "A", .dtype = DType::f16}, {.name = "B", .dtype = DType::f16}};
  s.output_specs = {{.name = "C", .dtype = DType::f16}};
  s.inputs = {{.access = Access::read, .device = &*a}, {.access = Access::read, .device = &*b}};
  s.outputs = {{.access = Access::write, .device = &*o}};
  s.input_shapes = {{kN, kN}, {kN, kN}};
  s.output_shapes = {{kN, kN}};
  if (auto p = (*r)->prepare(s); !p) return say(label, false, p.error().detail);
  const double ready = monotonic_seconds();
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    auto t = (*r)->call();
    if (!t) return say(label, false, t.error().detail);
    times.push_back(t->inside_s);
  }
  say(label, true,
      fmt::format("{:.1f} us = {:.0f} TFLOP/s; ready after {:.1f} s; {}", 1e6 * median(times), 2.0 * kN * kN * kN / median(times) * 1e-12,
                  ready - begin, (*r)->description()));
  (void)(*r)->prepare_batch({});
  if (const auto t = by_batches(**r, 16); t) say(label + ": in a batch", true, fmt::format("{:.1f} us a call", *t * 1e6));
}

int run(int argc, char** argv) {
  if (argc < 3) return std::printf("usage: device_check cubin forge-runner [plugins]\n"), 64;
  for (const auto& line : cuda_findings()) std::printf("%s\n", line.c_str());
  Check c;
  const auto target = native_cuda_target();
  if (!target) return std::printf("%s\n", target.error().text().c_str()), 1;
  const auto machine = probe_cuda(*target);
  if (!machine) return std::printf("%s\n", machine.error().text().c_str()), 1;
  std::string facts = machine->device_class;
  for (const auto& [key, value] : machine->properties) facts += fmt::format(" {}={}", key, value);
  for (const auto& [key, value] : machine->environment) facts += fmt::format(" {}={}", key, value);
  std::printf("%s\n", facts.c_str());
  auto context = CudaContext::make();
  if (!context) return std::printf("%s\n", context.error().text().c_str()), 1;
  auto cubin = read_file(argv[1]);
  if (!cubin) return std::printf("%s\n", cubin.error().text().c_str()), 1;
  c.context = *context;
  c.cubin = *cubin;
  c.program = argv[2];
  c.target = *target;
  c.l2_bytes = machine->properties.at("l2_bytes");
  c.sms = int(machine->properties.at("sm_count"));
  copies(c);
  wrong_kernels(c);
  residues(c);
  noise(c);
  forged(c);
  batches(c);
  for (int i = 3; i < argc; ++i) expert(c, argv[i]);
  const auto ceilings = measure_cuda_ceilings(*machine, "");
  say("ceilings", bool(ceilings),
      ceilings ? fmt::format("read {:.0f} GB/s, copy {:.0f} GB/s, f32 {:.1f} TFLOP/s, f16 matrix {:.0f} TFLOP/s", ceilings->read_gbs,
                             ceilings->copy_gbs, ceilings->gflops * 1e-3, ceilings->matrix_gflops * 1e-3)
               : ceilings.error().text());
  const CardState state = card_state();
  std::printf("     card: %.0f C, %.0f W, throttle '%s', %d processes\n%d failures\n", state.temperature_c, state.power_w,
              state.throttle.c_str(), state.processes, failures);
  return failures != 0;
}

}  // namespace
}  // namespace forge

int main(int argc, char** argv) { return forge::run(argc, argv); }
