// SPDX-License-Identifier: Apache-2.0
// The main flow on fakes: how runs, branches and milestones end.
#include <gtest/gtest.h>

#include "flow_world.h"
#include "util/progress.h"
#include "vault/vault.h"

namespace forge {
namespace {

const PerformanceCondition kNoSlower{Against::branch_best, -0.008};

struct Trial {
  World world;
  Result<RunResult> result = fail(Code::internal, "not run");
  std::vector<Event> events;

  const RunResult& go(ScriptedArchitect& architect, ScriptedCoder& coder) {
    auto journal = Journal::open({}, Journal::Mode::memory);
    EXPECT_TRUE(journal);
    result = world.go(architect, coder, *journal);
    EXPECT_TRUE(result) << (result ? "" : result.error().text());
    events = journal->events();
    return *result;
  }
  std::vector<std::string> types() const {
    std::vector<std::string> out;
    for (const auto& e : events) out.push_back(e.type);
    return out;
  }
};

Plan two_steps() {
  return plan_of({milestone(0, {decision("D0.1", "tile", "8")}), milestone(1, {decision("D1.1", "store", "plain")}, kNoSlower)});
}

TEST(Run, BuildsThePlanToItsEndAndSealsTheBest) {
  Trial r;
  r.world.ms = {{"a", 0.9}, {"b", 0.8}};
  ScriptedArchitect architect({two_steps()});
  ScriptedCoder coder({hands_in("a"), hands_in("b")});
  const RunResult& result = r.go(architect, coder);
  EXPECT_EQ(result.stop, Stop::exhausted);
  EXPECT_TRUE(result.sealed);
  EXPECT_TRUE(result.promoted);
  ASSERT_TRUE(result.generation);
  EXPECT_EQ(result.generation->package.source, "b");
  EXPECT_EQ(result.generation->number, 0);
  EXPECT_EQ(result.generation->parent, "expert:fake");
  ASSERT_TRUE(result.generation->against_expert);
  EXPECT_NEAR(result.generation->against_expert->speedup.mid, 1.25, 1e-9);
  EXPECT_EQ(result.spent.candidates, 2);
  EXPECT_EQ(r.types().front(), "run.start");
  EXPECT_EQ(r.types().back(), "run.end");
  EXPECT_EQ(coder.milestones, (std::vector<std::string>{"M0", "M1"}));
}

TEST(Run, TheRivalOfAConditionIsInTheSubmission) {
  Trial r;
  r.world.ms = {{"a", 0.9}, {"b", 0.8}};
  ScriptedArchitect architect({two_steps()});
  ScriptedCoder coder({hands_in("a"), hands_in("b")});
  r.go(architect, coder);
  ASSERT_EQ(r.world.gate.submissions.size(), 2u);
  EXPECT_FALSE(r.world.gate.submissions[0].branch_best);
  ASSERT_TRUE(r.world.gate.submissions[1].branch_best);
  EXPECT_EQ(r.world.gate.submissions[1].branch_best->source, "a");
  EXPECT_EQ(r.world.gate.submissions[1].milestone, "M1");
}

TEST(Run, StopsAtTheGoal) {
  Trial r;
  r.world.task.goal = 1.1;
  r.world.ms = {{"a", 0.85}};
  ScriptedArchitect architect({two_steps()});
  ScriptedCoder coder({hands_in("a")});
  const RunResult& result = r.go(architect, coder);
  EXPECT_EQ(result.stop, Stop::goal);
  EXPECT_EQ(result.branches.at(0).stop, Stop::goal);
  EXPECT_EQ(coder.milestones, std::vector<std::string>{"M0"});  // M1 is not built any more
  EXPECT_TRUE(architect.asked_to_revise.empty());
}

TEST(Run, StopsWhenTheCandidatesAreSpent) {
  Trial r;
  r.world.task.budget.candidates = 3;
  r.world.refused = {{"x", Reason::wrong_result}};
  r.world.ms = {{"a", 0.9}};
  ScriptedArchitect architect({two_steps(), two_steps()});
  ScriptedCoder coder({hands_in("a"), hands_in("x"), hands_in("x"), hands_in("x")});
  const RunResult& result = r.go(architect, coder);
  EXPECT_EQ(result.stop, Stop::budget);
  EXPECT_EQ(result.spent.candidates, 3);
  EXPECT_EQ(result.branches.at(0).milestones.at(1).end, MilestoneEnd::budget);
  EXPECT_TRUE(result.sealed);  // what was accepted is not lost
}

TEST(Run, BlockedWhenTheCoderGivesUp) {
  Trial r;
  r.world.ms = {{"a", 0.9}};
  ScriptedArchitect architect({two_steps()});
  ScriptedCoder coder({hands_in("a"), gives_up("too hard")});
  const RunResult& result = r.go(architect, coder);
  ASSERT_EQ(result.branches.size(), 1u);
  EXPECT_EQ(result.branches[0].stop, Stop::blocked);
  EXPECT_EQ(result.branches[0].milestones.at(1).why, "too hard");
  ASSERT_EQ(architect.asked_to_revise.size(), 1u);
  EXPECT_EQ(result.stop, Stop::exhausted);  // the architect had nothing left
}

TEST(Run, WithoutRevisionTheBranchsReasonStands) {
  Trial r;
  r.world.task.revise = false;
  r.world.ms = {{"a", 0.9}};
  ScriptedArchitect architect({two_steps(), two_steps()});
  ScriptedCoder coder({hands_in("a"), gives_up("too hard")});
  EXPECT_EQ(r.go(architect, coder).stop, Stop::blocked);
  EXPECT_TRUE(architect.asked_to_revise.empty());
}

TEST(Run, PlateauAfterFiveCorrectHandInsWithoutAGain) {
  Trial r;
  r.world.ms = {{"a", 0.9}, {"slow", 1.5}};
  ScriptedArchitect architect({two_steps()});
  ScriptedCoder coder(
      {hands_in("a"), hands_in("slow"), hands_in("slow"), hands_in("slow"), hands_in("slow"), hands_in("slow"), hands_in("a")});
  const RunResult& result = r.go(architect, coder);
  EXPECT_EQ(result.branches.at(0).stop, Stop::plateau);
  EXPECT_EQ(result.spent.candidates, 6);
}

TEST(Run, IncorrectHandInsAreNoPlateauButEndAfterTen) {
  Trial r;
  r.world.refused = {{"x", Reason::wrong_result}};
  ScriptedArchitect architect({two_steps()});
  std::deque<ScriptedAction> actions(12, hands_in("x"));
  ScriptedCoder coder(actions);
  const RunResult& result = r.go(architect, coder);
  EXPECT_EQ(result.branches.at(0).milestones.at(0).end, MilestoneEnd::attempts);
  EXPECT_EQ(result.spent.candidates, 10);
  EXPECT_FALSE(result.sealed);
  EXPECT_FALSE(result.confirmation);
}

TEST(Run, ABranchThatIsNoBetterIsRevertedWithItsFailureCondition) {
  Trial r;
  r.world.ms = {{"a", 0.9}, {"b", 0.8}, {"c", 0.95}};
  const Plan revised = plan_of({milestone(0, {decision("D0.1", "tile", "16")})}, 1, 0);
  ScriptedArchitect architect({two_steps(), revised});
  ScriptedCoder coder(
      {hands_in("a", {{"tile", "8"}}), hands_in("b", {{"tile", "8"}, {"store", "plain"}}), hands_in("c", {{"tile", "16"}})});
  const RunResult& result = r.go(architect, coder);
  ASSERT_EQ(result.branches.size(), 2u);
  EXPECT_FALSE(result.branches[0].reverted);
  EXPECT_TRUE(result.branches[1].reverted);
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_EQ(result.failures[0].decision, "tile");
  EXPECT_EQ(result.failures[0].value, "16");
  EXPECT_EQ(result.generation->package.source, "b");
  ASSERT_EQ(architect.asked_to_revise.size(), 2u);
  EXPECT_EQ(architect.asked_to_revise[1].failures.size(), 1u);
  EXPECT_EQ(architect.asked_to_revise[1].best_branch, 0);
}

TEST(Run, ARevisionThatPaysBecomesTheBest) {
  Trial r;
  r.world.ms = {{"a", 0.9}, {"b", 0.8}, {"c", 0.7}};
  const Plan revised = plan_of({two_steps().milestones[0], milestone(1, {decision("D1.1", "store", "streaming")}, kNoSlower)}, 1, 1);
  ScriptedArchitect architect({two_steps(), revised});
  ScriptedCoder coder({hands_in("a", {{"tile", "8"}}), hands_in("b", {{"tile", "8"}, {"store", "plain"}}),
                       hands_in("c", {{"tile", "8"}, {"store", "streaming"}})});
  const RunResult& result = r.go(architect, coder);
  ASSERT_EQ(result.branches.size(), 2u);
  EXPECT_FALSE(result.branches[1].reverted);
  EXPECT_EQ(result.generation->package.source, "c");
  // M0 was kept: it is not built again, and its package is the rival of the new M1.
  EXPECT_EQ(coder.milestones, (std::vector<std::string>{"M0", "M1", "M1"}));
  EXPECT_EQ(r.world.gate.submissions.at(2).branch_best->source, "a");
  EXPECT_EQ(result.branches[1].milestones.at(0).why, "kept from an earlier revision");
  EXPECT_EQ(r.world.gate.calls["time"], 0);  // the hand-in's job had both in it
}

// What the real gate hands back when the condition does not name the global best: the reference is the only other side.
Verdict accepted_at(double speedup) {
  Measurement m;
  m.seconds = 1e-3 / speedup;
  PairedTiming p{.against = "reference", .comparison = speedup > 1.01 ? Comparison::faster : Comparison::same};
  p.speedup = {speedup, speedup, speedup};
  m.pairs.push_back(p);
  return Verdict::passed(CorrectnessReport{.checks = 1}, m);
}

TEST(Run, ABranchIsCalledBetterOnlyByAJobWithBothSidesInIt) {
  for (const auto& [really, said] : {std::pair{true, 1.4}, {false, 1.4}, {true, 1.1}}) {
    Trial r;
    r.world.ms = {{"a", 0.8}, {"b", really ? 0.7 : 0.8}};
    r.world.gate.scripted = {accepted_at(1.25), accepted_at(said)};  // two jobs: their figures against the reference are not compared
    const auto structure = [](const char* tile) { return std::vector<Milestone>{milestone(0, {decision("D0.1", "tile", tile)})}; };
    ScriptedArchitect architect({plan_of(structure("8")), plan_of(structure("16"), 1, 0)});
    ScriptedCoder coder({hands_in("a", {{"tile", "8"}}), hands_in("b", {{"tile", "16"}})});
    const RunResult& result = r.go(architect, coder);
    EXPECT_EQ(r.world.gate.calls["time"], 1);
    EXPECT_EQ(result.branches.at(1).reverted, !really);
    EXPECT_EQ(result.generation->package.source, really ? "b" : "a");
  }
}

TEST(Run, TheVeryPackageOfTheBranchIsNotMeasuredAgain) {
  Trial r;
  r.world.ms = {{"a", 0.9}};
  ScriptedArchitect architect({two_steps()});
  ScriptedCoder coder({hands_in("a"), hands_in("a")});
  const RunResult& result = r.go(architect, coder);
  EXPECT_EQ(result.branches.at(0).milestones.size(), 2u);
  EXPECT_EQ(result.branches.at(0).stop, Stop::exhausted);
  EXPECT_EQ(r.world.gate.calls["submit"], 1);
  const auto types = r.types();
  EXPECT_EQ(std::count(types.begin(), types.end(), "gate.reuse"), 1);
}

TEST(Run, Gen0IsSealedAlthoughSlowerThanItsExpertLaterOnesNot) {
  Trial r;
  r.world.ms = {{"a", 1.2}};
  ScriptedArchitect architect({plan_of({milestone(0, {decision("D0.1", "tile", "8")})})});
  ScriptedCoder coder({hands_in("a")});
  const RunResult& result = r.go(architect, coder);
  EXPECT_TRUE(result.sealed);
  EXPECT_EQ(result.confirmation->measurement()->pairs.at(0).comparison, Comparison::slower);

  World later;
  later.ms = r.world.ms;
  later.gate.reference.id = "gen0:abc";
  ScriptedArchitect architect2({plan_of({milestone(0, {decision("D0.1", "tile", "8")})})});
  ScriptedCoder coder2({hands_in("a")});
  auto journal = Journal::open({}, Journal::Mode::memory);
  const auto second = later.go(architect2, coder2, *journal, {.number = 1, .parent = "abc", .decisions = {}, .avoided = {}});
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->sealed);
  EXPECT_TRUE(second->confirmation->correct());
}

// Which of two gen0 is promoted is settled in one job of the two, whatever each was measured against and on which day.
TEST(Run, OnlyAFasterGen0TakesThePlaceOfAnother) {
  const auto folder = TempDir::make();
  ASSERT_TRUE(folder);
  std::string promoted;
  for (const std::string package : {"a", "b", "c"}) {
    Trial r;
    r.world.home = folder->path();
    r.world.gate.reference.id = "expert:fake";
    r.world.gate.reference.description = "the best of 4 ways, 1." + package;
    r.world.ms = {{"a", 0.5}, {"b", 1.2}, {"c", 0.3}};
    ScriptedArchitect architect({plan_of({milestone(0, {decision("D0.1", "tile", "8")})})});
    ScriptedCoder coder({hands_in(package)});
    const RunResult& result = r.go(architect, coder);
    EXPECT_TRUE(result.sealed);
    EXPECT_EQ(result.promoted, package != "b") << package;
    EXPECT_EQ(r.world.gate.calls["against"], package == "a" ? 0 : 1);
    if (result.promoted) promoted = result.generation->id;
  }
  const auto vault = Vault::open(folder->path());
  ASSERT_TRUE(vault);
  const auto all = vault->all();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->kernels.size(), 3u);
  const auto of_these = vault->promoted(all->kernels.front().operator_name, all->kernels.front().target);
  ASSERT_TRUE(of_these && *of_these);
  EXPECT_EQ((*of_these)->id, promoted);
}

// A record is never replaced, and what a run says it sealed is what the vault holds.
TEST(Run, AKernelThatIsSealedAlreadyKeepsItsRecord) {
  const auto folder = TempDir::make();
  ASSERT_TRUE(folder);
  std::vector<double> told;
  for (const double ms : {0.5, 0.4}) {
    Trial r;
    r.world.home = folder->path();
    r.world.ms = {{"a", ms}};
    ScriptedArchitect architect({plan_of({milestone(0, {decision("D0.1", "tile", "8")})})});
    ScriptedCoder coder({hands_in("a")});
    const RunResult& result = r.go(architect, coder);
    ASSERT_TRUE(result.generation);
    told.push_back(result.generation->verdict.measurement()->seconds);
  }
  EXPECT_EQ(told[0], told[1]);
  const auto vault = Vault::open(folder->path());
  ASSERT_TRUE(vault);
  EXPECT_EQ(vault->all()->kernels.at(0).verdict.measurement()->seconds, told[0]);
}

// The fake gate remembers nothing, as the gate of a resumed run does.
TEST(Run, AGainThatDoesNotRepeatIsNotSealed) {
  Trial r;
  r.world.gate.seconds = [&r](const KernelPackage&) { return r.world.gate.calls["confirm"] > 0 ? 1.1e-3 : 0.5e-3; };
  ScriptedArchitect architect({plan_of({milestone(0, {decision("D0.1", "tile", "8")})})});
  ScriptedCoder coder({hands_in("a")});
  const RunResult& result = r.go(architect, coder);
  EXPECT_FALSE(result.sealed);
  EXPECT_EQ(result.confirmation->measurement()->pairs.at(0).comparison, Comparison::slower);
}

TEST(Run, ALaterGenerationIsTimedAgainstTheExpertDirectly) {
  World world;
  world.ms = {{"a", 0.8}};
  world.gate.reference.id = "gen0:abc";
  world.gate.expert_seconds = 1.6e-3;
  ScriptedArchitect architect({plan_of({milestone(0, {decision("D0.1", "tile", "8")})})});
  ScriptedCoder coder({hands_in("a")});
  auto journal = Journal::open({}, Journal::Mode::memory);
  const auto result = world.go(architect, coder, *journal,
                               {.number = 1, .parent = "abc", .decisions = {{"tile", "4"}}, .avoided = {{"tile", "32", "slow"}}});
  ASSERT_TRUE(result && result->generation);
  EXPECT_EQ(result->generation->number, 1);
  EXPECT_EQ(result->generation->parent, "abc");
  ASSERT_TRUE(result->generation->against_expert);
  EXPECT_NEAR(result->generation->against_expert->speedup.mid, 2.0, 1e-9);
  EXPECT_EQ(architect.asked.at(0).earlier_decisions.size(), 1u);
  EXPECT_EQ(architect.asked.at(0).avoided.size(), 1u);
}

TEST(Run, WithoutAReferenceTheFirstAcceptedKernelIsTheMeasure) {
  Trial r;
  r.world.gate.reference.present = false;
  r.world.ms = {{"a", 0.9}, {"b", 0.45}};
  ScriptedArchitect architect({two_steps()});
  ScriptedCoder coder({hands_in("a"), hands_in("b")});
  const RunResult& result = r.go(architect, coder);
  EXPECT_NEAR(result.branches.at(0).best_speedup, 2.0, 1e-9);
  EXPECT_TRUE(result.sealed);
  EXPECT_EQ(result.generation->parent, "none");
}

TEST(Run, ABadPlanIsAnErrorThatNamesTheField) {
  World world;
  Plan bad = two_steps();
  bad.milestones[1].decisions[0].evidence.clear();
  ScriptedArchitect architect({bad});
  ScriptedCoder coder({});
  auto journal = Journal::open({}, Journal::Mode::memory);
  const auto result = world.go(architect, coder, *journal);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().field.find("evidence"), std::string::npos);
}

TEST(Run, AgentsNeverSeeHiddenShapes) {
  Trial r;
  r.world.op.task.hidden = {{.axis = "M", .min = 1, .max = 9, .count = 1, .always = {}}};
  ScriptedArchitect architect({two_steps()});
  ScriptedCoder coder({hands_in("a")});
  r.go(architect, coder);
  EXPECT_TRUE(architect.asked.at(0).task_file.hidden.empty());
}

}  // namespace
}  // namespace forge
