// SPDX-License-Identifier: Apache-2.0
// Every record reads back as it was written: resume and replay rest on it.
#include "core/record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bad_input.h"
#include "core/json_io.h"
#include "util/random.h"

namespace forge {
namespace {

// Doubles of every magnitude, among them the ones that printing loses most easily.
double odd(Random& r) {
  switch (r.below(8)) {
    case 0:
      return std::numeric_limits<double>::infinity();
    case 1:
      return std::numeric_limits<double>::denorm_min();
    case 2:
      return -0.0;
    case 3:
      return 1e300 * r.normal();
    default:
      return r.normal() * std::pow(10, static_cast<double>(r.below(30)) - 20);
  }
}
std::vector<double> odds(Random& r, int n) {
  std::vector<double> out;
  for (int i = 0; i < n; i++) out.push_back(odd(r));
  return out;
}

InstructionMix a_mix() {
  InstructionMix m;
  m.mnemonics = {{"vfmadd231ps", 24}, {"mov", 9}};
  m.hot = {{"vfmadd231ps", 24}};
  m.operands = {{"vfmadd231ps zmm", 24}}, m.hot_operands = {{"vfmadd231ps mem", 3}};
  m.widest_vector_bits = 512, m.spills = 2, m.instructions = 100, m.undecoded = 1;
  m.loops = {{.symbol = "gemm",
              .offset = 0xffffffffffffULL,
              .instructions = 1,
              .vector_instructions = 2,
              .fma = 3,
              .loads = 4,
              .stores = 5,
              .spills = 6,
              .listing = "a\n\"b\"\t\\"}};
  return m;
}

PairedTiming a_pair(Random& r) {
  PairedTiming p;
  p.against = "reference", p.comparison = Comparison::faster;
  p.speedup = {odd(r), odd(r), odd(r)};
  p.lower_bound = odd(r), p.upper_bound = odd(r), p.pairs = 30, p.extended = true;
  p.candidate_s = odds(r, 30), p.against_s = odds(r, 30);
  p.outside_speedup = {odd(r), odd(r), odd(r)}, p.outside_resolution = odd(r);
  return p;
}

CorrectnessReport a_report(Random& r) {
  return {.checks = 9, .elements = std::int64_t{1} << 40, .worst = odd(r), .worst_where = "C", .workloads = {"a", "b"}};
}

Measurement a_measurement(Random& r) {
  Measurement m;
  m.pairs = {a_pair(r), a_pair(r)};
  m.seconds = odd(r);
  m.floor = {.ratio = odd(r), .sigma = odd(r), .pairs = 30, .device_class = "cpu:X", .boot_id = "b", .protocol = "p1"};
  m.conditions = {{"clock", "monotonic"}, {"\xc3\xa9", "\xe2\x82\xac"}};
  return m;
}

Verdict fill(Verdict v) {
  v.package_sha = "p", v.image_sha = "i", v.mechanism = {true, {"vfmadd in hot_loop: 24 (min 4)"}}, v.mix = a_mix(), v.build_log = "log\n";
  v.times = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, v.notes = {"no perf"};
  return v;
}

// Equal texts mean equal values, since every field is written and every double exactly; the bits are compared here once.
TEST(Verdict, RoundTripsExactly) {
  Random r(7);
  for (int i = 0; i < 200; i++) {
    Verdict v = Verdict::rejected(Reason::crashed, "signal 11");
    if (i % 4 == 1) v = Verdict::passed(a_report(r), a_measurement(r));
    if (i % 4 == 2) v = Verdict::missed(Reason::too_slow, "slow", a_report(r), a_measurement(r));
    if (i % 4 == 3) v = Verdict::missed(Reason::mechanism_missing, "none", a_report(r), std::nullopt);
    v = fill(std::move(v));
    const std::string text = verdict_to_json(v);
    const auto again = parse_verdict(text, "v");
    ASSERT_TRUE(again) << again.error().text();
    ASSERT_EQ(verdict_to_json(*again), text);
    ASSERT_EQ(again->reason(), v.reason());
    ASSERT_EQ(again->detail(), v.detail());
    ASSERT_EQ(again->correct(), v.correct());
    ASSERT_EQ(again->measurement().has_value(), v.measurement().has_value());
    ASSERT_EQ(again->mix.loops[0].offset, v.mix.loops[0].offset);
    ASSERT_EQ(again->mix.loops[0].listing, v.mix.loops[0].listing);
    if (!v.measurement()) continue;
    for (std::size_t k = 0; k < 30; k++) {
      const double a = v.measurement()->pairs[1].candidate_s[k], b = again->measurement()->pairs[1].candidate_s[k];
      ASSERT_EQ(std::memcmp(&a, &b, sizeof a), 0) << a;
    }
    ASSERT_EQ(again->measurement()->conditions, v.measurement()->conditions);
  }
}

TEST(Verdict, NaNSurvives) {
  Random r(1);
  Measurement m = a_measurement(r);
  m.seconds = std::nan("");
  const auto again = parse_verdict(verdict_to_json(Verdict::passed(a_report(r), m)), "v");
  ASSERT_TRUE(again);
  EXPECT_TRUE(std::isnan(again->measurement()->seconds));
}

TEST(Verdict, TypesKeepThePromise) {
  Random r(2);
  EXPECT_FALSE(Verdict::rejected(Reason::accepted, "").accepted()) << "acceptance needs a report";
  EXPECT_FALSE(Verdict::missed(Reason::accepted, "", a_report(r), std::nullopt).accepted());
  EXPECT_TRUE(Verdict::passed(a_report(r), a_measurement(r)).accepted());
  EXPECT_FALSE(Verdict::rejected(Reason::crashed, "").correct());

  const std::string text = verdict_to_json(fill(Verdict::passed(a_report(r), a_measurement(r))));
  expect_refused(text,
                 {
                     {"\"reason\":\"accepted\"", "\"reason\":\"fine\"", "reason", "no known reason"},
                     {"\"reason\":\"accepted\"", "\"raeson\":\"accepted\"", "raeson", "did you mean 'reason'"},
                     {"\"correctness\":", "\"correctnes\":", "correctnes", "did you mean 'correctness'"},
                     {"\"measurement\":", "\"build_log2\":", "build_log2", "did you mean"},
                     {"\"checks\":9", "\"checks\":\"9\"", "correctness.checks", "expected an integer"},
                     {"\"comparison\":\"faster\"", "\"comparison\":\"fast\"", "measurement.pairs[0].comparison", "not one of"},
                     {"\"fma\":3", "\"fma\":3.5", "mix.loops[0].fma", "expected an integer"},
                     {"\"offset\":", "\"offset\":-", "mix.loops[0].offset", "negative"},
                     {"\"notes\":[", "\"notes\":[1,", "notes[0]", "expected a string"},
                     {"{\"reason\"", "[\"reason\"", "", "not JSON"},
                 },
                 [](const std::string& t) { return parse_verdict(t, "v"); });
}

TEST(Verdict, MeasurementOnlyOfACorrectKernel) {
  Random r(3);
  Json j = to_json_value(Verdict::missed(Reason::too_slow, "", a_report(r), a_measurement(r)));
  Json without = j;
  without.erase("correctness");
  EXPECT_EQ(read_verdict(without, "v").error().field, "measurement");
  j["reason"] = "accepted";
  EXPECT_TRUE(read_verdict(j, "v"));
  j.erase("measurement");
  EXPECT_EQ(read_verdict(j, "v").error().field, "measurement");
}

TEST(Verdict, ReasonsAreNamedOnce) {
  ASSERT_EQ(all_reasons().size(), 26u);
  for (std::size_t i = 0; i < all_reasons().size(); i++) {
    EXPECT_EQ(static_cast<int>(all_reasons()[i]), static_cast<int>(i));
    EXPECT_EQ(parse_reason(name(all_reasons()[i])), all_reasons()[i]);
  }
  EXPECT_FALSE(parse_reason("no_such"));
}

TEST(Records, EvidenceDiagnosticsAndFloor) {
  Random r(4);
  Evidence e{.subject = "expert x",
             .metrics = {{"seconds", odd(r)}, {"ratio", std::nan("")}},
             .mix = a_mix(),
             .notes = {"n"},
             .hot_symbols = {{"jit", 0.97}, {"lib", 0.03}}};
  const auto again = read_evidence(to_json_value(e), "e");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(dump(to_json_value(*again)), dump(to_json_value(e)));
  EXPECT_EQ(again->hot_symbols, e.hot_symbols);

  const NoiseFloor f = a_measurement(r).floor;
  EXPECT_EQ(dump(to_json_value(*read_noise_floor(to_json_value(f), "f"))), dump(to_json_value(f)));
  const PairedTiming p = a_pair(r);
  EXPECT_EQ(dump(to_json_value(*read_paired_timing(to_json_value(p), "p"))), dump(to_json_value(p)));

  Json list = Json::array();
  for (int i = 0; i < 3; i++)
    list.push_back(to_json_value(
        Diagnostic{.label = "d", .ran = i != 1, .problem = "x", .seconds = odd(r), .against_first = odd(r), .image_sha = "s"}));
  const auto diagnostics = read_diagnostics(list, "d");
  ASSERT_TRUE(diagnostics) << diagnostics.error().text();
  ASSERT_EQ(diagnostics->size(), 3u);
  for (std::size_t i = 0; i < 3; i++) EXPECT_EQ(to_json_value((*diagnostics)[i]), list[i]);
  EXPECT_FALSE(read_diagnostics(Json::object(), "d"));
  list[1]["labell"] = 1;
  EXPECT_EQ(read_diagnostics(list, "d").error().field, "labell");
}

Task a_task() {
  Task t;
  t.operator_name = "gemm_f32", t.target = "cpu:x86-64-avx2", t.reference = "expert:onednn", t.goal = 1.1;
  t.budget = {.candidates = 3, .gate_seconds = 0.1, .wall_seconds = 7, .tokens = 5, .dollars = 0.3};
  t.seed = std::numeric_limits<std::uint64_t>::max(), t.revise = false, t.knowledge = false;
  return t;
}

TEST(Records, Task) {
  const std::string text = task_to_json(a_task());
  const auto again = parse_task(text, "task.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(task_to_json(*again), text);
  EXPECT_EQ(again->seed, a_task().seed);
  EXPECT_FALSE(again->revise);
  expect_refused(text,
                 {
                     {"\"format\": 1", "\"format\": 2", "format", "format 2", 2},
                     {"\"operator\"", "\"operater\"", "operater", "did you mean 'operator'", 3},
                     {"\"expert:onednn\"", "\"expert:\"", "reference", "none of expert", 5},
                     {"\"expert:onednn\"", "\"best\"", "reference", "none of expert", 5},
                     {"\"goal\": 1.1", "\"goal\": -1", "goal", "not negative", 6},
                     {"\"candidates\": 3", "\"candidates\": -3", "budget.candidates", "negative", 8},
                     {"\"candidates\": 3", "\"candidates\": 3000000000", "budget.candidates", "out of range", 8},
                     {"18446744073709551615", "-1", "seed", "negative"},
                     {"18446744073709551615", "1e3", "seed", "expected an integer"},
                 },
                 [](const std::string& t) { return parse_task(t, "task.json"); });
  const auto least = parse_task(R"({"format": 1, "operator": "a", "target": "b", "reference": "none"})", "f");
  ASSERT_TRUE(least);
  EXPECT_EQ(least->budget.candidates, 24);
}

TEST(Records, GenerationAndMachine) {
  Random r(5);
  Generation g;
  g.number = 2, g.operator_name = "o", g.target = "cpu:x86-64-avx2", g.run_id = "r", g.date = "d", g.parent = "expert:x", g.image_sha = "s",
  g.expert = "x 1", g.machine = "m";
  g.package = {.source_name = "kernel.cpp", .source = "int x;\n", .plan_text = "format = 1\n", .origin = "blueprint"};
  g.id = package_hash(g.package);
  g.cites = {"a"}, g.adopted = {"b"}, g.decisions = {{"store", "streaming"}, {"unroll", "4"}};
  g.verdict = fill(Verdict::passed(a_report(r), a_measurement(r)));
  g.against_expert = a_pair(r);
  const std::string text = generation_to_json(g);
  const auto again = parse_generation(text, "record.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(generation_to_json(*again), text);
  EXPECT_EQ(again->decisions, g.decisions);
  EXPECT_EQ(package_hash(again->package), g.id);
  g.against_expert.reset();
  EXPECT_FALSE(parse_generation(generation_to_json(g), "f")->against_expert);
  expect_refused(text,
                 {
                     {"\"number\": 2", "\"number\": -2", "number", "negative", 4},
                     {"\"kernel.cpp\"", "\"../kernel.cpp\"", "package.source_name", "without a folder"},
                     {"\"cites\": [", "\"cites\": [null, ", "cites[0]", "expected a string, found null"},
                     {"\"verdict\"", "\"verdikt\"", "verdikt", "did you mean 'verdict'"},
                 },
                 [](const std::string& t) { return parse_generation(t, "record.json"); });

  Machine m;
  m.target = *find_target("cpu:x86-64-avx2");
  m.model = "A", m.device_class = "c", m.boot_id = "b", m.cores = 2, m.properties = {{"l2_bytes", 1 << 20}},
  m.ceilings = {odd(r), odd(r), 3}, m.environment = {{"kernel", "6"}};
  const auto machine = read_machine(to_json_value(m), "m");
  ASSERT_TRUE(machine) << machine.error().text();
  EXPECT_EQ(to_json_value(*machine), to_json_value(m));
  EXPECT_EQ(machine->properties, m.properties);
}

TEST(Records, PackageHash) {
  const KernelPackage p{.source_name = "kernel.cpp", .source = "ab", .plan_text = "c", .origin = "x"};
  KernelPackage q = p;
  q.origin = "y";
  EXPECT_EQ(package_hash(p), package_hash(q)) << "where it came from is no part of it";
  q.source = "a", q.plan_text = "bc";
  EXPECT_NE(package_hash(p), package_hash(q)) << "parts cannot run into each other";
  q = p;
  q.source_name = "kernel.cu";
  EXPECT_NE(package_hash(p), package_hash(q));
  EXPECT_EQ(package_hash(p).size(), 64u);
  EXPECT_EQ(to_json_value(*read_package(to_json_value(p), "p")), to_json_value(p));
}

TEST(Targets, Known) {
  EXPECT_EQ(find_target("cpu:x86-64-avx512")->vector_bits, 512);
  EXPECT_EQ(find_target("cpu:x86-64-avx2")->flags, (std::vector<std::string>{"-march=x86-64-v3"}));
  EXPECT_EQ(find_target("cuda:sm_90a")->family, "cuda");
  EXPECT_EQ(known_targets().size(), 4u);
  const auto unknown = find_target("cpu:native");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().fix.find("cpu:x86-64-avx2"), std::string::npos);
}

}  // namespace
}  // namespace forge
