// SPDX-License-Identifier: Apache-2.0
// The judge against kernels that run inside the test: right ones, and one for every way to be wrong.
#include "gate/judge.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>

#include "toy_operator.h"
#include "util/random.h"

namespace forge {
namespace {

std::unique_ptr<Stage> toy_stage(Judge& judge, std::int64_t rows, const std::string& generator = "normal", int bases = 2,
                                 bool fresh = false) {
  auto stage = judge.stage({{"rows", rows}}, generator, bases, fresh);
  EXPECT_TRUE(stage) << stage.error().text();
  return std::move(*stage);
}

TEST(Judge, AcceptsARightKernelOnEveryGeneratorAndShape) {
  auto judge = toy_judge();
  for (const Workload& workload : judge->correctness_workloads()) {
    auto stage = judge->stage(workload.axes, workload.generator, 2, false);
    ASSERT_TRUE(stage) << stage.error().text();
    const ToyCall call((*stage)->call_for_expert());
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE((*stage)->refresh());
      call.run();
      const CheckResult result = (*stage)->check();
      EXPECT_EQ(result.reason, Reason::accepted) << result.detail;
      EXPECT_EQ(result.elements, call.rows * (call.columns + 1));
      EXPECT_LE(result.worst, 1);
    }
  }
}

TEST(Judge, WorkloadsCoverGeneratorsCornersDrawsAndTheTimedShape) {
  auto judge = toy_judge();
  std::set<std::string> generators;
  std::set<std::int64_t> corners, hidden;
  int timed = 0, adversarial = 0;
  const auto workloads = judge->correctness_workloads();
  for (const Workload& w : workloads) {
    generators.insert(w.generator);
    if (w.name == "corner") corners.insert(w.axes.at("rows"));
    if (w.name == "hidden") hidden.insert(w.axes.at("rows"));
    timed += w.axes.at("rows") == 300;
    adversarial += w.generator == "adversarial";
  }
  EXPECT_EQ(generators, (std::set<std::string>{"normal", "heavy_tailed", "large_magnitude", "small_integers", "adversarial"}));
  EXPECT_EQ(corners, (std::set<std::int64_t>{1, 17}));
  EXPECT_GE(hidden.size(), 1u);
  for (const auto rows : hidden) EXPECT_TRUE(rows >= 2 && rows <= 40);
  EXPECT_EQ(timed, 2);
  EXPECT_EQ(adversarial, 2);
  EXPECT_LE(workloads.size(), 14u);
}

TEST(Judge, ContentIsNewOnEveryCall) {
  auto judge = toy_judge();
  for (const std::int64_t rows : {1, 2, 300}) {
    auto stage = toy_stage(*judge, rows);
    const CallSpec call = stage->call_for_expert();
    std::set<std::string> seen;
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(stage->refresh());
      const SharedBuffer& x = *call.inputs[0].buffer;
      EXPECT_TRUE(seen.emplace(reinterpret_cast<const char*>(x.data()), x.bytes()).second) << "content repeated at refresh " << i;
    }
  }
}

const std::string k_normal = R"(generator = [{ name = "normal", kind = "normal", offset = { alpha = 2.0 } },
  { name = "adversarial", kind = "adversarial" }]
)";

// What adversarial() writes into a scalar reaches the kernel, the oracle and the workload's label alike.
TEST(Judge, AScalarThatAdversarialWritesReachesTheKernel) {
  const ScaledToy toy(k_normal, "*alpha = variant == 0 ? 3 : -7;");
  const auto op = load_operator(toy.paths, "scaled");
  ASSERT_TRUE(op) << op.error().text();
  const auto judge = Judge::make(*op, {.cores = {0}});
  ASSERT_TRUE(judge) << judge.error().text();
  const std::vector<std::string> labels{"rows=5, adversarial, variant 0, alpha=3", "rows=5, adversarial, variant 1, alpha=-7"};
  for (const std::string& label : labels) {
    const auto stage = (*judge)->stage({{"rows", 5}}, "adversarial", 2, false);
    ASSERT_TRUE(stage) << stage.error().text();
    EXPECT_EQ((*stage)->label(), label);
    const CallSpec call = (*stage)->call_for_expert();
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE((*stage)->refresh());
      const auto* x = reinterpret_cast<const float*>(call.inputs[0].buffer->data());
      auto* y = reinterpret_cast<float*>(call.outputs[0].buffer->data());
      for (int e = 0; e < 5 * 64; ++e) y[e] = static_cast<float>(call.scalars[0]) * x[e];
      const CheckResult result = (*stage)->check();
      EXPECT_EQ(result.reason, Reason::accepted) << result.detail;
    }
  }
}

TEST(Judge, AScalarThatDependsOnTheSeedIsRefused) {
  const ScaledToy toy(k_normal, "*alpha = static_cast<float>(seed % 1000003);");
  const auto op = load_operator(toy.paths, "scaled");
  ASSERT_TRUE(op) << op.error().text();
  const auto judge = Judge::make(*op, {.cores = {0}});
  ASSERT_TRUE(judge) << judge.error().text();
  const auto stage = (*judge)->stage({{"rows", 5}}, "adversarial", 2, false);
  ASSERT_FALSE(stage);
  EXPECT_NE(stage.error().text().find("a scalar another value for another seed"), std::string::npos) << stage.error().text();
}

// An element moved just outside its bound anywhere, or any one bit of the exact output, is always found and named.
TEST(Judge, FindsOneWrongElementAnywhere) {
  auto judge = toy_judge();
  auto stage = toy_stage(*judge, 300);
  const ToyCall call(stage->call_for_expert());
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(stage->refresh());
    call.run();
    const auto at = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(call.rows * (call.columns + 1))));
    if (at < call.rows * call.columns) {
      const float allowed = 1e-6f * (2 * std::fabs(call.x[at]) + std::fabs(call.b[at % call.columns]));
      call.y[at] += 2 * allowed;
    } else {
      call.top[at - call.rows * call.columns] ^= 1;
    }
    const CheckResult result = stage->check();
    ASSERT_EQ(result.reason, Reason::wrong_result) << at;
    const std::string place = at < call.rows * call.columns
                                  ? "y[" + std::to_string(at / call.columns) + ", " + std::to_string(at % call.columns) + "]"
                                  : "top[" + std::to_string(at - call.rows * call.columns) + "]";
    EXPECT_EQ(result.detail.find(place), 0u) << result.detail;
    EXPECT_NE(result.detail.find("rows=300, normal"), std::string::npos) << result.detail;
  }
}

TEST(Judge, NamesWhatIsWrong) {
  auto judge = toy_judge();
  auto stage = toy_stage(*judge, 300);
  const CallSpec spec = stage->call_for_expert();
  const ToyCall call(spec);
  const auto after = [&](const auto& act) {
    EXPECT_TRUE(stage->refresh());
    act();
    return stage->check();
  };
  EXPECT_EQ(after([] {}).reason, Reason::not_written);
  EXPECT_EQ(after([&] {
              call.run();
              call.y[5] = std::numeric_limits<float>::quiet_NaN();
            }).reason,
            Reason::non_finite);
  EXPECT_EQ(after([&] {
              call.run();
              call.y[5] = std::numeric_limits<float>::infinity();
            }).reason,
            Reason::non_finite);
  EXPECT_EQ(after([&] {
              call.run();
              std::memset(call.y, 0, 4);
            }).reason,
            Reason::wrong_result);
  EXPECT_EQ(after([&] {
              call.run();
              call.x[100] = 0;
            }).reason,
            Reason::inputs_changed);
  // One element left as it was: the count says so.
  const CheckResult left = after([&] {
    const float poison = call.y[77];
    std::uint32_t bits;
    std::memcpy(&bits, call.y + 77, 4);
    call.run();
    std::memcpy(call.y + 77, &bits, 4);
    EXPECT_TRUE(std::isnan(poison));
  });
  EXPECT_EQ(left.reason, Reason::not_written);
  EXPECT_NE(left.detail.find("1 elements hold the poison"), std::string::npos) << left.detail;
  // The slack on both sides of each buffer.
  for (const Binding& binding : {spec.inputs[1], spec.outputs[0], spec.outputs[1]}) {
    const auto before = binding.buffer->slack_before(), behind = binding.buffer->slack_after();
    if (!before.empty()) {
      EXPECT_EQ(after([&] {
                  call.run();
                  before.back() ^= std::byte{1};
                }).reason,
                Reason::out_of_bounds);
    }
    if (!behind.empty()) {
      EXPECT_EQ(after([&] {
                  call.run();
                  behind.front() ^= std::byte{1};
                }).reason,
                Reason::out_of_bounds);
    }
  }
  EXPECT_FALSE(spec.outputs[1].buffer->slack_after().empty());  // 600 bytes: the loop above tested something
  // And the stage recovers from each of these.
  EXPECT_EQ(after([&] { call.run(); }).reason, Reason::accepted);
}

TEST(Judge, RecognisesTheAnswerToAnEarlierCall) {
  auto judge = toy_judge();
  auto stage = toy_stage(*judge, 300);
  const ToyCall call(stage->call_for_expert());
  ASSERT_TRUE(stage->refresh());
  call.run();
  const std::vector<float> y(call.y, call.y + call.rows * call.columns);
  const std::vector<std::uint16_t> top(call.top, call.top + call.rows);
  for (int ago = 1; ago <= 3; ++ago) {
    ASSERT_TRUE(stage->refresh());
    std::copy(y.begin(), y.end(), call.y);
    std::copy(top.begin(), top.end(), call.top);
    const CheckResult result = stage->check();
    EXPECT_EQ(result.reason, Reason::stale_result) << result.detail;
  }
}

TEST(Judge, CheckWithoutContentIsNeverAccepted) {
  auto judge = toy_judge();
  auto stage = toy_stage(*judge, 3);
  EXPECT_NE(stage->check().reason, Reason::accepted);
}

TEST(Judge, PoisonIsANewNaNEverywhere) {
  auto judge = toy_judge();
  auto stage = toy_stage(*judge, 40);
  const ToyCall call(stage->call_for_expert());
  std::set<std::string> patterns;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(stage->refresh());
    for (std::int64_t e = 0; e < call.rows * call.columns; ++e) {
      ASSERT_TRUE(std::isnan(call.y[e]));
      std::uint32_t bits;
      std::memcpy(&bits, call.y + e, 4);
      ASSERT_NE(bits & 0x7fffffffu, 0x7fc00000u);
    }
    for (std::int64_t e = 0; e < call.rows; ++e) ASSERT_TRUE(std::isnan(decode(DType::bf16, call.top + e)));
    patterns.emplace(reinterpret_cast<const char*>(call.y), 64);
  }
  EXPECT_EQ(patterns.size(), 20u);
}

Image image_with_workspaces(const std::string& sha, const std::string& requires_line = "") {
  auto plan = parse_launch_plan("format = 1\ntarget = \"cpu:x86-64-avx2\"\n" + requires_line +
                                    "[[workspace]]\nname = \"w\"\nbytes = \"rows * 100\"\n"
                                    "[[workspace]]\nname = \"c\"\nbytes = 100\ninit = \"clean\"\n"
                                    "[[launch]]\nentry = \"f\"\ngrid = 1\n",
                                "launch.toml");
  EXPECT_TRUE(plan) << plan.error().text();
  return Image{.bytes = "", .sha256 = sha, .plan = *plan, .build = {}};
}

TEST(Judge, WorkspacesArePoisonedOrCleanAndWatched) {
  auto judge = toy_judge();
  auto stage = toy_stage(*judge, 17);
  const auto made = stage->call_for(image_with_workspaces("a"), 2);
  ASSERT_TRUE(made) << made.error().text();
  const ToyCall call(*made);
  ASSERT_EQ(made->workspaces.size(), 2u);
  const SharedBuffer &poisoned = *made->workspaces[0].buffer, &clean = *made->workspaces[1].buffer;
  EXPECT_EQ(poisoned.bytes(), 1700u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(poisoned.data()) % 1024, 0u);
  const auto run = [&](const auto& act) {
    EXPECT_TRUE(stage->refresh());
    call.run();
    act();
    return stage->check();
  };
  EXPECT_EQ(run([&] {
              for (int i = 0; i < 425; ++i) EXPECT_TRUE(std::isnan(reinterpret_cast<const float*>(poisoned.data())[i]));
              for (int i = 0; i < 100; ++i) EXPECT_EQ(clean.data()[i], std::byte{0});
              std::memset(poisoned.data(), 1, poisoned.bytes());
            }).reason,
            Reason::accepted);
  EXPECT_EQ(run([&] { clean.data()[99] = std::byte{1}; }).reason, Reason::dirty_workspace);
  EXPECT_EQ(run([&] { clean.slack_after()[0] ^= std::byte{1}; }).reason, Reason::out_of_bounds);
  EXPECT_EQ(run([] {}).reason, Reason::accepted);
  const auto again = stage->call_for(image_with_workspaces("a"), 2);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->workspaces[0].buffer, &poisoned);
  const auto other = stage->call_for(image_with_workspaces("b"), 2);
  ASSERT_TRUE(other);
  EXPECT_NE(other->workspaces[0].buffer, &poisoned);
  // A runner that is gone takes its workspaces with it, between a refresh and its check too.
  std::weak_ptr<const void> gone;
  ASSERT_TRUE(stage->refresh());
  {
    const auto brief = stage->call_for(image_with_workspaces("d"), 2);
    ASSERT_TRUE(brief);
    gone = brief->keep_alive;
    ASSERT_TRUE(stage->refresh());
  }
  EXPECT_TRUE(gone.expired());
  call.run();
  EXPECT_EQ(stage->check().reason, Reason::accepted);
  const auto refused = stage->call_for(image_with_workspaces("c", "requires = [\"rows % 2 == 0\"]\n"), 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
}

TEST(Judge, RefusesWhatItCannotJudge) {
  auto op = load_operator(toy_paths(), "toy_affine");
  ASSERT_TRUE(op);
  auto judge = toy_judge();
  EXPECT_FALSE(judge->stage({{"rows", 0}}, "normal", 1, false));
  EXPECT_FALSE(judge->stage({}, "normal", 1, false));
  EXPECT_FALSE(judge->stage({{"rows", 3}}, "no_such", 1, false));
  JudgeOptions small;
  small.memory_bytes = 10000;
  auto tight = Judge::make(*op, small);
  ASSERT_TRUE(tight);
  EXPECT_FALSE((*tight)->stage({{"rows", 300}}, "normal", 2, false));

  OperatorFolder broken = *op;
  broken.task.judges.pop_back();
  EXPECT_FALSE(Judge::make(broken, {}));
  broken = *op;
  broken.definition.inputs[0].dtype = DType::f8_e4m3;
  const auto unsupported = Judge::make(broken, {});
  ASSERT_FALSE(unsupported);
  EXPECT_EQ(unsupported.error().code, Code::unsupported);
  broken = *op;
  broken.definition.name = "other";
  EXPECT_FALSE(Judge::make(broken, {}));  // the plugin is for toy_affine
  broken = *op;
  broken.task.judges[0].tolerance = 1e300;  // a bound beyond float would accept anything
  auto loose = Judge::make(broken, {});
  ASSERT_TRUE(loose);
  EXPECT_FALSE((*loose)->stage({{"rows", 3}}, "normal", 1, false));
}

// Without symmetries the base itself is drawn anew for every call.
TEST(Judge, ContentIsNewWithoutSymmetriesToo) {
  auto op = load_operator(toy_paths(), "toy_affine");
  ASSERT_TRUE(op);
  op->task.symmetries.clear();
  auto judge = Judge::make(*op, {});
  ASSERT_TRUE(judge);
  auto stage = toy_stage(**judge, 5);
  const CallSpec spec = stage->call_for_expert();
  const ToyCall call(spec);
  std::set<std::string> seen;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(stage->refresh());
    EXPECT_TRUE(seen.emplace(reinterpret_cast<const char*>(call.x), spec.inputs[0].buffer->bytes()).second);
    call.run();
    EXPECT_EQ(stage->check().reason, Reason::accepted);
  }
}

}  // namespace
}  // namespace forge
