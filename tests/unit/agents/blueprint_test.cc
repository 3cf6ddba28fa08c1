// SPDX-License-Identifier: Apache-2.0
#include "core/blueprint.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "build/build.h"
#include "util/process.h"
#include "util/random.h"

namespace forge {
namespace {

const char* const kOperators[] = {"gemm_f32", "softmax_f32", "fused_add_rmsnorm_bf16", "conv2d_f32", "attention_fwd_f32"};
const char* const kTargets[] = {"cpu:x86-64-avx512", "cpu:x86-64-avx2"};

Names machine(const TargetSpec& target) {
  return {{"l1d_bytes", 32768},
          {"l2_bytes", 1 << 20},
          {"l3_bytes", 32 << 20},
          {"cores", 2},
          {"vector_bits", target.vector_bits},
          {"has_avx512", target.vector_bits == 512},
          {"has_avx512_bf16", target.vector_bits == 512},
          {"line_bytes", 64},
          {"page_bytes", 4096}};
}

Paths shipped() {
  Paths paths;
  paths.data = FORGE_SOURCE_DIR;
  return paths;
}

// A small blueprint in a folder of its own; `edit` replaces a piece of its table.
class BlueprintFolder : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = TempDir::make("blueprint");
    ASSERT_TRUE(dir) << dir.error().text();
    m_dir = std::make_unique<TempDir>(std::move(*dir));
    m_paths.data = m_dir->path();
    m_folder = m_dir->path() / "blueprints" / "cpu" / "toy";
    ASSERT_TRUE(make_dirs(m_folder));
    ASSERT_TRUE(write_file_atomic(m_folder / "kernel.cpp.in",
                                  "// {{target}} {{operator}}\nint rows = {{tile_rows}}, columns = {{tile_columns}};\n#define "
                                  "STORE_{{store}} 1\nint l2 = {{l2_bytes}};\n"));
    ASSERT_TRUE(write_file_atomic(m_folder / "launch.toml.in", "grid = \"{{ahead}} + {{store_is_fast}}\"\n"));
  }

  Result<Blueprint> load(const std::string& from = {}, const std::string& to = {}) {
    std::string text = kTable;
    if (!from.empty()) {
      const std::size_t at = text.find(from);
      EXPECT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    }
    EXPECT_TRUE(write_file_atomic(m_folder / "blueprint.toml", text));
    return load_blueprint(m_paths, "toy", *find_target("cpu:x86-64-avx512"));
  }
  void refused(const std::string& from, const std::string& to, const std::string& said) {
    const auto b = load(from, to);
    ASSERT_FALSE(b) << to;
    EXPECT_NE(b.error().text().find(said), std::string::npos) << b.error().text();
    EXPECT_NE(b.error().text().find("blueprint.toml"), std::string::npos) << b.error().text();
  }

  static constexpr const char* kTable = R"(format = 1
operator = "toy"
targets = ["cpu:x86-64-avx512"]
source = "kernel.cpp.in"
launch = "launch.toml.in"

[[decision]]
name = "tile"
kind = "structural"
milestone = 0
limiter = "compute"
default = "4x16"

[[decision.option]]
value = "4x16"
text = "small"

[[decision.option]]
value = "14x32"
text = "large"
when = "vector_bits == 512"

[[decision.option.signature]]
mnemonic = "vfmadd*ps"
scope = "hot_loop"
min = 28

[[decision]]
name = "store"
kind = "structural"
milestone = 1
limiter = "memory"
default = "plain"
depends_on = ["tile"]
option = [{ value = "plain", text = "p" }, { value = "fast", text = "f", when = "has_speed" }]

[[decision]]
name = "ahead"
kind = "local"
milestone = 2
limiter = "latency"
default = "0"
option = [{ value = "0", text = "none" }, { value = "8", text = "eight" }]

[[constraint]]
must = "tile_rows * tile_columns <= 64 || ahead == 8"
message = "large tiles need a distance"
)";
  std::unique_ptr<TempDir> m_dir;
  Paths m_paths;
  fs::path m_folder;
};

TEST_F(BlueprintFolder, LoadsEveryField) {
  const auto b = load();
  ASSERT_TRUE(b) << b.error().text();
  EXPECT_EQ(b->source_name, "kernel.cpp");
  ASSERT_EQ(b->decisions.size(), 3u);
  const BlueprintDecision& tile = b->decisions[0];
  EXPECT_TRUE(tile.structural);
  EXPECT_FALSE(b->decisions[2].structural);
  EXPECT_EQ(b->decisions[2].milestone, 2);
  EXPECT_EQ(b->decisions[1].limiter, "memory");
  EXPECT_EQ(b->decisions[1].depends_on, std::vector<std::string>{"tile"});
  ASSERT_EQ(tile.options.size(), 2u);
  EXPECT_TRUE(tile.options[0].signature.empty());
  ASSERT_EQ(tile.options[1].signature.all.size(), 1u);
  EXPECT_EQ(tile.options[1].signature.all[0].min, 28);
  EXPECT_EQ(tile.options[1].signature.all[0].scope, Scope::hot_loop);
  EXPECT_EQ(default_choices(*b), (Choices{{"tile", "4x16"}, {"store", "plain"}, {"ahead", "0"}}));
}

TEST_F(BlueprintFolder, RendersValuesAndDerivedNames) {
  const auto b = load();
  ASSERT_TRUE(b) << b.error().text();
  const TargetSpec target = *find_target("cpu:x86-64-avx512");
  Names names = machine(target);
  names["has_speed"] = 1;
  const auto p = render(*b, {{"tile", "14x32"}, {"store", "fast"}, {"ahead", "8"}}, target, names);
  ASSERT_TRUE(p) << p.error().text();
  EXPECT_EQ(p->source, "// cpu:x86-64-avx512 toy\nint rows = 14, columns = 32;\n#define STORE_fast 1\nint l2 = 1048576;\n");
  EXPECT_EQ(p->plan_text, "grid = \"8 + 1\"\n");
  EXPECT_EQ(p->source_name, "kernel.cpp");
  EXPECT_EQ(p->origin, "blueprint toy");
}

// Operators that differ in a constant share one blueprint.
TEST_F(BlueprintFolder, LikeTakesAnotherOperatorsBlueprint) {
  ASSERT_TRUE(load());
  const TargetSpec target = *find_target("cpu:x86-64-avx512");
  const auto write = [&](const std::string& name, const std::string& text) {
    const fs::path folder = m_folder.parent_path() / name;
    ASSERT_TRUE(make_dirs(folder));
    ASSERT_TRUE(write_file_atomic(folder / "blueprint.toml", text));
  };
  write("toy2", "format = 1\noperator = \"toy2\"\nlike = \"toy\"\n");
  const auto b = load_blueprint(m_paths, "toy2", target);
  ASSERT_TRUE(b) << b.error().text();
  EXPECT_EQ(b->operator_name, "toy2");
  EXPECT_EQ(b->folder, m_folder);
  const auto p = render(*b, default_choices(*b), target, machine(target));
  ASSERT_TRUE(p) << p.error().text();
  EXPECT_EQ(p->source.substr(0, 26), "// cpu:x86-64-avx512 toy2\n");

  const auto said = [&](const std::string& name, const std::string& text) {
    write(name, text);
    const auto bad = load_blueprint(m_paths, name, target);
    return bad ? std::string() : bad.error().text();
  };
  EXPECT_NE(said("toy3", "format = 1\noperator = \"toy3\"\nlike = \"toy2\"\n").find("like = \"toy\""), std::string::npos);
  EXPECT_NE(said("toy4", "format = 1\noperator = \"toy4\"\nlike = \"../cpu/toy\"\n").find("no operator's name"), std::string::npos);
  EXPECT_NE(said("toy5", "format = 1\noperator = \"toy5\"\nlike = \"toy\"\nsource = \"a.in\"\n").find("source"), std::string::npos);
  EXPECT_NE(said("toy6", "format = 1\noperator = \"toy6\"\nlike = \"none\"\n").find("none"), std::string::npos);
}

TEST_F(BlueprintFolder, PossibleFollowsTheMachine) {
  const auto b = load();
  ASSERT_TRUE(b) << b.error().text();
  EXPECT_EQ(possible(b->decisions[0], {{"vector_bits", 512}}).size(), 2u);
  EXPECT_EQ(possible(b->decisions[0], {{"vector_bits", 256}}).size(), 1u);
  EXPECT_EQ(possible(b->decisions[1], {}).size(), 1u);  // an unknown property: not possible
}

TEST_F(BlueprintFolder, ChecksChoices) {
  const auto b = load();
  ASSERT_TRUE(b) << b.error().text();
  const Names names = {{"vector_bits", 512}};
  const auto said = [&](const Choices& c) {
    const Status s = check_choices(*b, c, names);
    return s ? std::string() : s.error().text();
  };
  EXPECT_EQ(said(default_choices(*b)), "");
  EXPECT_NE(said({{"tile", "14x32"}, {"store", "plain"}, {"ahead", "0"}}).find("large tiles need a distance"), std::string::npos);
  EXPECT_EQ(said({{"tile", "14x32"}, {"store", "plain"}, {"ahead", "8"}}), "");
  EXPECT_NE(said({{"tile", "5x5"}, {"store", "plain"}, {"ahead", "0"}}).find("options: 4x16, 14x32"), std::string::npos);
  EXPECT_NE(said({{"tile", "4x16"}, {"store", "fast"}, {"ahead", "0"}}).find("has_speed is false"), std::string::npos);
  EXPECT_NE(said({{"tile", "4x16"}, {"store", "plain"}}).find("nothing was chosen"), std::string::npos);
  EXPECT_NE(said({{"tile", "4x16"}, {"store", "plain"}, {"ahead", "0"}, {"tiles", "1"}}).find("tile"), std::string::npos);
  EXPECT_FALSE(render(*b, {{"tile", "14x32"}, {"store", "plain"}, {"ahead", "0"}}, *find_target("cpu:x86-64-avx512"), names));
}

TEST_F(BlueprintFolder, RefusesBadTables) {
  refused("limiter = \"compute\"", "limiters = \"compute\"", "limiter");
  refused("kind = \"structural\"", "kind = \"large\"", "'large' is unknown");
  refused("default = \"4x16\"", "default = \"4x17\"", "'4x17' is none of the options");
  refused("default = \"plain\"", "default = \"fast\"", "not possible on every machine");
  refused("depends_on = [\"tile\"]", "depends_on = [\"ahead\"]", "'ahead' is no earlier decision");
  refused("name = \"store\"", "name = \"tile\"", "'tile' is taken already");
  refused("name = \"store\"", "name = \"tile_rows\"", "'tile_rows' is taken already");
  refused("milestone = 2", "milestone = 99", "milestone");
  refused("value = \"14x32\"", "value = \"4x16\"", "'4x16' is listed twice");
  refused("value = \"14x32\"", "value = \"14 x 32\"", "only letters");
  refused("when = \"vector_bits == 512\"", "when = \"vector_bits ==\"", "when");
  refused("source = \"kernel.cpp.in\"", "source = \"../kernel.cpp.in\"", "no template beside this file");
  refused("operator = \"toy\"", "operator = \"tool\"", "folder is 'toy'");
  refused("targets = [\"cpu:x86-64-avx512\"]", "targets = [\"cpu:x86-64-avx2\"]", "does not know cpu:x86-64-avx512");
  refused("format = 1", "format = 2", "format");
}

TEST_F(BlueprintFolder, NamesWhatIsMissing) {
  const auto none = load_blueprint(m_paths, "none", *find_target("cpu:x86-64-avx2"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::not_found);
  EXPECT_FALSE(load_blueprint(m_paths, "../cpu/toy", *find_target("cpu:x86-64-avx2")));
  ASSERT_TRUE(write_file_atomic(m_folder / "kernel.cpp.in", "\n{{tyle_rows}}\n"));
  const auto b = load();
  ASSERT_TRUE(b) << b.error().text();
  const auto p = render(*b, default_choices(*b), *find_target("cpu:x86-64-avx512"), machine(*find_target("cpu:x86-64-avx512")));
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().line, 2);
  EXPECT_NE(p.error().fix.find("tile_rows"), std::string::npos);
}

// A table with the stages "read" and "store", and a source that marks them.
class Stages : public BlueprintFolder {
 protected:
  static constexpr const char* kEnd = "message = \"large tiles need a distance\"\n";
  static constexpr const char* kRows = R"(message = "large tiles need a distance"
[[stage]]
name = "read"
text = "the loads"
[[stage]]
name = "store"
text = "the stores"
)";
  void SetUp() override {
    BlueprintFolder::SetUp();
    source("a;\n  //@stage store\nput({{tile_rows}});\n//@without\nkeep({{tile_columns}});\n//@end\nb;\n//@stage read\nget();\n//@end\n");
  }
  void source(const std::string& text) const { ASSERT_TRUE(write_file_atomic(m_folder / "kernel.cpp.in", text)); }
  Result<KernelPackage> rendered(const std::string& without) {
    FORGE_TRY_ASSIGN(const Blueprint b, load(kEnd, kRows));
    const TargetSpec target = *find_target("cpu:x86-64-avx512");
    return render(b, default_choices(b), target, machine(target), without);
  }
  void said(int line, const std::string& what) {
    const auto b = load(kEnd, kRows);
    ASSERT_FALSE(b) << what;
    EXPECT_EQ(b.error().line, line) << b.error().text();
    EXPECT_NE(b.error().text().find(what), std::string::npos) << b.error().text();
  }
};

TEST_F(Stages, AreLeftOutOneAtATime) {
  const auto b = load(kEnd, kRows);
  ASSERT_TRUE(b) << b.error().text();
  ASSERT_EQ(b->stages.size(), 2u);
  EXPECT_EQ(b->stages[1].name, "store");
  EXPECT_EQ(b->stages[1].text, "the stores");
  EXPECT_EQ(rendered("")->source, "a;\nput(4);\nb;\nget();\n") << "as it would be without stages";
  EXPECT_EQ(rendered("store")->source, "a;\nkeep(16);\nb;\nget();\n");
  EXPECT_EQ(rendered("read")->source, "a;\nput(4);\nb;\n");
  EXPECT_EQ(rendered("store")->origin, "blueprint toy without store");
  const auto none = rendered("stores");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("no stage 'stores'"), std::string::npos) << none.error().text();
}

TEST_F(Stages, BadTablesAndMarksAreNamed) {
  const auto refused_rows = [&](const std::string& from, const std::string& to, const std::string& said) {
    std::string rows = kRows;
    rows.replace(rows.find(from), from.size(), to);
    refused(kEnd, rows, said);
  };
  refused_rows("text = \"the stores\"", "texts = \"the stores\"", "texts");
  refused_rows("name = \"store\"", "name = \"read\"", "'read' is listed twice");
  refused_rows("name = \"store\"", "name = \"the store\"", "only letters");
  refused_rows("[[stage]]\nname = \"read\"\ntext = \"the loads\"\n",
               "[[stage]]\nname = \"write\"\ntext = \"w\"\n[[stage]]\nname = \"read\"\ntext = \"r\"\n", "no template marks 'write'");
  source("\n//@stage stoer\n//@end\n");
  said(2, "'stoer' is no stage of this blueprint");
  source("//@stage store\n//@stage read\n//@end\n");
  said(2, "'store' has not ended yet");
  source("\n\n//@stage store\n");
  said(3, "'store' does not end");
  for (const char* alone : {"//@without\n", "//@end\n", "//@stage\n", "//@ends\n"}) {
    source(alone);
    said(1, "makes no sense here");
  }
  source("//@stage store\n//@without\n//@without\n//@end\n");
  said(3, "makes no sense here");
}

// ---- the blueprints that we ship ----

struct Shipped {
  Blueprint blueprint;
  Definition definition;
  TargetSpec target;
  Names names;
};

Shipped open_shipped(const std::string& op, const std::string& target_name) {
  Shipped s;
  s.target = *find_target(target_name);
  s.names = machine(s.target);
  auto b = load_blueprint(shipped(), op, s.target);
  EXPECT_TRUE(b) << b.error().text();
  if (b) s.blueprint = std::move(*b);
  const fs::path file = fs::path(FORGE_SOURCE_DIR) / "operators" / op / "definition.json";
  const auto text = read_file(file);
  EXPECT_TRUE(text) << text.error().text();
  auto d = parse_definition(text.value_or(""), file.string());
  EXPECT_TRUE(d) << d.error().text();
  if (d) s.definition = std::move(*d);
  return s;
}

// Compiles as the builder does, only without its sandbox and without optimisation: what does not depend on values.
testing::AssertionResult compiles(const Shipped& s, const KernelPackage& p) {
  const std::string file = "launch.toml";
  const auto plan = parse_launch_plan(p.plan_text, file);
  if (!plan) return testing::AssertionFailure() << plan.error().text() << "\n" << p.plan_text;
  const Status ok = check_plan(*plan, s.definition, s.target, file);
  if (!ok) return testing::AssertionFailure() << ok.error().text() << "\n" << p.plan_text;
  for (const std::int64_t rows : {1, 37, 1024}) {
    AxisValues given;  // the first variable axis is `rows` long, others 3
    for (const Axis& axis : s.definition.axes)
      if (!axis.constant) given[axis.name] = given.empty() ? rows : 3;
    const auto axes = complete_axes(s.definition, given);
    if (!axes) return testing::AssertionFailure() << axes.error().text();
    const auto concrete = make_concrete(*plan, *axes, 2, 2);
    if (!concrete) return testing::AssertionFailure() << concrete.error().text();
    std::int64_t blocks = 0;
    for (const ConcreteLaunch& l : concrete->launches) blocks += l.grid;
    if (blocks < 1) return testing::AssertionFailure() << "no block for " << rows << " rows";
  }
  const auto dir = TempDir::make("render");
  if (!dir) return testing::AssertionFailure() << dir.error().text();
  if (!write_file_atomic(dir->path() / "kernel.cpp", p.source)) return testing::AssertionFailure() << "write";
  if (!write_file_atomic(dir->path() / "forge_args.h", make_args_header(*plan, s.definition, s.target)))
    return testing::AssertionFailure() << "write";
  ProcessOptions run;
  run.argv = {"g++",
              "-std=c++20",
              "-O0",
              "-ffreestanding",
              "-fno-exceptions",
              "-fno-rtti",
              "-Wall",
              "-Wextra",
              "-Werror",
              "-Wno-unused-function",
              "-Wno-unused-const-variable",
              "-fsyntax-only",
              "kernel.cpp"};
  run.argv.insert(run.argv.end(), s.target.flags.begin(), s.target.flags.end());
  run.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  run.cwd = dir->path();
  const auto done = run_process(run);
  if (!done) return testing::AssertionFailure() << done.error().text();
  if (done->exit_code != 0) return testing::AssertionFailure() << done->output.substr(0, 4000);
  return testing::AssertionSuccess();
}

std::string describe(const Choices& c) {
  std::string out;
  for (const auto& [name, value] : c) out += name + "=" + value + " ";
  return out;
}

TEST(ShippedBlueprints, DefaultsAreAlwaysPossibleAndPlain) {
  for (const char* op : kOperators)
    for (const char* target : kTargets) {
      const Shipped s = open_shipped(op, target);
      const Status ok = check_choices(s.blueprint, default_choices(s.blueprint), s.names);
      EXPECT_TRUE(ok) << op << " " << target << ": " << ok.error().text();
      int structural = 0, local = 0;
      for (const BlueprintDecision& d : s.blueprint.decisions) (d.structural ? structural : local)++;
      EXPECT_GE(structural, 4) << op;
      EXPECT_GE(local, 3) << op;
    }
}

// Every option of every decision, the others at their defaults or at a random value that the constraints allow.
TEST(ShippedBlueprints, EveryOptionRendersAndCompiles) {
  if (find_program("g++").empty()) GTEST_SKIP() << "no g++";
  Random random(20240607);
  for (const char* op : kOperators)
    for (const char* target : kTargets) {
      const Shipped s = open_shipped(op, target);
      std::set<std::string> tried;
      for (const BlueprintDecision& d : s.blueprint.decisions)
        for (const BlueprintOption* o : possible(d, s.names)) {
          Choices choices;
          bool found = false;
          for (int attempt = 0; attempt < 400 && !found; attempt++) {
            choices = default_choices(s.blueprint);
            if (attempt > 0)
              for (const BlueprintDecision& other : s.blueprint.decisions) {
                const auto options = possible(other, s.names);
                choices[other.name] = options[random.below(options.size())]->value;
              }
            choices[d.name] = o->value;
            found = check_choices(s.blueprint, choices, s.names).has_value();
          }
          ASSERT_TRUE(found) << op << ": no combination allows " << d.name << "=" << o->value;
          if (!tried.insert(describe(choices)).second) continue;
          const auto p = render(s.blueprint, choices, s.target, s.names);
          ASSERT_TRUE(p) << p.error().text();
          EXPECT_TRUE(compiles(s, *p)) << op << " " << target << ": " << describe(choices);
        }
    }
}

// Through the real builder: what is left out is gone from the image, and nothing else goes with it.
TEST(ShippedBlueprints, AStageIsLeftOutAlone) {
  const auto compiler = find_cpu_compiler();
  if (!compiler) GTEST_SKIP() << compiler.error().text();
  Builder builder(**compiler, {});
  const Shipped s = open_shipped("softmax_f32", "cpu:x86-64-avx512");
  const auto count = [](const InstructionMix& mix, const std::string& start) {
    std::int64_t n = 0;
    for (const auto& [mnemonic, times] : mix.mnemonics)
      if (mnemonic.starts_with(start)) n += times;
    return n;
  };
  const auto built = [&](const Choices& choices, const std::string& without) -> InstructionMix {
    const auto p = render(s.blueprint, choices, s.target, s.names, without);
    EXPECT_TRUE(p) << p.error().text();
    if (!p) return {};
    EXPECT_TRUE(compiles(s, *p)) << without << ": " << describe(choices);
    const auto image = builder.build(*p, s.definition, s.target);
    EXPECT_TRUE(image) << without << ": " << describe(choices) << image.error().detail << image.error().log.substr(0, 2000);
    return image ? *disassemble_object(image->bytes) : InstructionMix{};
  };
  for (const BlueprintOption* row_pass : possible(
           *std::find_if(s.blueprint.decisions.begin(), s.blueprint.decisions.end(), [](const auto& d) { return d.name == "row_pass"; }),
           s.names)) {
    Choices choices = default_choices(s.blueprint);
    choices["row_pass"] = row_pass->value;
    if (row_pass->value != "three_pass") choices["store"] = "nontemporal";
    const InstructionMix whole = built(choices, ""), no_store = built(choices, "store"), no_exp = built(choices, "exponential");
    const std::string where = describe(choices);
    const bool streams = choices["store"] == "nontemporal";
    EXPECT_EQ(count(whole, "vmovntps") > 0, streams) << where;
    EXPECT_EQ(count(no_store, "vmovntps"), 0) << where;
    EXPECT_EQ(count(no_exp, "vmovntps") > 0, streams) << where;  // how often depends on how the compiler splits the loops
    const auto products = [&](const InstructionMix& mix) { return count(mix, "vfm") + count(mix, "vfnm"); };
    EXPECT_GT(products(no_store), products(no_exp)) << where;
    EXPECT_GT(products(whole), products(no_exp)) << where;
    EXPECT_GT(count(no_exp, "vmaxps"), 0) << where;
  }
}

// Through the real builder: optimised, admitted, and every mechanism check true where its option was chosen.
TEST(ShippedBlueprints, OptionsWithASignatureShowItInTheImage) {
  const auto compiler = find_cpu_compiler();
  if (!compiler) GTEST_SKIP() << compiler.error().text();
  Builder builder(**compiler, {});
  for (const char* op : kOperators)
    for (const char* target : kTargets) {
      const Shipped s = open_shipped(op, target);
      std::vector<Choices> all{default_choices(s.blueprint)};
      for (const BlueprintDecision& d : s.blueprint.decisions)
        for (const BlueprintOption* o : possible(d, s.names)) {
          if (o->signature.empty()) continue;
          Choices choices = default_choices(s.blueprint);
          if (d.name == "broadcast") choices["register_block"] = choices.count("halo") ? "4x64" : "6x64";
          if (d.name == "store" && choices.count("row_pass")) choices["row_pass"] = "resident";
          choices[d.name] = o->value;
          all.push_back(choices);
        }
      for (const Choices& choices : all) {
        const auto p = render(s.blueprint, choices, s.target, s.names);
        ASSERT_TRUE(p) << p.error().text();
        const auto image = builder.build(*p, s.definition, s.target);
        ASSERT_TRUE(image) << op << " " << target << ": " << describe(choices) << image.error().detail << "\n"
                           << image.error().log.substr(0, 2000);
        const auto mix = disassemble_object(image->bytes);
        ASSERT_TRUE(mix) << mix.error().text();
        EXPECT_EQ(mix->undecoded, 0);
        for (const BlueprintDecision& d : s.blueprint.decisions)
          for (const BlueprintOption& o : d.options) {
            if (o.signature.empty() || choices.at(d.name) != o.value) continue;
            const SignatureResult seen = check_signature(o.signature, *mix);
            EXPECT_TRUE(seen.ok) << op << " " << target << ": " << d.name << "=" << o.value << ": "
                                 << (seen.found.empty() ? "" : seen.found[0]);
          }
        if (choices != all.front()) continue;
        for (const BlueprintDecision& d : s.blueprint.decisions)  // the plain choice must not pass for a mechanism
          for (const BlueprintOption* o : possible(d, s.names))
            if (!o->signature.empty() && d.name != "prefetch_a" && d.name != "broadcast") {  // packing prefetches and broadcasts too
              EXPECT_FALSE(check_signature(o->signature, *mix).ok)
                  << op << " " << target << ": " << d.name << "=" << o->value << " by default";
            }
      }
    }
}

}  // namespace
}  // namespace forge
