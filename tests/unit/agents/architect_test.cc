// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "agents/builtin.h"
#include "toy_blueprint.h"
#include "util/fs.h"

namespace forge {
namespace {

struct ToyLab final : Lab {
  int jobs = 0;
  int budget = 100;
  Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>& packages) override {
    ++jobs;
    std::vector<Diagnostic> out;
    for (const auto& p : packages)
      out.push_back({.label = p.origin,
                     .ran = true,
                     .problem = {},
                     .seconds = toy_ms(p.source),
                     .against_first = toy_ms(packages[0].source) / toy_ms(p.source),
                     .image_sha = {}});
    return out;
  }
  bool may_go_on() const override { return jobs < budget; }
};

PlanRequest toy_request() {
  PlanRequest r;
  r.task.operator_name = r.definition.name = "toy";
  r.task.target = r.machine.target.name = "cpu:x86-64-avx2";
  r.machine.target.vector_bits = 256;
  r.machine.device_class = "cpu:test";
  r.machine.properties = {{"vector_bits", 256}};
  r.evidence.subject = "expert fake";
  r.evidence.metrics = {{"memory_percent", 80}, {"compute_percent", 5}};
  r.floor.ratio = 0.004;
  return r;
}

Retrieved entry(const std::string& id, EntryState state, double effect, const std::string& decision, const std::string& value) {
  Retrieved r;
  r.entry.id = id;
  r.state = state;
  r.effect = effect;
  r.advice = {{.decision = decision, .value = value, .when = {}, .because = "it helps"}};
  return r;
}

std::map<std::string, Decision> by_name(const Plan& p) {
  std::map<std::string, Decision> out;
  for (const auto& m : p.milestones)
    for (const auto& d : m.decisions) out[d.name] = d;
  return out;
}

// The outcome of a plan that was built to its end, and is the best so far.
void accept(ReviseRequest& request, const Plan& plan, bool best) {
  request.plans.push_back(plan);
  BranchOutcome outcome{.revision = plan.revision};
  for (const auto& m : plan.milestones) outcome.milestones.push_back({m.id, MilestoneEnd::accepted, ""});
  outcome.reverted = !best;
  request.branches.push_back(outcome);
  if (!best) return;
  request.best_branch = static_cast<int>(request.plans.size()) - 1;
  request.best_decisions.clear();
  for (const auto& [name, d] : by_name(plan)) request.best_decisions.emplace_back(name, d.choice);
}

TEST(Architect, WithoutKnowledgeThePlainChoices) {
  auto architect = make_builtin_architect(toy_blueprint());
  const auto plan = architect->plan(toy_request());
  ASSERT_TRUE(plan);
  EXPECT_TRUE(check_plan(*plan)) << check_plan(*plan).error().text();
  for (const auto& [name, d] : by_name(*plan)) EXPECT_TRUE(d.cites.empty()) << name;
  EXPECT_EQ(by_name(*plan)["tile"].choice, "4");
  EXPECT_EQ(by_name(*plan)["store"].choice, "regular");
  // The plain store needs no milestone of its own; tuning does.
  ASSERT_EQ(plan->milestones.size(), 2u);
  EXPECT_FALSE(plan->milestones[0].acceptance.performance);
  ASSERT_TRUE(plan->milestones[1].acceptance.performance);
  EXPECT_LT(plan->milestones[1].acceptance.performance->min_gain, 0);
  EXPECT_EQ(plan->milestones[1].decisions[0].range.size(), 3u);
  // Every decision says what was seen and why the others were not chosen.
  for (const auto& [name, d] : by_name(*plan)) {
    EXPECT_TRUE(d.evidence[0].observed) << name;
    EXPECT_NE(d.evidence[0].text.find("80 %"), std::string::npos) << d.evidence[0].text;
  }
  EXPECT_EQ(by_name(*plan)["tile"].rejected.at(1).why, "not possible here: needs vector_bits == 512");
}

TEST(Architect, ACertifiedEntryDecidesAndIsCited) {
  auto architect = make_builtin_architect(toy_blueprint());
  auto request = toy_request();
  request.knowledge = {entry("one-pass", EntryState::certified, 1.05, "pass", "one"),
                       entry("streaming", EntryState::certified, 1.3, "store", "nontemporal"),
                       entry("small-tile", EntryState::proposed, 1, "tile", "8")};
  const auto plan = architect->plan(request);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(check_plan(*plan)) << check_plan(*plan).error().text();
  auto d = by_name(*plan);
  EXPECT_EQ(d["pass"].choice, "one");
  EXPECT_EQ(d["store"].choice, "nontemporal");  // the stronger one, although it fits only after the other one
  EXPECT_EQ(d["store"].cites, std::vector<std::string>{"streaming"});
  EXPECT_EQ(d["tile"].choice, "4");  // proposed only: no ground for a first plan
  ASSERT_EQ(plan->milestones.size(), 3u);
  ASSERT_EQ(plan->milestones[1].acceptance.mechanism.all.size(), 1u);
  EXPECT_EQ(plan->milestones[1].acceptance.mechanism.all[0].mnemonic, "vmovntps");
}

TEST(Architect, AdviceThatAConstraintForbidsIsRejectedWithTheReason) {
  auto architect = make_builtin_architect(toy_blueprint());
  auto request = toy_request();
  request.knowledge = {entry("streaming", EntryState::certified, 1.3, "store", "nontemporal")};
  const auto plan = architect->plan(request);
  ASSERT_TRUE(plan);
  auto d = by_name(*plan);
  EXPECT_EQ(d["store"].choice, "regular");
  ASSERT_EQ(d["store"].rejected.size(), 1u);
  EXPECT_NE(d["store"].rejected[0].why.find("second pass"), std::string::npos) << d["store"].rejected[0].why;
}

// Rules live in entries: retiring one in the folder changes the plan.
TEST(Architect, RetiringAnEntryChangesThePlan) {
  auto dir = TempDir::make("forge-architect");
  ASSERT_TRUE(dir);
  const fs::path folder = dir->path() / "knowledge";
  ASSERT_TRUE(make_dirs(folder / "cpu" / "wide-tile" / "evidence"));
  ASSERT_TRUE(write_file_atomic(folder / "cpu" / "wide-tile" / "entry.toml", R"(
format = 1
id = "wide-tile"
title = "A wide tile"
targets = ["cpu:*"]
mechanism = "more chains"
origin = "a test"
[probe]
operator = "toy"
[[advice]]
decision = "tile"
value = "8"
because = "it has more chains"
[[signature]]
mnemonic = "vfmadd*"
)"));
  Certification c{.device_class = "cpu:test",
                  .device = "fake",
                  .compiler = "none",
                  .date = "2026-01-01T00:00:00Z",
                  .commit = "0",
                  .applicable = true,
                  .comparison = Comparison::faster,
                  .effect = {1.1, 1.2, 1.3},
                  .floor = 0.01,
                  .outcome = EntryState::certified,
                  .note = ""};
  ASSERT_TRUE(write_file_atomic(folder / "cpu" / "wide-tile" / "evidence" / "cpu_test.json", certification_to_json(c)));
  const auto choice = [&]() -> std::string {
    auto base = KnowledgeBase::load(folder);
    if (!base) return base.error().text();
    auto request = toy_request();
    request.knowledge = retrieve(*base, request.machine, {{"M", 64}});
    auto plan = make_builtin_architect(toy_blueprint())->plan(request);
    EXPECT_TRUE(plan);
    return by_name(*plan)["tile"].choice;
  };
  EXPECT_EQ(choice(), "8");
  ASSERT_TRUE(set_retired(folder, "wide-tile", true));
  EXPECT_EQ(choice(), "4");
}

TEST(Architect, RevisesOneDecisionAtATimeUntilNothingIsLeft) {
  auto architect = make_builtin_architect(toy_blueprint());
  ReviseRequest request;
  request.first = toy_request();
  accept(request, *architect->plan(request.first), true);
  std::vector<std::string> reasons;
  for (int i = 0; i < 20; ++i) {
    const auto revised = architect->revise(request);
    ASSERT_TRUE(revised) << revised.error().text();
    if (!*revised) break;
    EXPECT_TRUE(check_plan(**revised)) << check_plan(**revised).error().text();
    EXPECT_EQ((*revised)->revision, i + 1);
    reasons.push_back((*revised)->reason);
    accept(request, **revised, false);
  }
  // pass=one; store=nontemporal with pass=one, which it needs; tile=8. What is local was tuned around this structure already.
  ASSERT_EQ(reasons.size(), 3u);
  EXPECT_NE(reasons[0].find("waits for memory"), std::string::npos) << reasons[0];
  EXPECT_NE(reasons[0].find("pass=one"), std::string::npos) << reasons[0];
  EXPECT_NE(reasons[1].find("store=nontemporal, pass=one"), std::string::npos) << reasons[1];
  EXPECT_NE(reasons[2].find("tile=8"), std::string::npos) << reasons[2];
}

TEST(Architect, WhatIsLocalIsTunedOnceMoreAroundANewStructure) {
  auto architect = make_builtin_architect(toy_blueprint());
  ReviseRequest request;
  request.first = toy_request();
  accept(request, *architect->plan(request.first), true);
  accept(request, **architect->revise(request), true);
  request.failures = {{"tile", "8", "slow"}, {"store", "nontemporal", "slow"}, {"pass", "two", "slow"}};
  const auto revised = architect->revise(request);
  ASSERT_TRUE(revised && *revised);
  EXPECT_TRUE(check_plan(**revised)) << check_plan(**revised).error().text();
  EXPECT_NE((*revised)->reason.find("decisions are tuned"), std::string::npos) << (*revised)->reason;
  EXPECT_EQ((*revised)->restart_at, static_cast<int>((*revised)->milestones.size()) - 1);
  EXPECT_EQ((*revised)->milestones.back().decisions.at(0).range.size(), 3u);
  accept(request, **revised, false);
  const auto last = architect->revise(request);
  ASSERT_TRUE(last);
  EXPECT_FALSE(*last);
}

TEST(Architect, TheLimiterSaysWhereToBegin) {
  auto architect = make_builtin_architect(toy_blueprint());
  ReviseRequest request;
  request.first = toy_request();
  accept(request, *architect->plan(request.first), true);
  request.best_evidence = request.first.evidence;
  request.best_evidence->metrics = {{"memory_percent", 20}, {"compute_percent", 90}};
  const auto revised = architect->revise(request);
  ASSERT_TRUE(revised && *revised);
  EXPECT_NE((*revised)->reason.find("tile=8"), std::string::npos) << (*revised)->reason;
}

TEST(Architect, FailureConditionsAreAvoided) {
  auto architect = make_builtin_architect(toy_blueprint());
  ReviseRequest request;
  request.first = toy_request();
  accept(request, *architect->plan(request.first), true);
  request.failures = {{"pass", "one", "r1 ended at 0.9x"}};
  const auto revised = architect->revise(request);
  ASSERT_TRUE(revised && *revised);
  EXPECT_EQ(by_name(**revised)["pass"].choice, "two");
  EXPECT_EQ(by_name(**revised)["pass"].rejected.at(0).why, "r1 ended at 0.9x");
  EXPECT_EQ((*revised)->avoided.size(), 1u);
}

TEST(Architect, TheLabPicksTheAlternativeThatGains) {
  ToyLab lab;
  auto architect = make_builtin_architect(toy_blueprint());
  ReviseRequest request;
  request.first = toy_request();
  request.first.lab = &lab;
  accept(request, *architect->plan(request.first), true);
  EXPECT_EQ(lab.jobs, 0);  // a first plan rests on evidence and entries alone
  const auto revised = architect->revise(request);
  ASSERT_TRUE(revised && *revised);
  auto d = by_name(**revised);
  EXPECT_EQ(d["store"].choice, "nontemporal");  // 0.8 x 0.96, the best of the three
  EXPECT_EQ(d["pass"].choice, "one");
  EXPECT_EQ(lab.jobs, 1);
  const auto& evidence = d["store"].evidence;
  EXPECT_TRUE(
      std::any_of(evidence.begin(), evidence.end(), [](const EvidenceItem& e) { return e.observed && e.text.rfind("lab: ", 0) == 0; }));
  accept(request, **revised, true);
  const auto second = architect->revise(request);
  ASSERT_TRUE(second && *second);
  EXPECT_EQ(by_name(**second)["tile"].choice, "8");
  EXPECT_EQ(by_name(**second)["store"].choice, "nontemporal");
  EXPECT_TRUE(by_name(**second)["unroll"].range.empty());  // tuned when the structure is found
  accept(request, **second, true);
  const auto last = architect->revise(request);
  ASSERT_TRUE(last && *last);
  EXPECT_EQ(by_name(**last)["unroll"].range.size(), 3u);
  accept(request, **last, true);
  EXPECT_FALSE(*architect->revise(request));
}

// store=nontemporal needs pass=one as well, and gains no more than a wide tile: the single change is taken.
TEST(Architect, OfTwoThatGainAlikeTheSimplerIsTaken) {
  struct EvenLab final : Lab {
    Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>& packages) override {
      std::vector<Diagnostic> out;
      for (const auto& p : packages) {
        const bool streams = p.source.find("nontemporal") != p.source.npos, wide = p.source.find("tile=8") != p.source.npos;
        const double gain = streams ? 1.105 : wide ? 1.1 : 1;
        out.push_back({.label = p.origin, .ran = true, .problem = {}, .seconds = 1 / gain, .against_first = gain, .image_sha = {}});
      }
      return out;
    }
    bool may_go_on() const override { return true; }
  } lab;
  auto architect = make_builtin_architect(toy_blueprint());
  ReviseRequest request;
  request.first = toy_request();
  request.first.lab = &lab;
  accept(request, *architect->plan(request.first), true);
  const auto revised = architect->revise(request);
  ASSERT_TRUE(revised && *revised);
  EXPECT_EQ(by_name(**revised)["tile"].choice, "8");
  EXPECT_EQ(by_name(**revised)["store"].choice, "regular");
}

// Two changes of 0.4 % each, which no job tells from noise; together they are worth a plan.
TEST(Architect, SmallGainsAreTriedTogether) {
  struct SlightLab final : Lab {
    Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>& packages) override {
      std::vector<Diagnostic> out;
      const auto gain = [](const std::string& s) {
        double g = 1;
        for (const char* mark : {"pass=one", "tile=8"}) g *= s.find(mark) != s.npos ? 1.004 : 1;
        return g;
      };
      for (const auto& p : packages)
        out.push_back({.label = p.origin,
                       .ran = true,
                       .problem = {},
                       .seconds = 1 / gain(p.source),
                       .against_first = gain(p.source) / gain(packages[0].source),
                       .image_sha = package_hash(p)});
      return out;
    }
    bool may_go_on() const override { return true; }
  } lab;
  auto architect = make_builtin_architect(toy_blueprint());
  ReviseRequest request;
  request.first = toy_request();
  request.first.lab = &lab;
  accept(request, *architect->plan(request.first), true);
  const auto revised = architect->revise(request);
  ASSERT_TRUE(revised && *revised);
  EXPECT_EQ(by_name(**revised)["pass"].choice, "one");
  EXPECT_EQ(by_name(**revised)["tile"].choice, "8");
}

TEST(Architect, WhenTheLabsBudgetIsSpentOnlyTuningIsLeft) {
  ToyLab lab;
  lab.budget = 0;
  auto architect = make_builtin_architect(toy_blueprint());
  ReviseRequest request;
  request.first = toy_request();
  request.first.lab = &lab;
  accept(request, *architect->plan(request.first), true);
  const auto revised = architect->revise(request);
  ASSERT_TRUE(revised && *revised);
  EXPECT_EQ(by_name(**revised)["unroll"].range.size(), 3u);
  EXPECT_EQ(lab.jobs, 0);
  accept(request, **revised, true);
  EXPECT_FALSE(*architect->revise(request));
}

TEST(Architect, ARestartKeepsTheMilestonesBeforeTheChange) {
  auto architect = make_builtin_architect(toy_blueprint());
  ReviseRequest request;
  request.first = toy_request();
  request.first.knowledge = {entry("one-pass", EntryState::certified, 1.05, "pass", "one"),
                             entry("streaming", EntryState::certified, 1.3, "store", "nontemporal")};
  const auto first = architect->plan(request.first);
  ASSERT_TRUE(first);
  accept(request, *first, true);
  request.failures = {{"tile", "8", "slow"}, {"pass", "two", "slow"}};
  const auto revised = architect->revise(request);
  ASSERT_TRUE(revised && *revised);
  EXPECT_EQ((*revised)->restart_at, 1);  // the store is decided in M1
  EXPECT_EQ(by_name(**revised)["store"].choice, "regular");
  EXPECT_EQ((*revised)->milestones[0].decisions[0].choice, first->milestones[0].decisions[0].choice);
  EXPECT_EQ((*revised)->milestones[1].acceptance.performance->against, Against::global_best);
}

TEST(Architect, ALaterGenerationStartsFromTheReferencesDecisions) {
  ToyLab lab;
  auto architect = make_builtin_architect(toy_blueprint());
  auto request = toy_request();
  request.lab = &lab;
  request.earlier_decisions = {{"tile", "4"}, {"pass", "one"}, {"store", "nontemporal"}, {"unroll", "2"}};
  const auto plan = architect->plan(request);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(check_plan(*plan)) << check_plan(*plan).error().text();
  auto d = by_name(*plan);
  EXPECT_EQ(d["store"].choice, "nontemporal");
  EXPECT_EQ(d["tile"].choice, "8");  // the one alternative that gains around them
  EXPECT_EQ(plan->milestones.at(0).decisions.at(3).choice, "2");
  EXPECT_EQ(plan->milestones.size(), 1u);  // tuned when the structure is found
  request.task.revise = false;             // no search follows
  const auto whole = make_builtin_architect(toy_blueprint())->plan(request);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->milestones.at(1).decisions.at(0).range.size(), 3u);
}

}  // namespace
}  // namespace forge
