// SPDX-License-Identifier: Apache-2.0
// The base's index against the definition: random conditions, random bases.
#include <gtest/gtest.h>

#include <fstream>

#include "knowledge/conditions.h"
#include "support/plain_retrieval.h"
#include "util/random.h"

namespace forge {
namespace {

const std::vector<std::string> kSomeNames = {"M", "N", "l3_bytes", "cores", "unknown"};

std::string random_condition(Random& random, int depth) {
  const auto part = [&] { return random_condition(random, depth - 1); };
  if (depth == 0 || random.below(6) == 0) {
    if (random.below(2)) return kSomeNames[random.below(kSomeNames.size())];
    return random.below(12) ? std::to_string(random.below(6)) : "9223372036854775807";
  }
  static const std::vector<std::string> kBinary = {"+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "&&", "||"};
  static const std::vector<std::string> kCalls = {"min", "max", "ceil_div", "align_up"};
  switch (random.below(8)) {
    case 0:
      return "-(" + part() + ")";
    case 1:
      return "!(" + part() + ")";
    case 2:
      return "((" + part() + ") ? (" + part() + ") : (" + part() + "))";
    case 3:
      return kCalls[random.below(4)] + "(" + part() + ", " + part() + ")";
    default:
      return "((" + part() + ") " + kBinary[random.below(kBinary.size())] + " (" + part() + "))";
  }
}

Names random_names(Random& random) {
  Names names;
  for (const std::string& name : kSomeNames)
    if (name != "unknown" && random.below(8)) names[name] = static_cast<std::int64_t>(random.below(8)) - 2;
  return names;
}

TEST(Conditions, HoldWhenEvaluateSaysSo) {
  Random random(3);
  Conditions all;
  std::vector<std::pair<Expr, std::uint32_t>> added;
  for (int i = 0; i < 5000; ++i) {
    const Expr e = *parse_expr(random_condition(random, static_cast<int>(random.below(5))));
    added.emplace_back(e, all.add(e));
    EXPECT_EQ(all.add(e), added.back().second) << "the same text is the same condition";
  }
  all.finish();
  int held = 0, errors = 0;
  for (int round = 0; round < 10; ++round) {
    const Names names = random_names(random);
    Conditions::Asked asked(all, names);
    for (const auto& [e, id] : added) {
      const bool expected = plainly_holds(e, names);
      ASSERT_EQ(asked.holds(id), expected) << e.text;
      ASSERT_EQ(asked.holds(id), expected) << "asked again: " << e.text;
      held += expected, errors += !evaluate(e, names);
    }
    EXPECT_TRUE(asked.holds(Conditions::kAlways));
  }
  EXPECT_GT(held, 5000);
  EXPECT_GT(errors, 5000);
}

TEST(Retrieval, IsWhatTheDefinitionSaysOnRandomBases) {
  Random random(5);
  const std::vector<std::string> classes = {"cpu:A-1", "cpu:B-2", "cpu:C-3"};
  std::size_t found = 0;
  for (int base_number = 0; base_number < 4; ++base_number) {
    const TempDir dir = std::move(*TempDir::make("retrieval"));
    std::vector<Entry> entries;
    for (int n = 0; n < 60; ++n) {
      const std::string id = "e" + std::to_string(100 + n);
      const auto condition = [&] { return random.below(4) ? random_condition(random, 2) : std::string("M > 0"); };
      std::string text = "format = 1\nid = \"" + id + "\"\ntitle = \"t\"\nmechanism = \"m\"\norigin = \"o\"\n";
      text += random.below(3)   ? "targets = [\"cpu:*\"]\n"
              : random.below(2) ? "targets = [\"cuda:*\", \"*avx2\"]\n"
                                : "targets = [\"x:*\"]\n";
      if (random.below(3)) text += "applies = \"" + condition() + "\"\n";
      if (random.below(8) == 0) text += "retired = true\n";
      text += "[probe]\noperator = \"copy_f32\"\n";
      for (std::uint64_t i = random.below(3); i > 0; --i)
        text += "[[advice]]\ndecision = \"d\"\nvalue = \"" + std::to_string(i) + "\"\nbecause = \"b\"\nwhen = \"" + condition() + "\"\n";
      const fs::path folder = dir.path() / "cpu" / id;
      fs::create_directories(folder / "evidence");
      std::ofstream(folder / "entry.toml") << text;
      auto parsed = parse_entry(text, "test");
      ASSERT_TRUE(parsed) << parsed.error().text();
      Entry entry = std::move(*parsed);
      for (std::size_t c = 0; c < classes.size(); ++c) {
        if (random.below(2)) continue;
        Certification one;
        one.device_class = classes[c], one.applicable = random.below(5) > 0, one.date = "d";
        const double mid = 1 + static_cast<double>(random.below(4)) / 8;
        one.effect = {mid, mid, mid};
        one.outcome = random.below(3) ? EntryState::certified : random.below(2) ? EntryState::refuted : EntryState::proposed;
        if (!one.applicable) one.outcome = EntryState::proposed;  // the format allows nothing else
        std::ofstream(folder / "evidence" / (std::to_string(c) + ".json")) << certification_to_json(one);
        entry.evidence.push_back(one);
      }
      entries.push_back(std::move(entry));
    }
    const auto base = KnowledgeBase::load(dir.path());
    ASSERT_TRUE(base) << base.error().text();
    Machine machine;
    machine.target = *find_target("cpu:x86-64-avx2");
    for (int question = 0; question < 12; ++question) {
      machine.device_class = question % 4 < 3 ? classes[static_cast<std::size_t>(question % 4)] : "cpu:none";
      const Names names = random_names(random);
      const auto expected = plain_retrieve(entries, machine, names), got = retrieve(*base, machine, names);
      ASSERT_EQ(got.size(), expected.size());
      found += got.size();
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].entry.id, expected[i].entry.id);
        EXPECT_EQ(got[i].state, expected[i].state) << got[i].entry.id;
        EXPECT_EQ(got[i].effect, expected[i].effect) << got[i].entry.id;
        ASSERT_EQ(got[i].advice.size(), expected[i].advice.size()) << got[i].entry.id;
        for (std::size_t a = 0; a < got[i].advice.size(); ++a) {
          EXPECT_EQ(got[i].advice[a].value, expected[i].advice[a].value);
          EXPECT_EQ(got[i].advice[a].when.text, expected[i].advice[a].when.text);
        }
      }
    }
  }
  EXPECT_GT(found, 500u);
}

}  // namespace
}  // namespace forge
