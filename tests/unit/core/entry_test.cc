// SPDX-License-Identifier: Apache-2.0
#include "core/entry.h"

#include <gtest/gtest.h>

#include "bad_input.h"

namespace forge {
namespace {

const char* kGoodEntry = R"(format = 1
id = "nt-store"
title = "Streaming stores"
targets = ["cpu:*"]
mechanism = "No read for ownership."
applies = "output_bytes > l3_bytes"
symptoms = ["memory_percent above 80"]
limitations = ["slower from cache"]
origin = "a manual"
retired = false

[probe]
operator = "copy_f32"
min_effect = 0.05

[[advice]]
decision = "store"
value = "streaming"
when = "output_bytes > l3_bytes"
because = "it does not fit"

[[signature]]
mnemonic = "vmovntps"
operand = "zmm"
scope = "hot_loop"
min = 1
)";

Result<Entry> parsed_entry(const std::string& text) { return parse_entry(text, "entry.toml"); }

TEST(Entry, Reads) {
  const auto e = parsed_entry(kGoodEntry);
  ASSERT_TRUE(e) << e.error().text();
  EXPECT_EQ(e->id, "nt-store");
  EXPECT_EQ(e->targets, (std::vector<std::string>{"cpu:*"}));
  EXPECT_EQ(e->applies.text, "output_bytes > l3_bytes");
  EXPECT_EQ(e->probe_operator, "copy_f32");
  EXPECT_EQ(e->min_effect, 0.05);
  ASSERT_EQ(e->advice.size(), 1u);
  EXPECT_EQ(e->advice[0].value, "streaming");
  EXPECT_EQ(e->signature.all[0].operand, "zmm");
  EXPECT_FALSE(e->retired);
}

TEST(Entry, RefusesAndSaysWhere) {
  expect_refused(kGoodEntry,
                 {
                     {"format = 1", "format = \"1\"", "format", "expected an integer", 1},
                     {"id = \"nt-store\"", "id = \"nt store\"", "id", "letters, digits", 2},
                     {"id = \"nt-store\"", "id = \"../x\"", "id", "letters, digits", 2},
                     {"title = \"Streaming stores\"", "", "title", "missing"},
                     {"[\"cpu:*\"]", "[]", "targets", "must not be empty", 4},
                     {"[\"cpu:*\"]", "\"cpu:*\"", "targets", "expected an array", 4},
                     {"mechanism = \"No read for ownership.\"", "mechanism = \"\"", "mechanism", "must not be empty", 5},
                     {"\"output_bytes > l3_bytes\"", "\"output_bytes >\"", "applies", "missing at column", 6},
                     {"symptoms", "symptom", "symptom", "did you mean 'symptoms'", 7},
                     {"origin = \"a manual\"", "", "origin", "missing"},
                     {"retired = false", "retired = 0", "retired", "true or false", 10},
                     {"operator = \"copy_f32\"", "", "probe.operator", "missing", 12},
                     {"operator = \"copy_f32\"", "operator = \"copy_f32\"\nrequires = \"(\"", "probe.requires", "missing at column 2", 14},
                     {"min_effect = 0.05", "min_effect = -0.1", "probe.min_effect", "negative", 14},
                     {"min_effect = 0.05", "min_efect = 0.05", "probe.min_efect", "did you mean", 14},
                     {"value = \"streaming\"", "value = 3", "advice[0].value", "expected a string", 18},
                     {"because = \"it does not fit\"", "", "advice[0].because", "missing", 16},
                     {"when = \"output", "when = \"1 < 2 < output", "advice[0].when", "do not chain", 19},
                     {"scope = \"hot_loop\"", "scope = \"hot\"", "signature[0].scope", "not one of", 25},
                     {"min = 1\n", "min = 2\nmax = 1\n", "signature[0].max", "below min", 27},
                     {"[[advice]]", "[[advise]]", "advise", "did you mean 'advice'", 16},
                 },
                 parsed_entry);
}

Certification example() {
  Certification c;
  c.device_class = "cpu:X-1-2", c.device = "A CPU", c.compiler = "g++ 12", c.date = "2026-11-30T00:00:00Z", c.commit = "abc";
  c.comparison = Comparison::faster, c.effect = {1.1, 1.0 / 3 + 1, 1.4}, c.floor = 0.004, c.outcome = EntryState::certified, c.note = "n";
  return c;
}

TEST(Certification, RoundTripsAndRefuses) {
  const std::string text = certification_to_json(example());
  const auto again = parse_certification(text, "f.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(certification_to_json(*again), text);
  EXPECT_EQ(again->effect.mid, 1.0 / 3 + 1);
  expect_refused(text,
                 {
                     {"\"format\": 1", "\"format\": 9", "format", "format 9", 2},
                     {"\"device_class\"", "\"device_clas\"", "device_clas", "did you mean 'device_class'", 3},
                     {"\"cpu:X-1-2\"", "\"\"", "device_class", "empty", 3},
                     {"\"applicable\": true", "\"applicable\": 1", "applicable", "true or false"},
                     {"\"applicable\": true", "\"applicable\": false", "outcome", "not certified"},
                     {"\"faster\"", "\"quicker\"", "comparison", "not one of"},
                     {"\"mid\": 1.3333333333333333", "\"mid\": null", "effect.mid", "null"},
                     {"\"certified\"", "\"retired\"", "outcome", "not one of proposed, certified, refuted"},
                 },
                 [](const std::string& t) { return parse_certification(t, "f.json"); });
}

TEST(Entry, StateOnADeviceClass) {
  Entry e = *parsed_entry(kGoodEntry);
  EXPECT_EQ(state_on(e, "cpu:X-1-2"), EntryState::proposed);
  e.evidence = {example()};
  EXPECT_EQ(state_on(e, "cpu:X-1-2"), EntryState::certified);
  EXPECT_EQ(state_on(e, "cpu:Y-1-2"), EntryState::proposed) << "evidence holds for one device class only";
  e.evidence[0].outcome = EntryState::refuted;
  EXPECT_EQ(state_on(e, "cpu:X-1-2"), EntryState::refuted);
  e.retired = true;
  EXPECT_EQ(state_on(e, "cpu:X-1-2"), EntryState::retired);
}

}  // namespace
}  // namespace forge
