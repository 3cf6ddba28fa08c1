// SPDX-License-Identifier: Apache-2.0
#include "gate/real_gate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fakes.h"
#include "util/process.h"
#include "util/progress.h"

namespace forge {
namespace {

using fakes::package;

// A real object for the disassembler: one loop of packed fused multiply-adds.
const std::string& object() {
  static const std::string bytes = [] {
    auto dir = TempDir::make();
    const auto source = dir->path() / "k.cpp";
    if (!write_file_atomic(source,
                           "extern \"C\" void e(const float* a, float* b, long n) { for (long i = 0; i < n; ++i) b[i] += a[i] * 2.5f; }\n"))
      return std::string();
    ProcessOptions o;
    o.argv = {"g++",
              "-O3",
              "-march=x86-64-v3",
              "-ffreestanding",
              "-fno-asynchronous-unwind-tables",
              "-c",
              source.string(),
              "-o",
              (dir->path() / "k.o").string()};
    o.env = {"PATH=/usr/bin:/bin"};
    if (auto r = run_process(o); !r || r->exit_code != 0) return std::string();
    auto read = read_file(dir->path() / "k.o");
    return read ? *read : std::string();
  }();
  return bytes;
}

struct RealGateTest : testing::Test {
  fakes::World world;
  std::unique_ptr<RealGate> gate;
  void SetUp() override {
    ASSERT_FALSE(object().empty()) << "g++ is needed";
    world.kernels = {{"expert-a", {.seconds = 1.0e-3}}, {"expert-b", {.seconds = 1.4e-3}}, {"sealed", {.seconds = 0.8e-3}},
                     {"same", {.seconds = 1.0e-3}},     {"fast", {.seconds = 0.9e-3}},     {"faster", {.seconds = 0.8e-3}},
                     {"slow", {.seconds = 2.0e-3}}};
  }
  void make(const std::string& reference) {
    gate = std::make_unique<RealGate>(fakes::parts(world, object()), fakes::task(reference), fakes::machine(), GateOptions{.quiet = true});
  }
  Verdict submit(const std::string& kernel, std::optional<PerformanceCondition> condition, Signature signature = {}) {
    Submission s{.package = package(kernel), .milestone = "M1", .acceptance = {condition, signature}, .branch_best = {}, .global_best = {}};
    if (best) s.branch_best = package(*best);
    auto v = gate->submit(s);
    EXPECT_TRUE(v) << v.error().text();
    return v ? *v : Verdict::rejected(Reason::runner_broke, v.error().text());
  }
  std::optional<std::string> best;
  static constexpr PerformanceCondition kGain{Against::reference, 0}, kOnBest{Against::branch_best, 0};
};

TEST_F(RealGateTest, TheBetterExpertIsTheReferenceAndAllAreOnRecord) {
  make("expert");
  const auto info = gate->open();
  ASSERT_TRUE(info) << info.error().text();
  EXPECT_EQ(info->id, "expert:onednn");
  ASSERT_EQ(info->considered.size(), 2u);
  EXPECT_NEAR(info->seconds, 1e-3, 2e-5);
}

TEST_F(RealGateTest, AWrongOrRefusingExpertIsNotTheReference) {
  world.kernels["expert-a"].result = Reason::wrong_result;
  make("expert");
  EXPECT_EQ(gate->open()->id, "expert:openblas");
  EXPECT_NE(gate->open()->considered[0].find("refused (wrong_result)"), std::string::npos) << gate->open()->considered[0];
  world.kernels["expert-b"].start = RunnerFailure{Reason::load_failed, "OpenBLAS fell back to Prescott"};
  make("expert");
  const auto none = gate->open();
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("Prescott"), std::string::npos);
}

TEST_F(RealGateTest, NamedExpertSealedGenerationAndBadNames) {
  make("expert:openblas");
  EXPECT_EQ(gate->open()->id, "expert:openblas");
  make("expert:mkl");
  EXPECT_EQ(gate->open().error().code, Code::not_found);
  make("gen:abc");
  const auto info = gate->open();
  ASSERT_TRUE(info) << info.error().text();
  EXPECT_EQ(info->id, "gen0:abcdef012345");
  make("nonsense");
  EXPECT_EQ(gate->open().error().field, "reference");
}

TEST_F(RealGateTest, FasterSameSlower) {
  make("expert");
  ASSERT_TRUE(gate->measure_floor());
  const Verdict fast = submit("fast", kGain);
  EXPECT_TRUE(fast.accepted()) << fast.detail();
  const auto& pairing = fast.measurement()->pairs.at(0);
  EXPECT_EQ(pairing.against, "reference");
  EXPECT_EQ(pairing.comparison, Comparison::faster);
  EXPECT_NEAR(pairing.speedup.mid, 1 / 0.9, 0.01);
  EXPECT_EQ(fast.measurement()->conditions.at("protocol"), kCpuProtocol);
  EXPECT_NE(fast.measurement()->conditions.at("side.candidate").find("img-fast"), std::string::npos);
  EXPECT_TRUE(std::any_of(fast.notes.begin(), fast.notes.end(), [](auto& n) { return n.find("landlock") != n.npos; }));
  const Verdict same = submit("same", kGain);
  EXPECT_EQ(same.reason(), Reason::too_slow) << same.detail();
  EXPECT_TRUE(same.correct());
  EXPECT_EQ(submit("slow", kGain).reason(), Reason::too_slow);
  const Verdict m0 = submit("slow", std::nullopt);
  EXPECT_TRUE(m0.accepted()) << "no condition, no threshold";
  EXPECT_EQ(m0.measurement()->pairs.at(0).pairs, kMinPairs);
  world.sigma = 0.02;
  make("expert");
  const auto figure = gate->submit({.package = package("slow"), .milestone = "bench", .all_pairs = true});
  ASSERT_TRUE(figure) << figure.error().text();
  EXPECT_GT(figure->measurement()->pairs.at(0).pairs, kMinPairs) << "a figure is what is wanted";
  EXPECT_EQ(m0.measurement()->pairs.at(0).comparison, Comparison::slower);
}

TEST_F(RealGateTest, TheNamedRivalIsInTheSameJob) {
  make("expert");
  best = "fast";
  const PerformanceCondition on_best{Against::branch_best, 0.05};
  const Verdict v = submit("faster", on_best);
  EXPECT_TRUE(v.accepted()) << v.detail();
  ASSERT_EQ(v.measurement()->pairs.size(), 2u);
  EXPECT_EQ(v.measurement()->pairs[1].against, "branch_best");
  EXPECT_NEAR(v.measurement()->pairs[1].speedup.mid, 0.9 / 0.8, 0.01);
  best = "faster";
  EXPECT_EQ(submit("fast", on_best).reason(), Reason::too_slow);
  best.reset();
  const auto missing = gate->submit({.package = package("fast"), .milestone = "M1", .acceptance = {on_best, {}}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::internal);
}

TEST_F(RealGateTest, EveryStepNamesItsReason) {
  make("expert");
  const Verdict unknown = submit("no such source", kGain);
  EXPECT_EQ(unknown.reason(), Reason::build_failed);
  EXPECT_EQ(unknown.build_log, "error: line 1");
  world.kernels["wrong"] = {.result = Reason::wrong_result};
  EXPECT_EQ(submit("wrong", kGain).reason(), Reason::wrong_result);
  EXPECT_FALSE(submit("wrong", kGain).measurement());
  world.kernels["unloadable"] = {.start = RunnerFailure{Reason::load_failed, "bad relocation"}};
  EXPECT_EQ(submit("unloadable", kGain).reason(), Reason::load_failed);
  world.kernels["crash"] = {.call = RunnerFailure{Reason::crashed, "signal 11"}};
  EXPECT_EQ(submit("crash", kGain).reason(), Reason::crashed);
  world.kernels["narrow"] = {};
  const Verdict narrow = submit("narrow", kGain);
  EXPECT_EQ(narrow.reason(), Reason::unsupported_shape);
  EXPECT_NE(narrow.detail().find("M % 128"), std::string::npos);
  world.kernels["late"] = {.seconds = 0.5e-3, .result = Reason::stale_result, .fail_after = 9};  // right in the correctness run only
  const Verdict late = submit("late", kGain);
  EXPECT_EQ(late.reason(), Reason::stale_result) << late.detail();
  EXPECT_FALSE(late.correct());
  world.kernels["forger"] = {.inside_factor = 0.8};
  EXPECT_EQ(submit("forger", kGain).reason(), Reason::clocks_disagree);
  world.kernels["helper threads"] = {.seconds = 0.9, .cpu_factor = 3};
  world.kernels["expert-a"].seconds = 1;
  EXPECT_EQ(submit("helper threads", std::nullopt).reason(), Reason::clocks_disagree);
}

TEST_F(RealGateTest, AMissingMechanismIsSaidAfterCorrectness) {
  make("expert");
  Signature here{{SignatureTerm{.mnemonic = "vfmadd*ps"}}}, absent{{SignatureTerm{.mnemonic = "vmovntps"}}};
  EXPECT_TRUE(submit("fast", kGain, here).accepted());
  const Verdict v = submit("fast", kGain, absent);
  EXPECT_EQ(v.reason(), Reason::mechanism_missing);
  EXPECT_TRUE(v.correct());
  EXPECT_FALSE(v.measurement());
  world.kernels["wrong"] = {.result = Reason::wrong_result};
  EXPECT_EQ(submit("wrong", kGain, absent).reason(), Reason::wrong_result);
}

TEST_F(RealGateTest, ABrokenReferenceIsNoFaultOfTheCandidate) {
  make("expert");
  ASSERT_TRUE(gate->measure_floor());
  world.kernels["expert-a"].call = RunnerFailure{Reason::crashed, "signal 9"};
  const auto v = gate->submit({.package = package("fast"), .milestone = "M1", .acceptance = {kGain, {}}});
  ASSERT_FALSE(v);
  EXPECT_EQ(v.error().code, Code::crashed);
}

TEST_F(RealGateTest, AReferenceThatDiesOnceIsStartedAgainAndSaid) {
  make("expert");
  ASSERT_TRUE(gate->measure_floor());
  world.kernels["expert-a"].call = RunnerFailure{Reason::crashed, "signal 9"};
  world.kernels["expert-a"].once = true;
  const Verdict v = submit("fast", kGain);
  EXPECT_TRUE(v.accepted()) << v.detail();
  EXPECT_TRUE(std::any_of(v.notes.begin(), v.notes.end(), [](auto& n) { return n.find("begun again") != n.npos; }));
}

TEST_F(RealGateTest, AKilledProcessIsReplacedOnceAndNobodyIsBlamed) {
  const RunnerFailure kill{Reason::runner_broke, "killed by signal 9 (Killed)", true};
  world.kernels["expert-a"].call = kill, world.kernels["expert-a"].once = true;
  make("expert");  // killed while it is opened: it is not passed over
  EXPECT_EQ(gate->open()->id, "expert:onednn");
  world.kernels["expert-a"].call = kill;
  ASSERT_TRUE(gate->measure_floor()) << "killed while the floor is measured";
  for (const int after : {0, 3, 10}) {  // calls, from the first of the correctness run into the timing job
    world.kernels["fast"].call = kill, world.kernels["fast"].once = true, world.kernels["fast"].fail_after = after;
    const Verdict v = submit("fast", kGain);
    EXPECT_TRUE(v.accepted()) << after << ": " << v.detail();
    EXPECT_FALSE(world.kernels["fast"].call) << after << ": it was never killed";
    EXPECT_TRUE(std::any_of(v.notes.begin(), v.notes.end(), [](auto& n) { return n.find("fresh") != n.npos; })) << after;
  }
  world.kernels["fast"].call = RunnerFailure{Reason::runner_broke, "a forged message"}, world.kernels["fast"].once = true,
  world.kernels["fast"].fail_after = 0;
  EXPECT_EQ(submit("fast", kGain).reason(), Reason::runner_broke) << "that may be the candidate's doing: no second draw";
  world.kernels["fast"].call = kill, world.kernels["fast"].once = false, world.kernels["fast"].fail_after = 0;
  EXPECT_EQ(submit("fast", kGain).reason(), Reason::runner_broke) << "every time";
}

TEST_F(RealGateTest, WhatThisMachineLacksIsNoVerdict) {
  make("expert");
  Error full{.code = Code::disk_full, .message = "no space"};
  world.build_failure = BuildFailure{Reason::build_failed, "no space", "", full};
  const auto v = gate->submit({.package = package("fast"), .milestone = "M1", .acceptance = {kGain, {}}});
  ASSERT_FALSE(v);
  EXPECT_EQ(v.error().code, Code::disk_full);
  const auto timed = gate->time({package("fast")});
  ASSERT_FALSE(timed);
  EXPECT_EQ(timed.error().code, Code::disk_full);
}

TEST_F(RealGateTest, ARivalThatCouldNotBeStartedAgainIsStartedForItsNextJob) {
  make("expert");
  best = "fast";
  ASSERT_TRUE(submit("fast", kGain).accepted());
  const Submission next{.package = package("faster"), .milestone = "M2", .acceptance = {kOnBest, {}}, .branch_best = package("fast")};
  ASSERT_TRUE(gate->submit(next));
  world.kernels["fast"].call = RunnerFailure{Reason::crashed, "signal 9"};
  world.kernels["fast"].start = RunnerFailure{Reason::load_failed, "no more processes"};
  ASSERT_FALSE(gate->submit(next));
  world.kernels["fast"].call.reset(), world.kernels["fast"].start.reset();
  const int starts = world.starts;
  const auto v = gate->submit(next);
  ASSERT_TRUE(v) << v.error().text();
  EXPECT_EQ(v->measurement()->pairs[1].against, "branch_best");
  EXPECT_EQ(world.starts, starts + 2) << "the candidate, and the rival that had died";
}

TEST_F(RealGateTest, APackageFolderAsReference) {
  auto dir = TempDir::make();
  const auto folder = dir->path() / "base";
  ASSERT_TRUE(write_package_folder({.source = "sealed", .plan_text = "format = 1\n", .origin = ""}, folder));
  make("package:" + folder.string());
  const auto info = gate->open();
  ASSERT_TRUE(info) << info.error().text();
  EXPECT_TRUE(info->id.starts_with("package:"));
  EXPECT_NEAR(info->seconds, 0.8e-3, 2e-5);
  make("package:/nowhere");
  EXPECT_FALSE(gate->open());
}

TEST_F(RealGateTest, RunnersBasesAndImagesStayWarm) {
  make("expert");
  ASSERT_TRUE(gate->measure_floor());
  submit("fast", kGain);
  const int starts = world.starts, builds = world.builds.load();
  submit("fast", kGain);
  EXPECT_EQ(world.builds, builds) << "the same package is built once";
  EXPECT_EQ(world.starts, starts + 1) << "one new process: the candidate's";
}

TEST_F(RealGateTest, AWantedFloorTakesThePairsItNeeds) {
  world.sigma = 0.02;
  const auto floor_of = [&](double wanted, double seconds) {
    GateParts parts = fakes::parts(world, object());
    parts.wanted_floor = wanted;
    gate =
        std::make_unique<RealGate>(parts, fakes::task("gen:abc"), fakes::machine(), GateOptions{.timing_seconds = seconds, .quiet = true});
    return *gate->measure_floor();
  };
  const NoiseFloor plain = floor_of(0, 30), wanted = floor_of(0.005, 30), hurried = floor_of(0.005, 0);
  EXPECT_EQ(plain.pairs, 24);
  EXPECT_GT(wanted.pairs, 60) << "126 for a ratio that scatters by 2.8 %";
  EXPECT_LE(wanted.pairs, kMostFloorPairs);
  EXPECT_EQ(hurried.pairs, 24) << "the time allows no more";
  floor_of(0.005, 30);
  EXPECT_GT(submit("fast", kGain).measurement()->pairs.at(0).pairs, 60) << "the jobs it is for have as many";
}

TEST_F(RealGateTest, TwoProcessesAreOneDrawOfHowFarProcessesLieApart) {
  GateParts parts = fakes::parts(world, object());
  parts.process_seconds = 0.15e-3;  // of 0.8 ms
  gate = std::make_unique<RealGate>(parts, fakes::task("gen:abc"), fakes::machine(), GateOptions{.quiet = true});
  EXPECT_NEAR(gate->measure_floor()->ratio, 0.15 / 0.8, 0.01);
  world.kernels["fast"].seconds = 0.7e-3;
  EXPECT_FALSE(submit("fast", kGain).accepted()) << "a seventh is no more than processes differ by";
}

TEST_F(RealGateTest, ConfirmationUsesNothingOfTheRun) {
  make("expert");
  ASSERT_TRUE(gate->measure_floor());
  ASSERT_TRUE(submit("fast", kGain).accepted());
  const int starts = world.starts, fresh = world.fresh_stages;
  const auto v = gate->confirm(package("fast"), {});
  ASSERT_TRUE(v) << v.error().text();
  EXPECT_TRUE(v->accepted()) << v->detail();
  EXPECT_EQ(world.starts, starts + 3) << "candidate and the reference twice";
  EXPECT_EQ(world.fresh_stages, fresh + 3) << "two correctness workloads and the timed one";
  EXPECT_EQ(v->measurement()->pairs.size(), 1u);
  world.kernels["fast"].seconds = 1.1e-3;
  const auto lost = gate->confirm(package("fast"), {});
  EXPECT_EQ(lost->reason(), Reason::not_confirmed);
  EXPECT_EQ(gate->confirm(package("slow"), {})->reason(), Reason::too_slow) << "never claimed to be faster";
  EXPECT_EQ(gate->confirm(package("faster"), {Signature{{SignatureTerm{.mnemonic = "vmovntps"}}}})->reason(), Reason::mechanism_missing);
}

TEST_F(RealGateTest, AgainstTheExpertFromASealedReference) {
  make("gen:abc");
  ASSERT_TRUE(gate->measure_floor());
  const auto v = gate->against_expert(package("faster"));
  ASSERT_TRUE(v) << v.error().text();
  ASSERT_EQ(v->measurement()->pairs.size(), 1u);
  EXPECT_EQ(v->measurement()->pairs[0].against, "expert");
  EXPECT_NEAR(v->measurement()->pairs[0].speedup.mid, 1.25, 0.02);
}

TEST_F(RealGateTest, AResumedGatePlansFromAFloorOfItsOwn) {
  make("gen:abc");
  const auto v = gate->against_expert(package("faster"));  // the first that it is asked: the rest is in the record
  make("gen:abc");
  ASSERT_TRUE(gate->measure_floor());
  const auto w = gate->against_expert(package("faster"));
  ASSERT_TRUE(v && w);
  EXPECT_EQ(v->measurement()->pairs[0].pairs, w->measurement()->pairs[0].pairs);
}

TEST_F(RealGateTest, WithoutAReferenceTheCandidateGivesTheFloor) {
  make("none");
  EXPECT_FALSE(gate->open()->present);
  EXPECT_EQ(gate->measure_floor()->pairs, 0);
  const Verdict m0 = submit("fast", std::nullopt);
  ASSERT_TRUE(m0.accepted()) << m0.detail();
  EXPECT_TRUE(m0.measurement()->pairs.empty());
  EXPECT_GT(m0.measurement()->floor.pairs, 0);
  best = "fast";
  const Verdict m1 = submit("faster", PerformanceCondition{Against::branch_best, 0});
  EXPECT_TRUE(m1.accepted()) << m1.detail();
  EXPECT_TRUE(gate->confirm(package("faster"), {})->accepted());
}

TEST_F(RealGateTest, DiagnosticsAreUncheckedAndSayWhatBroke) {
  make("expert");
  world.kernels["wrong"] = {.seconds = 0.5e-3, .result = Reason::wrong_result};
  world.kernels["crash"] = {.call = RunnerFailure{Reason::crashed, "signal 11"}};
  const int checks = world.checks;
  const auto d = gate->time({package("fast"), package("unknown"), package("wrong"), package("crash"), package("fast")});
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(world.builds, 4) << "each package once";
  EXPECT_NEAR((*d)[4].against_first, 1, 0.02);
  EXPECT_EQ(world.checks, checks);
  EXPECT_TRUE((*d)[0].ran);
  EXPECT_FALSE((*d)[1].ran);
  EXPECT_NE((*d)[1].problem.find("build_failed"), std::string::npos);
  EXPECT_TRUE((*d)[2].ran);
  EXPECT_NEAR((*d)[2].against_first, 0.9 / 0.5, 0.05);
  EXPECT_NE((*d)[3].problem.find("signal 11"), std::string::npos);
}

// Nothing says yet how long a call takes: a job of the fewest pairs does, and the one that counts has more.
TEST_F(RealGateTest, DiagnosticsWithoutAFloorHaveAPilot) {
  constexpr int fewest = 5, most = 31;
  make("none");
  ASSERT_TRUE(gate->time({package("fast"), package("fast")}));
  EXPECT_GE(world.calls, 2 * (fewest + most));
  EXPECT_EQ(world.checks, 0);
  make("expert");
  ASSERT_TRUE(gate->measure_floor());
  const int before = world.calls;
  ASSERT_TRUE(gate->time({package("fast"), package("fast")}));
  EXPECT_GE(world.calls - before, 2 * most);
  EXPECT_LT(world.calls - before, 2 * (fewest + most)) << "the floor's job said it";
}

TEST_F(RealGateTest, EvidenceOfTheReferenceAndOfACandidate) {
  make("expert");
  const auto e = gate->analyse();
  ASSERT_TRUE(e) << e.error().text();
  const double bytes = 8.0 * 1024 * 64, seconds = e->metrics.at("seconds");
  EXPECT_NEAR(e->metrics.at("achieved_gbs"), bytes / seconds * 1e-9, 1e-9);
  EXPECT_NEAR(e->metrics.at("memory_percent"), 100 * bytes / seconds * 1e-9 / 10, 1e-9);
  EXPECT_EQ(e->metrics.at("working_set_bytes"), bytes);
  EXPECT_EQ(e->metrics.at("ceiling_gflops"), 100);
  EXPECT_EQ(e->metrics.at("vector_bits"), 256);
  EXPECT_EQ(e->hot_symbols.at(0).first, "jit");
  const auto mine = gate->examine(package("fast"));
  ASSERT_TRUE(mine) << mine.error().text();
  EXPECT_EQ(mine->metrics.at("vector_bits"), 256);
  EXPECT_GT(mine->mix.loops.size(), 0u);
  EXPECT_EQ(gate->examine(package("unknown")).error().code, Code::build_failed);
}

// A card's counters through a script in Nsight Compute's place: the whole way from the gate to the evidence.
struct CardEvidenceGateTest : RealGateTest {
  TempDir folder = std::move(*TempDir::make());
  Evidence analysed(const std::string& reference, const std::string& script) {
    const fs::path ncu = folder.path() / "ncu";
    EXPECT_TRUE(write_file_atomic(ncu, "#!/bin/sh\ncd " FORGE_SOURCE_DIR "/tests/fixtures/cuda/ncu\n" + script));
    fs::permissions(ncu, fs::perms::owner_all);
    setenv("FORGE_NCU", ncu.c_str(), 1);
    Machine card = fakes::machine();
    card.target.family = "cuda";
    GateParts parts = fakes::parts(world, object());
    parts.disassemble = [](const Image&) -> Result<InstructionMix> { return fail(Code::unsupported, "no SASS here"); };
    gate = std::make_unique<RealGate>(std::move(parts), fakes::task(reference), card, GateOptions{.quiet = true});
    const auto e = gate->analyse();
    unsetenv("FORGE_NCU");
    EXPECT_TRUE(e) << e.error().text();
    return e ? *e : Evidence{};
  }
  static bool noted(const Evidence& e, const std::string& part) {
    return std::any_of(e.notes.begin(), e.notes.end(), [&](const auto& n) { return n.find(part) != std::string::npos; });
  }
};

TEST_F(CardEvidenceGateTest, OfALibraryThereAreCountersAndAMix) {
  const Evidence e =
      analysed("expert",
               "case \"$*\" in *--import*) cat source.csv;; *SourceCounters*expert-a*) "
               "touch \"$OLDPWD/report.ncu-rep\";; *expert-a*) echo made: cuBLASLt 1, algorithm 7; cat counters.csv;; esac\n");
  EXPECT_EQ(e.metrics.at("counter_kernels"), 3);
  EXPECT_EQ(e.metrics.at("counter_registers"), 168);
  EXPECT_EQ(e.hot_symbols.size(), 3u);
  EXPECT_GT(e.metrics.at("instructions"), 10);
  EXPECT_TRUE(e.mix.loops.empty());
  EXPECT_TRUE(noted(e, "grid (2, 66, 1)"));
  EXPECT_TRUE(noted(e, "under Nsight Compute it was: cuBLASLt 1, algorithm 7"));
}

TEST_F(CardEvidenceGateTest, OfAnImageThereAreCounters) {
  const Evidence e = analysed("gen:abc", "case \"$*\" in *SourceCounters*) exit 9;; *sealed*) cat counters.csv;; esac\n");
  EXPECT_EQ(e.metrics.at("counter_dram_read_bytes"), 147556096 + 556544 + 1059328);
  EXPECT_TRUE(noted(e, "no instruction mix: no SASS here"));
}

TEST_F(CardEvidenceGateTest, WhatIsNotPermittedIsSaid) {
  const Evidence e = analysed("expert", "cat not_permitted.txt; exit 1\n");
  EXPECT_TRUE(noted(e, "no counters: not permitted: ERR_NVGPUCTRPERM"));
  EXPECT_TRUE(noted(e, "no instruction mix: not permitted"));
  EXPECT_FALSE(e.metrics.contains("counter_seconds"));
}

TEST_F(RealGateTest, CopiesOfTheReferenceAreNeverFaster) {
  world.kernels["sealed"].seconds = 1e-3;
  world.sigma = 0.02;
  make("gen:abc");
  ASSERT_TRUE(gate->measure_floor());
  int faster = 0;
  for (int i = 0; i < 60; ++i) faster += submit("same", kGain).accepted();
  EXPECT_EQ(faster, 0);
}

TEST_F(RealGateTest, CtrlCIsAnErrorNotAVerdict) {
  make("expert");
  ASSERT_TRUE(gate->measure_floor());
  world.on_call = [this, n = 0]() mutable {
    if (++n == 12) request_stop();
  };
  const auto v = gate->submit({.package = package("fast"), .milestone = "M1", .acceptance = {kGain, {}}});
  reset_stop();
  ASSERT_FALSE(v);
  EXPECT_EQ(v.error().code, Code::interrupted);
}

}  // namespace
}  // namespace forge
