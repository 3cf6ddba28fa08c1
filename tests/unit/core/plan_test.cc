// SPDX-License-Identifier: Apache-2.0
#include "core/plan.h"

#include <gtest/gtest.h>

#include "bad_input.h"
#include "core/json_io.h"

namespace forge {
namespace {

const char* kGoodPlan = R"({
  "format": 1, "operator": "softmax_f32", "target": "cpu:x86-64-avx512", "revision": 1, "restart_at": 1, "reason": "why",
  "milestones": [
    {"id": "M0", "title": "structure",
     "decisions": [
       {"id": "D0.1", "name": "passes", "choice": "three", "structural": true,
        "rejected": [{"value": "online", "why": "slower"}], "evidence": [{"observed": true, "text": "fits in L1"}]},
       {"id": "D0.2", "name": "unroll", "choice": "4", "structural": false, "range": ["2", "4"],
        "evidence": [{"observed": false, "text": "latency"}], "depends_on": ["D0.1"]}],
     "acceptance": {"mechanism": [{"mnemonic": "vfmadd*ps", "scope": "hot_loop", "min": 4, "max": 90}]}},
    {"id": "M1", "title": "stores", "prerequisites": ["M0"], "cost": 3,
     "decisions": [
       {"id": "D1.1", "name": "store", "choice": "streaming", "structural": true, "evidence": [{"observed": false, "text": "64 MiB"}],
        "expected_effect": "faster", "depends_on": ["D0.2"], "cites": ["nt-store"]}],
     "acceptance": {"performance": {"against": "branch_best", "min_gain": 0.02}}}],
  "avoided": [{"decision": "store", "value": "plain", "because": "reads its line"}]
})";

Status parse_and_check(const std::string& text) {
  FORGE_TRY_ASSIGN(const Plan plan, parse_plan(text, "plan.json"));
  return check_plan(plan);
}

TEST(Plan, Reads) {
  const auto p = parse_plan(kGoodPlan, "plan.json");
  ASSERT_TRUE(p) << p.error().text();
  ASSERT_TRUE(check_plan(*p));
  EXPECT_EQ(p->revision, 1);
  ASSERT_EQ(p->milestones.size(), 2u);
  const Decision& d = p->milestones[0].decisions[1];
  EXPECT_FALSE(d.structural);
  EXPECT_EQ(d.range, (std::vector<std::string>{"2", "4"}));
  EXPECT_EQ(p->milestones[0].cost, 1);
  EXPECT_FALSE(p->milestones[0].acceptance.performance);
  EXPECT_EQ(p->milestones[0].acceptance.mechanism.all[0].max, 90);
  EXPECT_EQ(p->milestones[1].acceptance.performance->against, Against::branch_best);
  EXPECT_EQ(p->milestones[1].acceptance.performance->min_gain, 0.02);
  EXPECT_EQ(p->avoided[0].because, "reads its line");
}

TEST(Plan, RoundTrips) {
  const Plan p = *parse_plan(kGoodPlan, "plan.json");
  const std::string text = plan_to_json(p);
  const auto again = parse_plan(text, "again");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(plan_to_json(*again), text);
  EXPECT_TRUE(read_plan(*parse_json(text, "f"), "f"));
}

TEST(Plan, RefusesAndNamesTheField) {
  expect_refused(
      kGoodPlan,
      {
          {"\"format\": 1", "\"format\": 2", "format", "format 2"},
          {"\"operator\": \"softmax_f32\"", "\"operator\": \"\"", "operator", "empty"},
          {"\"target\"", "\"traget\"", "traget", "did you mean 'target'", 2},
          {"\"revision\": 1", "\"revision\": -1", "revision", "negative"},
          {"\"revision\": 1", "\"revision\": \"1\"", "revision", "expected an integer, found a string", 2},
          {"\"restart_at\": 1", "\"restart_at\": 2", "restart_at", "no index of a milestone"},
          {"\"milestones\": [", "\"milestones\": 3, \"x\": [", "milestones", "expected an array", 3},
          {"\"id\": \"M0\"", "\"id\": \"M1\"", "milestones[0].id", "must be 'M0'"},
          {"\"id\": \"M1\"", "\"id\": \"M0\"", "milestones[1].id", "must be 'M1'"},
          {"\"id\": \"D0.2\"", "\"id\": \"D0.1\"", "milestones[0].decisions[1].id", "stands twice"},
          {"\"id\": \"D0.2\"", "\"id\": \"D1.2\"", "milestones[0].decisions[1].id", "is not D0.<n>"},
          {"\"id\": \"D0.2\"", "\"id\": \"D0.02\"", "milestones[0].decisions[1].id", "is not D0.<n>"},
          {"\"id\": \"D0.2\"", "\"id\": \"D0.x\"", "milestones[0].decisions[1].id", "is not D0.<n>"},
          {"\"id\": \"D0.2\"", "\"id\": 2", "milestones[0].decisions[1].id", "expected a string", 8},
          {"\"id\": \"D0.2\", ", "", "milestones[0].decisions[1].id", "missing", 8},
          {"\"name\": \"unroll\"", "\"name\": \"passes\"", "milestones[0].decisions[1].name", "decided twice"},
          {"\"choice\": \"4\"", "\"choice\": \"\"", "milestones[0].decisions[1].choice", "empty"},
          {"\"choice\": \"4\"", "\"choice\": \"8\"", "milestones[0].decisions[1].range", "does not hold"},
          {"\"structural\": false, ", "\"structural\": true, ", "milestones[0].decisions[1].range", "structural decision has no range"},
          {"\"structural\": true", "\"structural\": false", "milestones[0].decisions", "no structural decision"},
          {"\"structural\": true", "\"structural\": 1", "milestones[0].decisions[0].structural", "expected true or false", 6},
          {"\"value\": \"online\"", "\"value\": \"three\"", "milestones[0].decisions[0].rejected[0].value", "the choice itself"},
          {"\"why\": \"slower\"", "\"why\": \"\"", "milestones[0].decisions[0].rejected[0].why", "empty"},
          {"[{\"observed\": true, \"text\": \"fits in L1\"}]", "[]", "milestones[0].decisions[0].evidence", "at least one"},
          {"\"text\": \"fits in L1\"", "\"text\": \" \"", "milestones[0].decisions[0].evidence[0].text", "empty"},
          {"\"text\": \"fits in L1\"", "\"txt\": \"fits in L1\"", "milestones[0].decisions[0].evidence[0].txt", "did you mean 'text'", 7},
          {"[\"D0.1\"]", "[\"D1.1\"]", "milestones[0].decisions[1].depends_on[0]", "no earlier decision"},
          {"[\"D0.1\"]", "[\"D0.2\"]", "milestones[0].decisions[1].depends_on[0]", "no earlier decision"},
          {"[\"M0\"]", "[\"M1\"]", "milestones[1].prerequisites[0]", "no earlier milestone"},
          {"\"cost\": 3", "\"cost\": 0", "milestones[1].cost", "at least 1"},
          {"\"acceptance\": {\"mechanism\"",
           "\"acceptance\": {\"performance\": {\"against\": \"reference\", \"min_gain\": 0}, \"mechanism\"",
           "milestones[0].acceptance.performance", "no speed threshold"},
          {"\"branch_best\"", "\"branch_bst\"", "milestones[1].acceptance.performance.against", "did you mean 'branch_best'", 15},
          {"0.02", "-1", "milestones[1].acceptance.performance.min_gain", "above -1"},
          {"0.02", "\"Infinity\"", "milestones[1].acceptance.performance.min_gain", "finite"},
          {"\"vfmadd*ps\"", "\"VFMADD\"", "milestones[0].acceptance.mechanism[0].mnemonic", "lower-case", 10},
          {"\"hot_loop\"", "\"loop\"", "milestones[0].acceptance.mechanism[0].scope", "not one of image, hot_loop", 10},
          {"\"max\": 90", "\"max\": 3", "milestones[0].acceptance.mechanism[0].max", "below min", 10},
          {"\"value\": \"plain\"", "\"value\": \"\"", "avoided[0].value", "empty"},
          {"\"because\"", "\"becuase\"", "avoided[0].becuase", "did you mean 'because'", 16},
          {"\"why\",", "\"why\"", "", "not JSON", 3},
      },
      parse_and_check);
  Plan empty;
  empty.operator_name = "a", empty.target = "b";
  EXPECT_EQ(check_plan(empty).error().field, "milestones");
}

}  // namespace
}  // namespace forge
