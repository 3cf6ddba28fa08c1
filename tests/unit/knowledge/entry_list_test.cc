// SPDX-License-Identifier: Apache-2.0
#include "knowledge/entry_list.h"

#include <gtest/gtest.h>

namespace forge {

// Every member, told apart from every other.
static Entry full_entry(const std::string& id) {
  Entry e;
  e.id = id, e.title = "a title", e.targets = {"cpu:*", "cuda:sm_90*"}, e.mechanism = "a\nparagraph \"quoted\"";
  e.applies = *parse_expr("M > 1"), e.symptoms = {"s1", ""}, e.limitations = {"l1"}, e.origin = std::string("o\0o", 3);
  e.advice = {{.decision = "d", .value = "v", .when = *parse_expr("N > 2"), .because = "b"}, {}};
  e.signature.all = {{.mnemonic = "vmov*", .operand = "mem", .scope = Scope::hot_loop, .min = 3, .max = 9}, {.mnemonic = "x"}};
  e.probe_operator = "op", e.probe_blueprint = "bp";
  e.probe_choices = {{"c", "1"}, {"c2", "2"}}, e.probe_baseline = {{"b", "3"}}, e.probe_mechanism = {{"m", "4"}};
  e.probe_requires = *parse_expr("cores > 1"), e.min_effect = 0.25, e.retired = true, e.folder = "f/" + id;
  e.evidence = {{.device_class = "cpu:A",
                 .device = "dev",
                 .compiler = "cc",
                 .date = "day",
                 .commit = "abc",
                 .applicable = false,
                 .comparison = Comparison::slower,
                 .effect = {1, 2, 3},
                 .floor = 0.5,
                 .outcome = EntryState::refuted,
                 .note = "n"}};
  return e;
}

static void expect_full(const Entry& e, const std::string& id) {
  const Entry w = full_entry(id);
  EXPECT_EQ(e.id, id);
  EXPECT_EQ(e.title, w.title);
  EXPECT_EQ(e.targets, w.targets);
  EXPECT_EQ(e.mechanism, w.mechanism);
  EXPECT_EQ(e.applies.text, "M > 1");
  EXPECT_TRUE(e.applies.nodes.empty());
  EXPECT_EQ(e.symptoms, w.symptoms);
  EXPECT_EQ(e.limitations, w.limitations);
  EXPECT_EQ(e.origin, w.origin);
  ASSERT_EQ(e.advice.size(), 2u);
  EXPECT_EQ(e.advice[0].decision + e.advice[0].value + e.advice[0].when.text + e.advice[0].because, "dvN > 2b");
  EXPECT_EQ(e.advice[1].decision + e.advice[1].when.text, "");
  ASSERT_EQ(e.signature.all.size(), 2u);
  EXPECT_EQ(e.signature.all[0].mnemonic + e.signature.all[0].operand, "vmov*mem");
  EXPECT_EQ(e.signature.all[0].scope, Scope::hot_loop);
  EXPECT_EQ(e.signature.all[0].min, 3);
  EXPECT_EQ(e.signature.all[0].max, 9);
  EXPECT_EQ(e.signature.all[1].max, std::nullopt);
  EXPECT_EQ(e.probe_operator + e.probe_blueprint, "opbp");
  EXPECT_EQ(e.probe_choices, w.probe_choices);
  EXPECT_EQ(e.probe_baseline, w.probe_baseline);
  EXPECT_EQ(e.probe_mechanism, w.probe_mechanism);
  EXPECT_EQ(*evaluate(e.probe_requires, {{"cores", 2}}), 1);  // a tree, not a text alone
  EXPECT_EQ(e.min_effect, 0.25);
  EXPECT_TRUE(e.retired);
  EXPECT_EQ(e.folder, "f/" + id);
  ASSERT_EQ(e.evidence.size(), 1u);
  const Certification& c = e.evidence[0];
  EXPECT_EQ(c.device_class + c.device + c.compiler + c.date + c.commit + c.note, "cpu:Adevccdayabcn");
  EXPECT_FALSE(c.applicable);
  EXPECT_EQ(c.comparison, Comparison::slower);
  EXPECT_TRUE(c.effect.low == 1 && c.effect.mid == 2 && c.effect.high == 3 && c.floor == 0.5);
  EXPECT_EQ(c.outcome, EntryState::refuted);
}

TEST(EntryList, UnpacksAllThatWasPacked) {
  const EntryList list({full_entry("a"), Entry{}, full_entry("c")});
  ASSERT_EQ(list.size(), 3u);
  expect_full(list[0], "a");
  Entry e;  // one place for all: nothing of the one before stays
  list.get(0, e), list.get(1, e);
  EXPECT_TRUE(e.id.empty() && e.targets.empty() && e.advice.empty() && e.signature.empty() && e.probe_choices.empty());
  EXPECT_TRUE(e.probe_requires.empty() && e.evidence.empty() && !e.retired);
  list.get(2, e);
  expect_full(e, "c");
}

TEST(EntryList, SelectionsShareAndAreNotChanged) {
  EntryList list({full_entry("a"), full_entry("b"), full_entry("c")});
  const EntryList some = list.select({2, 0}), one = some.select({1});
  list.add(full_entry("d"));
  std::string ids;
  for (const Entry& e : some) ids += e.id;
  for (const Entry& e : one) ids += e.id;
  for (const Entry& e : list) ids += e.id;
  EXPECT_EQ(ids, "caaabcd");
  EXPECT_TRUE(EntryList().empty());
}

}  // namespace forge
