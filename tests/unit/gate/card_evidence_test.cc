// SPDX-License-Identifier: Apache-2.0
#include "gate/card_evidence.h"

#include <gtest/gtest.h>

#include "gate/real_gate.h"

namespace forge {
namespace {

const Names h200{{"sm_count", 132}, {"registers_per_sm", 65536}, {"shared_bytes_per_sm", 233472}};

TEST(Occupancy, IsWhatTheScarcestResourceAllows) {
  const auto of = [](int registers, std::int64_t shared, int block) {
    const Occupancy o = occupancy_of({.entry = "k", .registers = registers, .static_shared = shared}, block, 0, h200);
    return std::tuple(o.blocks, o.warps, o.limit);
  };
  EXPECT_EQ(of(32, 0, 256), std::tuple(8, 64, "threads"));
  EXPECT_EQ(of(32, 0, 32), std::tuple(32, 32, "blocks"));
  EXPECT_EQ(of(168, 0, 384), std::tuple(1, 12, "registers"));
  EXPECT_EQ(of(128, 0, 128), std::tuple(4, 16, "registers"));
  EXPECT_EQ(of(32, 100000, 256), std::tuple(2, 16, "shared memory"));
  EXPECT_EQ(of(32, 232448, 128), std::tuple(1, 4, "shared memory"));
  EXPECT_EQ(of(32, 232449, 128), std::tuple(0, 0, "shared memory"));
}

TEST(CardEvidence, ResourcesOfEveryLaunch) {
  Image image;
  image.resources = {{.entry = "main", .registers = 168, .static_shared = 0, .frame = 16, .max_threads = 384, .cluster = 2}};
  ConcretePlan plan;
  plan.launches = {{.entry = "main", .grid = 132, .scratch_bytes = 200000, .block = 384, .cluster = 2},
                   {.entry = "tail", .grid = 1, .block = 32}};
  Machine machine;
  machine.properties = h200;
  Evidence e;
  add_resource_metrics(e, image, plan, machine);
  EXPECT_EQ(e.metrics.at("registers"), 168);
  EXPECT_EQ(e.metrics.at("local_bytes"), 16);
  EXPECT_EQ(e.metrics.at("shared_bytes"), 200000);
  EXPECT_NEAR(e.metrics.at("occupancy_percent"), 100.0 * 12 / 64, 1e-9);
  ASSERT_EQ(e.notes.size(), 2u);
  EXPECT_NE(e.notes[0].find("clusters of 2"), std::string::npos);
  EXPECT_NE(e.notes[1].find("tail"), std::string::npos) << "an absence is named";
}

TEST(CardEvidence, SassIsCountedByOpcode) {
  InstructionMix mix;
  mix.mnemonics = {{"hgmma.64x256x16.f32", 8}, {"ldg.e.128", 3}, {"ldgsts.e.bypass", 2}, {"ldl", 1}, {"stl.64", 1},
                   {"utmaldg.2d", 4},          {"lds", 5}};
  mix.hot = {{"hgmma.64x256x16.f32", 8}};
  Evidence e;
  add_sass_metrics(e, mix);
  EXPECT_EQ(e.metrics.at("matrix_instructions"), 8);
  EXPECT_EQ(e.metrics.at("global_loads"), 3);
  EXPECT_EQ(e.metrics.at("async_copies"), 2);
  EXPECT_EQ(e.metrics.at("spills"), 2);
  EXPECT_EQ(e.metrics.at("tma_loads"), 4);
}

TEST(CardEvidence, MatrixUnitsAreTheCeilingOfNarrowAndDenseOperators) {
  OperatorFolder op;
  op.definition.axes = {Axis{"M", false, 0}};
  op.definition.inputs = {TensorSpec{"a", DType::f16, false, {"M"}}};
  op.definition.outputs = {TensorSpec{"c", DType::f16, false, {"M"}}};
  op.task.timed.axes = {{"M", 1000}};
  op.task.bytes = *parse_expr("4 * M");
  Machine machine;
  machine.target.family = "cuda";
  machine.properties = h200;
  machine.ceilings = {.gflops = 50000, .read_gbs = 4400, .copy_gbs = 4000, .matrix_gflops = 800000};
  const auto ceiling = [&](const char* flops) {
    op.task.flops = *parse_expr(flops);
    Evidence e;
    add_cost_metrics(e, op, machine, 0);
    return e.metrics.at("ceiling_gflops");
  };
  EXPECT_EQ(ceiling("4 * M"), 50000) << "bound by memory";
  EXPECT_EQ(ceiling("4000 * M"), 800000);
  op.definition.inputs[0].dtype = DType::f32;
  EXPECT_EQ(ceiling("4000 * M"), 50000);
}

}  // namespace
}  // namespace forge
