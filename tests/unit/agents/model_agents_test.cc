// SPDX-License-Identifier: Apache-2.0
// Models in both seats, over a scripted model, and goal mode.
#include <gtest/gtest.h>

#include "agents/goal_architect.h"
#include "agents/model_architect.h"
#include "agents/model_driver.h"
#include "model/scripted.h"
#include "toy_blueprint.h"

namespace forge {
namespace {

PlanRequest toy_plan_request() {
  PlanRequest r;
  r.task.operator_name = r.definition.name = "toy";
  r.task.target = r.machine.target.name = "cpu:x86-64-avx2";
  r.machine.target.vector_bits = 256;
  r.machine.properties = {{"vector_bits", 256}};
  r.evidence.subject = "expert fake";
  r.evidence.metrics = {{"memory_percent", 80}};
  r.floor.ratio = 0.004;
  r.task_file.flops = *parse_expr("1");
  r.task_file.bytes = *parse_expr("1");
  return r;
}

std::string plan_json(const std::string& decision, const std::string& choice, const std::string& more = "") {
  return R"({"reason":"it waits for memory","milestones":[{"id":"M0","title":"structure","decisions":[{"id":"D0.1","name":")" + decision +
         R"(","choice":")" + choice +
         R"(","structural":true,"evidence":[{"observed":true,"text":"80 % of the memory ceiling"}],"expected_effect":"1.1x")" + more +
         "}]}]}";
}

struct Architect {
  explicit Architect(std::vector<Result<ModelReply>> replies, bool vocabulary = true)
      : journal(*Journal::open("", Journal::Mode::memory)), model(new ScriptedModel(std::move(replies))) {
    ModelArchitectOptions options{.instructions = "decide", .vocabulary = {}, .budget = {}, .seconds = 60};
    options.budget.tokens = 1000000;
    if (vocabulary) options.vocabulary = toy_blueprint();
    agent = make_model_architect(std::unique_ptr<Model>(model), journal, meter, std::move(options));
  }
  Journal journal;
  Meter meter;
  ScriptedModel* model;
  std::unique_ptr<ArchitectureAgent> agent;
};

TEST(ModelArchitect, APlanThatIsRightIsTakenAndItsTokensCounted) {
  Architect a({calls({{"propose_plan", plan_json("tile", "8"), ""}})});
  const auto plan = a.agent->plan(toy_plan_request());
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->operator_name, "toy");
  EXPECT_EQ(plan->milestones[0].decisions[0].choice, "8");
  EXPECT_EQ(a.meter.used.total(), 110);
  ASSERT_EQ(a.journal.events().size(), 1u);
  EXPECT_EQ(a.journal.events()[0].type, "agent.ask");
}

TEST(ModelArchitect, WhatIsWrongGoesBackUntilThePlanIsRight) {
  Architect a({says("I think that tiles matter."), calls({{"propose_plan", "{\"reason\": ", ""}}),
               calls({{"propose_plan", plan_json("colour", "red"), ""}}), calls({{"propose_plan", plan_json("tile", "16"), ""}}),
               calls({{"propose_plan", plan_json("tile", "8"), ""}})});
  const auto plan = a.agent->plan(toy_plan_request());
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(a.model->asked.size(), 5u);
  const auto last_words = [&](std::size_t i) { return a.model->asked[i].messages.back().blocks.back().text; };
  EXPECT_NE(last_words(1).find("no tool was called"), std::string::npos);
  EXPECT_NE(last_words(2).find("plan"), std::string::npos);
  EXPECT_NE(last_words(3).find("knows no decision 'colour'"), std::string::npos);
  EXPECT_NE(last_words(4).find("cannot be built"), std::string::npos) << last_words(4);
  EXPECT_TRUE(a.model->asked[4].messages.back().blocks.back().error);
}

TEST(ModelArchitect, TriesAreLimitedAndThenTheAgentHasFailed) {
  std::vector<Result<ModelReply>> replies;
  for (int i = 0; i < kPlanTries + 2; ++i) replies.push_back(says("no"));
  Architect a(std::move(replies));
  const auto plan = a.agent->plan(toy_plan_request());
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::crashed);
  EXPECT_EQ(a.model->left(), 2u);
}

TEST(ModelArchitect, NoQuestionIsAskedBeyondTheBudget) {
  auto* model = new ScriptedModel({says("no"), says("no"), says("no")});
  Journal journal = *Journal::open("", Journal::Mode::memory);
  Meter meter;
  ModelArchitectOptions options{.instructions = "decide", .vocabulary = {}, .budget = {}, .seconds = 60};
  options.budget.tokens = 150;  // a reply costs 110
  auto agent = make_model_architect(std::unique_ptr<Model>(model), journal, meter, std::move(options));
  EXPECT_EQ(agent->plan(toy_plan_request()).error().code, Code::crashed);
  EXPECT_EQ(model->asked.size(), 2u);
  EXPECT_EQ(model->asked[1].max_output, 40);
}

TEST(ModelArchitect, AnEntryThatDoesNotApplyCannotBeCited) {
  Architect a({calls({{"propose_plan", plan_json("tile", "8", R"(,"cites":["made-up"])"), ""}}),
               calls({{"propose_plan", plan_json("tile", "8"), ""}})});
  ASSERT_TRUE(a.agent->plan(toy_plan_request()));
  EXPECT_NE(a.model->asked[1].messages.back().blocks.back().text.find("made-up"), std::string::npos);
}

TEST(ModelArchitect, AnUnreachableModelIsOnRecordAndInterruptionIsNot) {
  Architect down({tl::unexpected(Error{.code = Code::timeout, .message = "no answer"})});
  EXPECT_EQ(down.agent->plan(toy_plan_request()).error().code, Code::crashed);
  EXPECT_EQ(down.journal.events().size(), 1u);
  Architect stopped({tl::unexpected(Error{.code = Code::interrupted, .message = "stopped"})});
  EXPECT_EQ(stopped.agent->plan(toy_plan_request()).error().code, Code::interrupted);
  EXPECT_TRUE(stopped.journal.events().empty());
}

TEST(ModelArchitect, ARevisionMayEndTheRun) {
  Architect a({calls({{"no_further_plan", "{}", ""}})});
  ReviseRequest request;
  request.first = toy_plan_request();
  const auto plan = a.agent->revise(request);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(*plan);
}

TEST(ModelDriver, CallsResultsAndNudges) {
  auto* model = new ScriptedModel({calls({{"check", "{}", "c1"}}), says("done?"), says("done.")});
  auto driver = make_model_driver(std::unique_ptr<Model>(model), "build", 60);
  const Assignment assignment{.milestone = "M0", .brief = "the brief", .attempt = 0, .workspace = {}, .tokens_left = 5000, .starter = {}};
  std::vector<Exchange> so_far;
  auto turn = driver->next(assignment, so_far);
  ASSERT_TRUE(turn);
  ASSERT_EQ(turn->calls.size(), 1u);
  EXPECT_EQ(turn->calls[0].tool, "check");
  EXPECT_EQ(model->asked[0].max_output, 5000);
  so_far.push_back({*turn, {{.text = "{\"verdict\":\"wrong_result\"}", .error = false}}});
  turn = driver->next(assignment, so_far);
  ASSERT_TRUE(turn);
  EXPECT_FALSE(turn->ended);
  ASSERT_EQ(model->asked[1].messages.size(), 3u);
  EXPECT_EQ(model->asked[1].messages[2].blocks[0].id, "c1");
  so_far.push_back({*turn, {}});
  turn = driver->next(assignment, so_far);
  ASSERT_TRUE(turn);
  EXPECT_TRUE(turn->ended) << "a second message without a call ends the turn";
  EXPECT_NE(model->asked[2].messages.back().blocks[0].text.find("called no tool"), std::string::npos);
}

TEST(GoalMode, AsksForFasterUntilNothingComes) {
  auto architect = make_goal_architect(toy_blueprint());
  ReviseRequest request;
  request.first = toy_plan_request();
  auto plan = architect->plan(request.first);
  ASSERT_TRUE(plan);
  ASSERT_TRUE(check_plan(*plan)) << check_plan(*plan).error().text();
  request.plans = {*plan};
  request.branches = {{.revision = 0, .stop = Stop::exhausted, .milestones = {{"M0", MilestoneEnd::accepted, ""}}}};
  for (int i = 0; i < 3; ++i) {
    const auto next = architect->revise(request);
    ASSERT_TRUE(next && *next) << i;
    ASSERT_TRUE(check_plan(**next)) << check_plan(**next).error().text();
    EXPECT_EQ((*next)->milestones.size(), 2u);
    EXPECT_EQ((*next)->restart_at, 1);
    EXPECT_TRUE((*next)->milestones[1].acceptance.performance);
    request.plans.push_back(**next);
    request.branches.push_back({.revision = i + 1,
                                .stop = Stop::blocked,
                                .milestones = {{"M0", MilestoneEnd::accepted, "kept"}, {"M1", MilestoneEnd::gave_up, "slow"}}});
  }
  const auto last = architect->revise(request);
  ASSERT_TRUE(last);
  EXPECT_FALSE(*last) << "three failures in a row";
  request.first.floor = {};  // no reference, so none was measured
  request.branches.resize(1);
  const auto next = architect->revise(request);
  ASSERT_TRUE(next && *next);
  EXPECT_GT((*next)->milestones[1].acceptance.performance->min_gain, 0) << "else the same kernel is accepted for ever";
}

}  // namespace
}  // namespace forge
