// SPDX-License-Identifier: Apache-2.0
#include "gate/catalog.h"

#include "gate/oracle_plugin.h"
#include "gate/thread_team.h"
#include "toy_operator.h"
#include "util/progress.h"

namespace forge {
namespace {

TEST(Catalog, LoadsAnOperatorFolder) {
  const auto op = load_operator(toy_paths(), "toy_affine");
  ASSERT_TRUE(op) << op.error().text();
  EXPECT_EQ(op->definition.inputs.size(), 2u);
  EXPECT_EQ(op->task.judges.size(), 2u);
  EXPECT_TRUE(op->experts.empty());
  const auto names = operator_names(toy_paths());
  EXPECT_NE(std::find(names.begin(), names.end(), "toy_affine"), names.end());
}

TEST(Catalog, FindsExpertsByName) {
  const fs::path folder = toy_paths().plugins / "toy_affine";
  ASSERT_TRUE(write_file_atomic(folder / "expert-zeta.so", ""));
  ASSERT_TRUE(write_file_atomic(folder / "expert-alpha.so", ""));
  ASSERT_TRUE(write_file_atomic(folder / "other.so", ""));
  const auto op = load_operator(toy_paths(), "toy_affine");
  for (const char* file : {"expert-zeta.so", "expert-alpha.so", "other.so"}) fs::remove(folder / file);
  ASSERT_TRUE(op);
  ASSERT_EQ(op->experts.size(), 2u);
  EXPECT_EQ(op->experts[0].first, "alpha");
  EXPECT_EQ(op->experts[1].first, "zeta");
}

TEST(Catalog, ExpertsAndTimingAreTheFamilys) {
  auto home = TempDir::make();
  ASSERT_TRUE(home);
  const fs::path data = home->path() / "data", plugins = home->path() / "plugins/toy_affine";
  const Paths paths{.data = data, .plugins = home->path() / "plugins", .home = data};
  fs::create_directories(data / "operators");
  fs::create_directories(plugins);
  fs::copy(toy_paths().data / "operators/toy_affine", data / "operators/toy_affine");
  for (const char* file : {"oracle.so", "expert-a.so", "expert-a.py", "cuda-expert-b.so", "cuda-expert-c.py", "cuda-expert-d.txt"})
    ASSERT_TRUE(write_file_atomic(plugins / file, ""));
  const fs::path task = data / "operators/toy_affine/task.toml";
  const std::string text = *read_file(task);
  const auto timed = load_operator(paths, "toy_affine");
  ASSERT_TRUE(timed) << timed.error().text();
  const auto [axis, value] = *timed->task.timed.axes.begin();
  ASSERT_TRUE(write_file_atomic(task, text + "\n[timed_on.cuda]\naxes = { " + axis + " = 77 }\n"));

  const auto cpu = load_operator(paths, "toy_affine"), cuda = load_operator(paths, "toy_affine", "cuda");
  ASSERT_TRUE(cpu && cuda);
  EXPECT_EQ(cpu->task.timed.axes.at(axis), value);
  EXPECT_EQ(cuda->task.timed.axes.at(axis), 77);
  ASSERT_EQ(cpu->experts.size(), 1u);
  EXPECT_EQ(cpu->experts[0].first, "a");
  ASSERT_EQ(cuda->experts.size(), 2u);
  EXPECT_EQ(cuda->experts[0].first, "b");
  EXPECT_EQ(cuda->experts[1].second, plugins / "cuda-expert-c.py");
  EXPECT_EQ(operator_names(paths, "cuda"), operator_names(paths));

  ASSERT_TRUE(write_file_atomic(task, "families = [\"cuda\"]\n" + text));
  const auto refused = load_operator(paths, "toy_affine");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_EQ(refused.error().field, "families");
  const auto any = load_operator(paths, "toy_affine", "");
  ASSERT_TRUE(any) << any.error().text();
  EXPECT_EQ(any->family, "cuda");
  EXPECT_TRUE(operator_names(paths, "cpu").empty());
  EXPECT_EQ(operator_names(paths, "cuda").size(), 1u);
}

TEST(Catalog, AnUnknownOperatorListsTheKnownOnes) {
  const auto op = load_operator(toy_paths(), "toy_afine");
  ASSERT_FALSE(op);
  EXPECT_EQ(op.error().code, Code::not_found);
  EXPECT_NE(op.error().text().find("toy_affine"), std::string::npos) << op.error().text();
  EXPECT_EQ(load_operator(toy_paths(), "../operators/toy_affine").error().code, Code::bad_input);
  EXPECT_EQ(load_operator(toy_paths(), "").error().code, Code::bad_input);
}

TEST(Catalog, NamesTheFileThatIsMissingOrMalformed) {
  auto folder = TempDir::make();
  ASSERT_TRUE(folder);
  const fs::path data = folder->path() / "data", plugins = folder->path() / "plugins";
  const Paths paths{.data = data, .plugins = plugins, .home = data};
  fs::create_directories(data / "operators");
  fs::copy(toy_paths().data / "operators/toy_affine", data / "operators/toy_affine");
  const auto error = [&] { return load_operator(paths, "toy_affine").error(); };
  EXPECT_NE(error().text().find("oracle.so"), std::string::npos);  // not built
  EXPECT_FALSE(error().fix.empty());

  const fs::path task = data / "operators/toy_affine/task.toml", definition = data / "operators/toy_affine/definition.json";
  ASSERT_TRUE(write_file_atomic(task, "format = 1\noperator = \"toy_affine\"\nnonsense = 3\n"));
  EXPECT_EQ(error().file, task.string());
  EXPECT_NE(error().text().find("nonsense"), std::string::npos) << error().text();
  fs::remove(task);
  EXPECT_EQ(error().code, Code::not_found);
  EXPECT_EQ(error().file, task.string());
  ASSERT_TRUE(write_file_atomic(task, ""));
  ASSERT_TRUE(write_file_atomic(definition, "{"));
  EXPECT_EQ(error().file, definition.string());
  fs::remove(definition);
  EXPECT_EQ(error().code, Code::not_found);
  EXPECT_EQ(error().file, definition.string());
}

TEST(OraclePlugin, RefusesWhatIsNotOne) {
  auto folder = TempDir::make();
  ASSERT_TRUE(folder);
  const fs::path source = folder->path() / "p.cc", plugin = folder->path() / "oracle.so";
  EXPECT_FALSE(OraclePlugin::load(plugin, "x"));
  ASSERT_TRUE(write_file_atomic(plugin, "not a library"));
  EXPECT_EQ(OraclePlugin::load(plugin, "x").error().file, plugin.string());
  fs::remove(plugin);
  const auto load_built = [&](const std::string& text) {
    EXPECT_TRUE(write_file_atomic(source, text));
    static int number = 0;
    const fs::path place = folder->path() / std::to_string(number++);
    EXPECT_TRUE(build_plugin(source, place));
    return OraclePlugin::load(place / "oracle.so", "x");
  };
  EXPECT_FALSE(load_built("int nothing;"));
  const std::string head =
      "#include \"forge/oracle.h\"\nextern \"C\" const forge_oracle_v1* forge_oracle(void) { static const forge_oracle_v1 o{";
  const auto old = load_built(head + "0, \"x\", nullptr, nullptr}; return &o; }");
  ASSERT_FALSE(old);
  EXPECT_NE(old.error().message.find("version 0"), std::string::npos);
  EXPECT_FALSE(load_built(head + "FORGE_ORACLE_VERSION, \"y\", nullptr, nullptr}; return &o; }"));
  EXPECT_FALSE(load_built(head + "FORGE_ORACLE_VERSION, \"x\", nullptr, nullptr}; return &o; }"));
}

TEST(OraclePlugin, StopsBetweenTwoRanges) {
  auto folder = TempDir::make();
  ASSERT_TRUE(folder);
  const fs::path source = folder->path() / "p.cc";
  ASSERT_TRUE(write_file_atomic(source, R"(#include "forge/oracle.h"
static int32_t expected(const forge_tensor*, int32_t, const forge_tensor*, int32_t, double* const*, double* const*, int64_t, int64_t) {
  return 0;
}
extern "C" const forge_oracle_v1* forge_oracle(void) {
  static const forge_oracle_v1 o{FORGE_ORACLE_VERSION, "x", expected, nullptr};
  return &o;
})"));
  ASSERT_TRUE(build_plugin(source, folder->path()));
  const auto plugin = OraclePlugin::load(folder->path() / "oracle.so", "x");
  ASSERT_TRUE(plugin) << plugin.error().text();
  TensorView y{.spec = {}, .shape = {1000, 2}, .data = nullptr};
  y.spec.shape.resize(2);
  ThreadTeam team({0});
  int taken = 0;
  const Status s = plugin->expected({}, {y}, {false}, team, [&](const OracleRange&) {
    if (++taken == 3) request_stop();
  });
  reset_stop();
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, Code::interrupted);
  EXPECT_EQ(taken, 3);
  taken = 0;
  EXPECT_TRUE(plugin->expected({}, {y}, {false}, team, [&](const OracleRange&) { ++taken; }));
  EXPECT_GT(taken, 3);
}

}  // namespace
}  // namespace forge
