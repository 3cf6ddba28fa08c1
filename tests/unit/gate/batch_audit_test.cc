// SPDX-License-Identifier: Apache-2.0
// A gate whose outside clock times batches, as on a GPU, with made-up runners: "faster" needs the batches to agree.
#include <gtest/gtest.h>

#include "fakes.h"
#include "gate/real_gate.h"

namespace forge {
namespace {

using namespace fakes;

class BatchAuditTest : public ::testing::Test {
 protected:
  BatchAuditTest() {
    world.kernels = {{"expert-a", {.seconds = 200e-6}}, {"fast", {.seconds = 160e-6}}, {"same", {.seconds = 200e-6}}};
    world.sigma = 0.002;
  }
  Verdict submit(const std::string& source, bool with_condition = true) {
    GateParts p = parts(world, "");
    p.op.experts = {{"lib", "expert-a"}};
    p.protocol = kCudaProtocol;
    p.audit = Audit::batches;
    p.disassemble = [](const Image&) -> Result<InstructionMix> { return fail(Code::unsupported, "no nvdisasm"); };
    p.card = [this] { return look; };
    gate = std::make_unique<RealGate>(std::move(p), task("expert"), machine(), GateOptions{});
    Submission s{.package = package(source), .milestone = "M1"};
    if (with_condition) s.acceptance.performance = PerformanceCondition{Against::reference, 0};
    const auto v = gate->submit(s);
    EXPECT_TRUE(v) << v.error().text();
    return v ? *v : Verdict::rejected(Reason::runner_broke, v.error().text());
  }
  static bool noted(const Verdict& v, const std::string& text) {
    return std::any_of(v.notes.begin(), v.notes.end(), [&](const auto& n) { return n.find(text) != n.npos; });
  }
  World world;
  CardLook look{{.temperature_c = 41, .power_w = 300, .throttle = "", .processes = 3}, 0};
  std::unique_ptr<RealGate> gate;
};

TEST_F(BatchAuditTest, AnHonestGainIsConfirmedByBatches) {
  const Verdict v = submit("fast");
  EXPECT_EQ(v.reason(), Reason::accepted) << v.detail();
  const PairedTiming& p = v.measurement()->pairs.at(0);
  EXPECT_NEAR(p.outside_speedup.mid, 1.25, 0.02);
  EXPECT_NEAR(p.outside_resolution, kBatchSeconds / 160e-6 + kBatchRatio, 0.02);
  EXPECT_EQ(world.batches_mapped, 0) << "let go of";
  EXPECT_GT(v.correctness()->checks, world.batch_calls / 4) << "every call of the candidate's batches is a checked call";
  const auto& c = v.measurement()->conditions;
  EXPECT_EQ(c.at("protocol"), kCudaProtocol);
  EXPECT_NE(c.at("audit").find("batches of"), std::string::npos) << c.at("audit");
  EXPECT_NE(c.at("temperature").find("41 to 41 C"), std::string::npos) << c.at("temperature");
  EXPECT_NE(c.at("sm_clock.candidate").find("unknown"), std::string::npos);
  EXPECT_EQ(c.at("throttle"), "none reported");
  EXPECT_EQ(c.at("foreign_processes"), "0");
  EXPECT_TRUE(noted(v, "nvdisasm"));
  EXPECT_FALSE(world.content_too_early);
}

TEST_F(BatchAuditTest, ASmallGainIsAskedForMoreOftenThanALargeOne) {
  world.batch_jitter = 150e-6;
  submit("fast");
  EXPECT_EQ(world.batches, 2 * (1 + 4 * BatchPlan().repetitions));
  world.batches = 0;
  world.kernels["fast"].seconds = 197e-6;
  submit("fast");
  EXPECT_GT(world.batches, 2 * (1 + 4 * BatchPlan().repetitions));
  EXPECT_LE(world.batches, 2 * (1 + 4 * BatchPlan().most));
}

TEST_F(BatchAuditTest, AForgedEventIsSeenByTheBatches) {
  world.kernels["same"].inside_factor = 0.9;
  const Verdict v = submit("same");
  EXPECT_EQ(v.reason(), Reason::clocks_disagree) << v.detail();
  EXPECT_EQ(submit("same", false).reason(), Reason::clocks_disagree) << "a figure is a claim, even where none is asked";
}

// All outputs of a batch are mapped when a call runs, so a call can compute those of the calls behind it, or leave its own to a later
// one, and save what launches cost. It cannot know how many calls there are.
TEST_F(BatchAuditTest, ACallThatDoesTheWorkOfLaterOnesIsRejected) {
  world.batch_group = 8;
  const Verdict v = submit("fast");
  EXPECT_EQ(v.reason(), Reason::out_of_bounds) << v.detail();
}

TEST_F(BatchAuditTest, ACallThatLeavesItsWorkToALaterOneIsRejected) {
  world.batch_group = -8;
  const Verdict v = submit("fast");
  EXPECT_EQ(v.reason(), Reason::not_written) << v.detail();
}

TEST_F(BatchAuditTest, WhatAnExpertsProcessCostsIsNoMeritOfTheCandidates) {
  world.kernels["expert-a"] = {.seconds = 160e-6, .batch_constant = 2e-3, .flush_seconds = 85e-6};
  world.kernels["fast"].inside_factor = 0.9;
  EXPECT_FALSE(submit("fast").accepted()) << "as fast as the expert, whose batches begin later, and whose flush is slower";
  world.kernels["fast"] = {.seconds = 140e-6};
  const Verdict v = submit("fast");
  EXPECT_TRUE(v.accepted()) << v.detail();
  EXPECT_NEAR(v.measurement()->pairs.at(0).outside_speedup.mid, 160.0 / 140, 0.01);
  EXPECT_NE(v.measurement()->conditions.at("audit").find("CUDA graphs"), std::string::npos);
}

// What the clocks may differ by must not grow with what one of them claims.
TEST_F(BatchAuditTest, AForgeryBeyondAllMeasureIsSeenBesideATrueGain) {
  world.kernels["expert-a"].seconds = 20e-6;
  world.kernels["fast"] = {.seconds = 18e-6, .inside_factor = 0.02};
  const Verdict v = submit("fast");
  EXPECT_GT(v.measurement()->pairs.at(0).outside_speedup.low, 1);
  EXPECT_EQ(v.reason(), Reason::clocks_disagree) << v.detail();
}

TEST_F(BatchAuditTest, AFlushThatIsSlowWhereNoCallFollowsIsNoGain) {
  world.kernels["same"].inside_factor = 0.9;
  world.kernels["same"].flush_alone_seconds = 20e-6;
  const Verdict v = submit("same");
  EXPECT_EQ(v.reason(), Reason::clocks_disagree) << v.detail();
  EXPECT_LT(v.measurement()->pairs.at(0).outside_speedup.mid, 1.01);
}

TEST_F(BatchAuditTest, WhoCannotBeRecordedIsNoWitness) {
  world.kernels["fast"].batch_refused = true;
  const Verdict v = submit("fast");
  EXPECT_EQ(v.reason(), Reason::ambiguous) << v.detail();
  EXPECT_NE(v.measurement()->conditions.at("audit").find("not run: cannot be recorded"), std::string::npos);
}

TEST_F(BatchAuditTest, AnAnswerThatIsWrongInABatchOnlyIsRejected) {
  world.kernels["fast"].batch_result = Reason::stale_result;
  const Verdict v = submit("fast");
  EXPECT_EQ(v.reason(), Reason::stale_result);
  EXPECT_FALSE(v.correct());
}

TEST_F(BatchAuditTest, WhatIsNotFasterIsNotAudited) {
  const Verdict v = submit("same");
  EXPECT_EQ(v.reason(), Reason::too_slow) << v.detail();
  EXPECT_EQ(world.batches, 0);
  EXPECT_NE(v.measurement()->conditions.at("audit").find("not run"), std::string::npos);
}

TEST_F(BatchAuditTest, WithoutRoomForBatchesFasterIsAmbiguous) {
  world.slots = 1;
  const Verdict v = submit("fast");
  EXPECT_EQ(v.reason(), Reason::ambiguous) << v.detail();
  EXPECT_NE(v.measurement()->conditions.at("audit").find("the card is full"), std::string::npos);
}

TEST_F(BatchAuditTest, ThrottlingAndForeignWorkAreSaid) {
  look.state.throttle = "power cap";
  look.foreign = 2;
  const Verdict v = submit("fast");
  EXPECT_TRUE(noted(v, "throttled during timing: power cap"));
  EXPECT_TRUE(noted(v, "2 process(es) of others"));
  look = {};
  const Verdict dark = submit("fast");
  EXPECT_NE(dark.measurement()->conditions.at("power").find("unknown"), std::string::npos);
  EXPECT_NE(dark.measurement()->conditions.at("foreign_processes").find("unknown"), std::string::npos);
}

TEST(BatchCalls, FollowFromTheTimeOfACall) {
  EXPECT_EQ(batch_calls(35e-6), 64);
  EXPECT_EQ(batch_calls(700e-6), 9);
  EXPECT_EQ(batch_calls(10e-3), 4);
  EXPECT_EQ(batch_calls(2), 2) << "which is fewer than a batch takes: no audit rather than a time out";
}

}  // namespace
}  // namespace forge
