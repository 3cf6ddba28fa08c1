// SPDX-License-Identifier: Apache-2.0
#include "knowledge/knowledge.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "build/build.h"
#include "gate/catalog.h"

namespace forge {
namespace {

const char* const kEntry = R"(# a comment that must survive
format = 1
id = "ID"
title = "Title of ID"
targets = ["cpu:*"]
mechanism = "streams whole lines"
applies = "output_bytes > l3_bytes"
symptoms = ["slow stores"]
limitations = []
origin = "a test"

[probe]
operator = "stream_f32"
min_effect = 0.05

[[advice]]
decision = "store"
value = "nontemporal"
when = "memory_percent < 90"
because = "a test says so"
)";

class KnowledgeTest : public testing::Test {
 protected:
  TempDir dir = std::move(*TempDir::make("knowledge"));
  Machine machine;
  KnowledgeTest() {
    machine.target = *find_target("cpu:x86-64-avx2");
    machine.device_class = "cpu:Test-1-1";
    machine.properties = {{"l3_bytes", 1000}};
  }
  void add(const std::string& id, const std::string& change_from = "", const std::string& change_to = "") {
    std::string text = kEntry;
    for (std::size_t at; (at = text.find("ID")) != std::string::npos;) text.replace(at, 2, id);
    if (!change_from.empty()) text.replace(text.find(change_from), change_from.size(), change_to);
    fs::create_directories(dir.path() / "cpu" / id);
    std::ofstream(dir.path() / "cpu" / id / "entry.toml") << text;
  }
  void certify_as(const std::string& id, EntryState outcome, double effect, bool applicable = true) {
    Entry e = *KnowledgeBase::load(dir.path())->find(id);
    Certification c;
    c.device_class = machine.device_class;
    c.applicable = applicable;
    c.comparison = effect > 1 ? Comparison::faster : Comparison::same;
    c.effect = {effect - 0.01, effect, effect + 0.01};
    c.outcome = outcome;
    ASSERT_TRUE(write_certification(e, c));
  }
  std::vector<Retrieved> get(Names names) { return retrieve(*KnowledgeBase::load(dir.path()), machine, names); }
  const Names big = {{"output_bytes", 2000}, {"l3_bytes", 1000}, {"memory_percent", 50}};
};

TEST_F(KnowledgeTest, RetrievesWhatAppliesAndOnlyTheAdviceWhoseConditionHolds) {
  add("a");
  ASSERT_EQ(get(big).size(), 1u);
  EXPECT_EQ(get(big)[0].advice.size(), 1u);
  Names fast = big;
  fast["memory_percent"] = 95;
  EXPECT_TRUE(get(fast)[0].advice.empty());
  Names small = big;
  small["output_bytes"] = 10;
  EXPECT_TRUE(get(small).empty());
  EXPECT_TRUE(get({}).empty()) << "an unknown name must make a condition false";
}

TEST_F(KnowledgeTest, StrongestCertifiedEffectFirst) {
  add("a"), add("b"), add("c");
  certify_as("b", EntryState::certified, 1.3);
  certify_as("c", EntryState::certified, 1.5);
  const auto found = get(big);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].entry.id, "c");
  EXPECT_EQ(found[1].entry.id, "b");
  EXPECT_EQ(found[2].entry.id, "a");
  EXPECT_DOUBLE_EQ(found[2].effect, 1);
  EXPECT_EQ(found[2].state, EntryState::proposed);
}

TEST_F(KnowledgeTest, RefutedHereAndRetiredAreLeftOut) {
  add("a"), add("b");
  certify_as("a", EntryState::refuted, 0.99);
  ASSERT_TRUE(set_retired(dir.path(), "b", true));
  EXPECT_TRUE(get(big).empty());
  machine.device_class = "cpu:Other-2-2";  // refuted on one class says nothing of another
  EXPECT_EQ(get(big).size(), 1u);
}

TEST_F(KnowledgeTest, NotApplicableHereIsNoCertification) {
  add("a");
  certify_as("a", EntryState::proposed, 1, false);
  ASSERT_EQ(get(big).size(), 1u);
  EXPECT_EQ(get(big)[0].state, EntryState::proposed);
}

TEST_F(KnowledgeTest, RetiringKeepsTheFileAndCanBeTakenBack) {
  add("a");
  const std::string before = *read_file(dir.path() / "cpu/a/entry.toml");
  ASSERT_TRUE(set_retired(dir.path(), "a", true));
  EXPECT_NE(read_file(dir.path() / "cpu/a/entry.toml")->find("a comment that must survive"), std::string::npos);
  EXPECT_TRUE(KnowledgeBase::load(dir.path())->find("a")->retired);
  ASSERT_TRUE(set_retired(dir.path(), "a", false));
  EXPECT_FALSE(KnowledgeBase::load(dir.path())->find("a")->retired);
  EXPECT_EQ(*read_file(dir.path() / "cpu/a/entry.toml"), before);
  auto missing = set_retired(dir.path(), "aa", true);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::not_found);
}

TEST_F(KnowledgeTest, AFolderWithAnotherNameThanItsIdIsRefused) {
  add("a");
  fs::rename(dir.path() / "cpu/a", dir.path() / "cpu/b");
  auto r = KnowledgeBase::load(dir.path());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().field, "id");
}

TEST_F(KnowledgeTest, ADamagedEntryHidesNoOtherFromAListAndStopsWhatDecides) {
  add("a"), add("torn"), add("unmeasured"), add("lost"), add("z");
  std::ofstream(dir.path() / "cpu/torn/entry.toml") << std::string(kEntry).substr(0, 100);
  fs::create_directories(dir.path() / "cpu/unmeasured/evidence");
  std::ofstream(dir.path() / "cpu/unmeasured/evidence/a.json") << "{\"format\": 1, \xff";
  fs::remove(dir.path() / "cpu/lost/entry.toml");
  fs::create_directories(dir.path() / "zz");
  fs::copy(dir.path() / "cpu/a", dir.path() / "zz/a", fs::copy_options::recursive);  // an id that is there already
  const auto base = KnowledgeBase::load_readable(dir.path());
  ASSERT_TRUE(base) << base.error().text();
  ASSERT_EQ(base->entries().size(), 2u);
  EXPECT_TRUE(base->find("a") && base->find("z"));
  std::map<std::string, std::string> files;
  for (const DamagedEntry& d : base->damaged()) {
    files[d.id] = d.error.file;
    EXPECT_TRUE(d.id == "torn" || !d.error.fix.empty()) << d.error.text();  // of a text its line says enough
  }
  const std::map<std::string, std::string> wanted = {{"torn", (dir.path() / "cpu/torn/entry.toml").string()},
                                                     {"unmeasured", (dir.path() / "cpu/unmeasured/evidence/a.json").string()},
                                                     {"lost", (dir.path() / "cpu/lost/entry.toml").string()},
                                                     {"a", (dir.path() / "zz/a/entry.toml").string()}};
  EXPECT_EQ(files, wanted);
  EXPECT_FALSE(KnowledgeBase::load(dir.path()));
  ASSERT_TRUE(set_retired(dir.path(), "z", true));
  const auto torn = set_retired(dir.path(), "torn", true);
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().file, wanted.at("torn"));
}

TEST_F(KnowledgeTest, OneFamilyIsReadAlone) {
  add("a");
  fs::rename(dir.path() / "cpu", dir.path() / "proposed");
  fs::create_directories(dir.path() / "runs" / "a-run");
  const auto base = KnowledgeBase::load_readable(dir.path(), "proposed");
  ASSERT_TRUE(base) << base.error().text();
  EXPECT_EQ(base->entries().size(), 1u);
  EXPECT_TRUE(base->damaged().empty());
}

TEST_F(KnowledgeTest, SearchRanksTitlesAboveBodies) {
  add("a"), add("lines");
  const KnowledgeBase base = *KnowledgeBase::load(dir.path());
  const auto found = base.search("lines");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].id, "lines");
  EXPECT_TRUE(base.search("nothing-of-the-kind").empty());
}

TEST_F(KnowledgeTest, AnEntryIsFoundByItsIdWhateverItsFamily) {
  const std::vector<std::string> ids = {"b", "d", "a", "c"};
  for (const auto& id : ids) add(id);
  fs::create_directories(dir.path() / "zz");
  fs::rename(dir.path() / "cpu" / "a", dir.path() / "zz" / "a");  // comes last, though its id is the first
  const KnowledgeBase base = *KnowledgeBase::load(dir.path());
  ASSERT_EQ(base.entries().size(), 4u);
  EXPECT_EQ(base.entries()[3].id, "a");
  for (const auto& id : ids) {
    const auto found = base.find(id);
    ASSERT_TRUE(found) << id;
    EXPECT_EQ(found->id, id);
  }
  for (const char* missing : {"", "aa", "z"}) EXPECT_FALSE(base.find(missing)) << missing;
  EXPECT_FALSE(KnowledgeBase().find("a"));
}

TEST_F(KnowledgeTest, LedgerSurvivesATornLineAndRepeats) {
  const UseRow row{.entry = "a", .operator_name = "gemm_f32", .run = "r1", .generation = "g", .use = Use::cited};
  ASSERT_TRUE(record_uses(dir.path(), {row}));
  std::ofstream(dir.path() / "uses.jsonl", std::ios::app) << R"({"entry":"b","oper)";
  ASSERT_TRUE(
      record_uses(dir.path(), {row, {.entry = "c", .operator_name = "gemm_f32", .run = "r1", .generation = "g", .use = Use::adopted}}));
  const auto uses = read_uses(dir.path());
  ASSERT_TRUE(uses);
  ASSERT_EQ(uses->size(), 2u);  // a once, c; the torn b is gone
  EXPECT_EQ((*uses)[1].entry, "c");
  EXPECT_EQ((*uses)[1].use, Use::adopted);
}

TEST_F(KnowledgeTest, LedgerHoldsARowOnceWhoeverRepeatsIt) {
  const UseRow row{.entry = "a", .operator_name = "gemm_f32", .run = "r1", .generation = "", .use = Use::cited};
  UseRow sealed = row;
  sealed.generation = "g";  // confirmed only after it was resumed
  std::vector<std::jthread> resumed;
  for (int i = 0; i < 4; ++i) resumed.emplace_back([&] { EXPECT_TRUE(record_uses(dir.path(), {row, sealed, row})); });
  resumed.clear();
  const auto uses = read_uses(dir.path());
  ASSERT_TRUE(uses);
  EXPECT_EQ(uses->size(), 1u);
}

TEST(ShippedKnowledge, EveryEntryHasAllPartsAndItsProbeIsBuiltAndToldApartByItsSignature) {
  const fs::path root = fs::path(FORGE_SOURCE_DIR) / "knowledge";
  const auto base = KnowledgeBase::load(root);
  ASSERT_TRUE(base) << base.error().text();
  EXPECT_GE(base->entries().size(), 8u);
  auto compiler = find_cpu_compiler();
  ASSERT_TRUE(compiler);
  Builder builder(**compiler, {});
  int with_signature = 0;
  for (const Entry& e : base->entries()) {
    SCOPED_TRACE(e.id);
    if (fs::path(e.folder).parent_path().filename() != "cpu") continue;
    EXPECT_FALSE(e.mechanism.empty() || e.symptoms.empty() || e.limitations.empty() || e.origin.empty() || e.advice.empty());
    const Paths paths{.data = FORGE_SOURCE_DIR, .plugins = fs::path(FORGE_BINARY_DIR) / "plugins", .home = {}};
    const Paths toys = with_probe_operators(paths, e.probe_operator);
    const auto json = read_file(toys.data / "operators" / e.probe_operator / "definition.json");
    ASSERT_TRUE(json) << json.error().text();
    const Definition definition = *parse_definition(*json, "definition.json");
    const TargetSpec target = *find_target(e.probe_requires.empty() ? "cpu:x86-64-avx2" : "cpu:x86-64-avx512");
    Machine machine;
    machine.target = target;
    machine.properties = {{"l1d_bytes", 32768},
                          {"l2_bytes", 1 << 20},
                          {"l3_bytes", 32 << 20},
                          {"cores", 2},
                          {"line_bytes", 64},
                          {"page_bytes", 4096},
                          {"vector_bits", target.vector_bits}};
    SignatureResult seen[2];
    int i = 0;
    for (const ProbeSide side : {ProbeSide::baseline, ProbeSide::mechanism}) {
      const auto package = probe_package(e, side, paths, machine);
      ASSERT_TRUE(package) << package.error().text();
      const auto image = builder.build(*package, definition, target);
      ASSERT_TRUE(image) << name(side) << ": " << image.error().detail << image.error().log;
      seen[i++] = check_signature(e.signature, *disassemble_object(image->bytes));
    }
    if (e.signature.empty()) continue;
    ++with_signature;
    EXPECT_TRUE(seen[1].ok) << "the mechanism does not show its own signature";
    if (e.id == "online-softmax") continue;  // its two sweeps use the same instructions
    EXPECT_FALSE(seen[0].ok) << "the baseline shows the mechanism's signature";
  }
  EXPECT_GE(with_signature, 8);
}

// What the shipped evidence says of this project's own machine: a wrong file name or a lost file would take knowledge away silently.
TEST(ShippedKnowledge, AtLeastTwelveEntriesAreCertifiedOnOneClassOfCpu) {
  const auto base = KnowledgeBase::load(fs::path(FORGE_SOURCE_DIR) / "knowledge");
  ASSERT_TRUE(base) << base.error().text();
  int certified = 0;
  for (const Entry& e : base->entries()) certified += state_on(e, "cpu:AuthenticAMD-25-17") == EntryState::certified;
  EXPECT_GE(certified, 12);
}

class ShippedCudaKnowledge : public testing::Test {
 protected:
  const fs::path source = FORGE_SOURCE_DIR;
  const TargetSpec target = *find_target("cuda:sm_90a");
  Machine machine;
  Paths paths;
  std::vector<Entry> entries;
  void SetUp() override {
    machine.target = target;
    machine.properties = {{"sm_count", 132}};
    paths.data = source;
    paths.plugins = fs::path(FORGE_BINARY_DIR) / "plugins";
    const auto base = KnowledgeBase::load(source / "knowledge");
    ASSERT_TRUE(base) << base.error().text();
    for (const Entry& e : base->entries())
      if (fs::path(e.folder).parent_path().filename() == "cuda") entries.push_back(e);
  }
  Definition definition(const Entry& e) const {
    const fs::path toy = source / "knowledge/operators" / e.probe_operator / "definition.json";
    const fs::path file = fs::exists(toy) ? toy : source / "operators" / e.probe_operator / "definition.json";
    return *parse_definition(*read_file(file), file.string());
  }
  KernelPackage package(const Entry& e, ProbeSide side) const {
    const auto p = probe_package(e, side, paths, machine);
    EXPECT_TRUE(p) << p.error().text();
    return p ? *p : KernelPackage{};
  }
};

TEST_F(ShippedCudaKnowledge, EveryEntryHasAllPartsAndPlansThatFit) {
  EXPECT_GE(entries.size(), 16u);
  int with_signature = 0;
  for (const Entry& e : entries) {
    SCOPED_TRACE(e.id);
    EXPECT_FALSE(e.mechanism.empty() || e.symptoms.empty() || e.limitations.empty() || e.origin.empty() || e.advice.empty());
    with_signature += !e.signature.empty();
    const Definition d = definition(e);
    for (const ProbeSide side : {ProbeSide::baseline, ProbeSide::mechanism}) {
      const auto plan = parse_launch_plan(package(e, side).plan_text, name(side));
      ASSERT_TRUE(plan) << plan.error().text();
      const Status fits = check_plan(*plan, d, target, name(side));
      EXPECT_TRUE(fits) << fits.error().text();
    }
    EXPECT_NE(package_hash(package(e, ProbeSide::baseline)), package_hash(package(e, ProbeSide::mechanism)));
  }
  EXPECT_GE(with_signature, 16);
}

TEST_F(ShippedCudaKnowledge, AProbeThatItsBlueprintCannotRenderNamesTheEntry) {
  Entry e = entries.front();
  e.probe_mechanism["no_such_decision"] = "1";
  const auto p = probe_package(e, ProbeSide::mechanism, paths, machine);
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().file, e.folder + "/entry.toml");
  EXPECT_NE(p.error().text().find("no_such_decision"), std::string::npos) << p.error().text();
}

// A sample, for nvcc takes two seconds a package; all of them with FORGE_ALL_PROBES=1.
TEST_F(ShippedCudaKnowledge, AProbeIsBuiltAndToldApartByItsSignature) {
  const std::set<std::string> sample = {"streaming-hints", "vectors-in-flight", "bulk-row-ring", "cluster-multicast"};
  const auto compiler = find_cuda_compiler();
  if (!compiler) GTEST_SKIP() << compiler.error().text();
  Builder builder(**compiler, {});
  std::map<std::string, InstructionMix> known;  // by package: many probes share one
  for (const Entry& e : entries) {
    SCOPED_TRACE(e.id);
    if (!std::getenv("FORGE_ALL_PROBES") && !sample.count(e.id)) continue;
    SignatureResult seen[2];
    int i = 0;
    for (const ProbeSide side : {ProbeSide::baseline, ProbeSide::mechanism}) {
      const KernelPackage p = package(e, side);
      const std::string key = e.probe_operator + package_hash(p);
      if (!known.count(key)) {
        const auto image = builder.build(p, definition(e), target);
        ASSERT_TRUE(image) << name(side) << ": " << image.error().detail << image.error().log;
        const auto mix = disassemble_cubin(image->bytes);
        ASSERT_TRUE(mix) << mix.error().text();
        known[key] = *mix;
      }
      seen[i++] = check_signature(e.signature, known[key]);
    }
    if (e.signature.empty() || !known.begin()->second.notes.empty()) continue;  // a note: opcodes alone, no modifiers
    EXPECT_TRUE(seen[1].ok) << "the mechanism does not show its own signature: " << seen[1].found.front();
    EXPECT_FALSE(seen[0].ok) << "the baseline shows the mechanism's signature";
  }
}

}  // namespace
}  // namespace forge
