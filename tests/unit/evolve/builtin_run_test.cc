// SPDX-License-Identifier: Apache-2.0
// The built-in agents over the fake gate, through the whole flow.
#include <gtest/gtest.h>

#include <fstream>

#include "../agents/toy_blueprint.h"
#include "agents/builtin.h"
#include "evolve/start.h"
#include "flow_world.h"
#include "util/fs.h"

namespace forge {
namespace {

struct ToyWorld : World {
  ToyWorld() {
    gate.seconds = [](const KernelPackage& p) { return toy_ms(p.source) * 1e-3; };
    gate.evidence.metrics = {{"seconds", 1e-3}, {"memory_percent", 60}, {"compute_percent", 10}};
  }
  Result<RunResult> run_all(Journal& journal, Heritage heritage = {}) {
    auto architect = make_builtin_architect(toy_blueprint());
    auto coder = make_builtin_coder(toy_blueprint());
    return go(*architect, *coder, journal, std::move(heritage));
  }
};

Result<RunResult> forge_in_memory(ToyWorld& world, Heritage heritage = {}) {
  auto journal = Journal::open({}, Journal::Mode::memory);
  return world.run_all(*journal, std::move(heritage));
}

TEST(BuiltinRun, FindsTheBestKernelAndSaysWhenNothingIsLeft) {
  ToyWorld world;
  const auto result = forge_in_memory(world);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->stop, Stop::exhausted);
  ASSERT_TRUE(result->generation);
  EXPECT_EQ(result->generation->package.source, "tile=8 pass=one store=nontemporal unroll=2");
  EXPECT_LE(result->spent.candidates, 8);
}

// The ablation takes away everything that is read off the code, not the listing alone.
TEST(BuiltinRun, WithoutDisassemblyNothingReadOffTheCodeReachesAPlan) {
  for (const bool disassembly : {true, false}) {
    ToyWorld world;
    world.task.disassembly = disassembly;
    world.gate.evidence.metrics["spills"] = 2;
    world.gate.evidence.metrics["hot_loads"] = 7;
    auto journal = Journal::open({}, Journal::Mode::memory);
    ASSERT_TRUE(world.run_all(*journal));
    std::string plans;
    for (const Event& e : journal->events())
      if (e.type == "plan") plans += e.request;
    EXPECT_FALSE(plans.empty());
    EXPECT_EQ(plans.find("spills") != std::string::npos, disassembly) << plans.substr(0, 600);
  }
}

TEST(BuiltinRun, RevisionPays) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    ToyWorld with, without;
    with.task.seed = without.task.seed = seed;
    without.task.revise = false;
    const auto a = forge_in_memory(with), b = forge_in_memory(without);
    ASSERT_TRUE(a && b && a->generation && b->generation);
    EXPECT_GT(a->confirmation->measurement()->pairs.at(0).speedup.mid, 1.2 * b->confirmation->measurement()->pairs.at(0).speedup.mid);
  }
}

TEST(BuiltinRun, HarvestsByAblation) {
  ToyWorld world;
  auto journal = Journal::open({}, Journal::Mode::memory);
  ASSERT_TRUE(world.run_all(*journal));
  bool proposed = false;
  for (const Event& e : journal->events())
    if (e.type == "knowledge.propose") {
      proposed = true;
      EXPECT_NE(e.request.find("\"store\""), std::string::npos) << e.request;
    }
  EXPECT_TRUE(proposed);
}

TEST(BuiltinRun, ALaterGenerationDoesNotRepeatButSeesThatNothingIsLeft) {
  ToyWorld first;
  const auto gen0 = forge_in_memory(first);
  ASSERT_TRUE(gen0 && gen0->generation);
  ToyWorld second;
  second.gate.reference.id = "gen0:" + gen0->generation->id.substr(0, 12);
  second.gate.reference.seconds = toy_ms(gen0->generation->package.source) * 1e-3;
  const auto gen1 = forge_in_memory(
      second, {.number = 1, .parent = gen0->generation->id, .decisions = gen0->generation->decisions, .avoided = gen0->failures});
  ASSERT_TRUE(gen1) << gen1.error().text();
  EXPECT_FALSE(gen1->sealed);  // the gain is within the floor
  EXPECT_LT(gen1->spent.candidates, gen0->spent.candidates);
}

TEST(BuiltinRun, AnImprovableReferenceIsImproved) {
  ToyWorld world;
  const KernelPackage reference{
      .source_name = "kernel.cpp", .source = "tile=4 pass=one store=nontemporal unroll=1", .plan_text = "format = 1", .origin = {}};
  world.gate.reference.id = "gen0:abc";
  world.gate.reference.seconds = toy_ms(reference.source) * 1e-3;
  const auto gen1 = forge_in_memory(world, {.number = 1,
                                            .parent = "abc",
                                            .decisions = {{"tile", "4"}, {"pass", "one"}, {"store", "nontemporal"}, {"unroll", "1"}},
                                            .avoided = {}});
  ASSERT_TRUE(gen1 && gen1->generation) << (gen1 ? "not sealed" : gen1.error().text());
  EXPECT_EQ(gen1->generation->package.source, "tile=8 pass=one store=nontemporal unroll=2");
  EXPECT_EQ(gen1->generation->number, 1);
}

TEST(BuiltinRun, ASmallBudgetStillEndsWithASealedKernel) {
  ToyWorld world;
  world.task.budget.candidates = 1;
  const auto result = forge_in_memory(world);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->stop, Stop::budget);
  EXPECT_TRUE(result->sealed);
}

// The agents are part of what a resume repeats: their state comes back with the record.
TEST(BuiltinRun, ResumesAndReplaysFromEveryStep) {
  auto dir = TempDir::make("forge-builtin");
  ASSERT_TRUE(dir);
  const fs::path file = dir->path() / "whole.jsonl";
  std::string best;
  {
    ToyWorld world;
    auto journal = Journal::open(file, Journal::Mode::create);
    const auto result = world.run_all(*journal);
    ASSERT_TRUE(result && result->generation);
    best = result->generation->id;
  }
  std::vector<std::string> all;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  for (std::size_t kept = 0; kept < all.size(); ++kept) {
    const fs::path cut = dir->path() / "cut.jsonl";
    {
      std::ofstream out(cut);
      for (std::size_t i = 0; i < kept; ++i) out << all[i] << "\n";
    }
    ToyWorld world;
    auto journal = Journal::open(cut, Journal::Mode::resume);
    const auto result = world.run_all(*journal);
    ASSERT_TRUE(result) << kept << ": " << result.error().text();
    ASSERT_TRUE(result->generation);
    EXPECT_EQ(result->generation->id, best);
    EXPECT_EQ(journal->events().size(), all.size()) << kept;
  }
  ToyWorld world;
  auto journal = Journal::open(file, Journal::Mode::replay);
  const auto result = world.run_all(*journal);
  const auto replay = conclude_replay(*journal, result);
  ASSERT_TRUE(replay);
  EXPECT_TRUE(replay->same) << replay->difference;
  EXPECT_EQ(world.asked(), 0);
}

}  // namespace
}  // namespace forge
