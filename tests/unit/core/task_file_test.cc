// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "bad_input.h"
#include "core/operator.h"
#include "util/fs.h"

namespace forge {
namespace {

Definition gemm() {
  return *parse_definition(R"JSON({"name": "gemm", "op_type": "gemm",
    "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 64}, "K": {"type": "const", "value": 32}},
    "inputs": {"A": {"shape": ["M", "K"], "dtype": "float32"}, "B": {"shape": ["N", "K"], "dtype": "float32"}},
    "outputs": {"C": {"shape": ["M", "N"], "dtype": "float32"}},
    "reference": "def run(A, B):\n  return A @ B.T\n"})JSON",
                           "definition.json");
}

const char* kGoodTask = R"TOML(format = 1
operator = "gemm"
workspace_limit_bytes = 1e6

[timed]
axes = { M = 1024 }

[cost]
flops = "2 * M * N * K"
bytes = "4 * (M * K + N * K + M * N)"

[[workload]]
name = "small"
axes = { M = 1 }
generator = "shifted"

[[hidden]]
axis = "M"
min = 1
max = 1500
count = 3
always = [1, 17]

[[judge]]
output = "C"
kind = "scaled"
tolerance = 2e-6
source = "Higham"

[[generator]]
name = "normal"
kind = "normal"

[[generator]]
name = "shifted"
kind = "heavy_tailed"
scale = 0.5
offset = { A = 1 }

[[symmetry]]
kind = "permute"
axis = "M"

[[symmetry]]
kind = "negate"
axis = "K"
tensors = ["A", "B"]
)TOML";

Result<TaskFile> parsed_task(const std::string& text) { return parse_task_file(text, "task.toml", gemm()); }

TEST(TaskFile, ReadsEverything) {
  const auto t = parsed_task(kGoodTask);
  ASSERT_TRUE(t) << t.error().text();
  EXPECT_EQ(t->timed.name, "timed");
  EXPECT_EQ(t->timed.axes.at("M"), 1024);
  EXPECT_EQ(t->timed.generator, "normal");
  ASSERT_EQ(t->workloads.size(), 1u);
  EXPECT_EQ(t->workloads[0].generator, "shifted");
  ASSERT_EQ(t->hidden.size(), 1u);
  EXPECT_EQ(t->hidden[0].max, 1500);
  EXPECT_EQ(t->hidden[0].count, 3);
  EXPECT_EQ(t->hidden[0].always, (std::vector<std::int64_t>{1, 17}));
  ASSERT_EQ(t->judges.size(), 1u);
  EXPECT_EQ(t->judges[0].kind, JudgeKind::scaled);
  EXPECT_EQ(t->judges[0].tolerance, 2e-6);
  EXPECT_EQ(t->generators[1].kind, GeneratorKind::heavy_tailed);
  EXPECT_EQ(t->generators[1].offset.at("A"), 1.0);
  EXPECT_EQ(t->symmetries[1].tensors, (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(t->workspace_limit_bytes, 1e6);
  EXPECT_EQ(*evaluate(t->flops, {{"M", 1}, {"N", 64}, {"K", 32}}), 4096);
}

TEST(TaskFile, RefusesAndSaysWhere) {
  expect_refused(kGoodTask,
                 {
                     {"format = 1", "format = 3", "format", "format 3", 1},
                     {"operator = \"gemm\"", "operator = \"gem\"", "operator", "the definition is called 'gemm'", 2},
                     {"workspace_limit_bytes = 1e6", "workspace_limit_bytes = 0", "workspace_limit_bytes", "positive", 3},
                     {"workspace_limit_bytes", "workspace_limit", "workspace_limit", "did you mean 'workspace_limit_bytes'", 3},
                     {"[timed]\naxes = { M = 1024 }", "", "timed", "missing"},
                     {"axes = { M = 1024 }", "", "timed.axes", "missing", 5},
                     {"{ M = 1024 }", "{ M = 0 }", "timed.axes.M", "not between 1", 6},
                     {"{ M = 1024 }", "{ M = 3000000000 }", "timed.axes.M", "not between 1", 6},
                     {"{ M = 1024 }", "{ M = 1024, N = 64 }", "timed.axes.N", "constant: 64", 6},
                     {"{ M = 1024 }", "{ m = 1024 }", "timed.axes.m", "no axis 'm'", 6},
                     {"{ M = 1024 }", "{}", "timed.axes", "'M' has no value", 6},
                     {"{ M = 1024 }", "{ M = \"x\" }", "timed.axes.M", "expected an integer", 6},
                     {"2 * M * N * K", "2 * M * N * Q", "cost.flops", "unknown name 'Q'", 9},
                     {"2 * M * N * K", "2 * M *", "cost.flops", "missing at column", 9},
                     {"2 * M * N * K", "M / (N - 64)", "cost.flops", "right side of /", 9},
                     {"flops = \"2 * M * N * K\"", "", "cost.flops", "missing", 8},
                     {"name = \"small\"", "name = \"timed\"", "workload[0].name", "'timed' is taken", 13},
                     {"generator = \"shifted\"", "generator = \"shiftd\"", "workload[0].generator", "did you mean 'shifted'", 15},
                     {"axis = \"M\"", "axis = \"N\"", "hidden[0].axis", "constant", 18},
                     {"min = 1\n", "min = 0\n", "hidden[0].min", "at least 1", 19},
                     {"max = 1500", "max = 0", "hidden[0].max", "between min", 20},
                     {"count = 3", "count = -1", "hidden[0].count", "not between", 21},
                     {"[1, 17]", "[1, 0]", "hidden[0].always[1]", "not between 1", 22},
                     {"output = \"C\"", "output = \"D\"", "judge[0].output", "no output 'D'", 25},
                     {"kind = \"scaled\"", "kind = \"exact\"", "judge[0].tolerance", "exact judge has no tolerance", 27},
                     {"kind = \"scaled\"", "kind = \"scale\"", "judge[0].kind", "did you mean 'scaled'", 26},
                     {"tolerance = 2e-6", "tolerance = \"2u\"", "judge[0].tolerance", "expected a number", 27},
                     {"tolerance = 2e-6", "tolerance = -1", "judge[0].tolerance", "negative", 27},
                     {"tolerance = 2e-6", "tolerance = 0", "judge[0].tolerance", "positive tolerance", 27},
                     {"tolerance = 2e-6", "tolerance = inf", "judge[0].tolerance", "finite", 27},
                     {"tolerance = 2e-6", "tolerence = 2e-6", "judge[0].tolerence", "did you mean 'tolerance'", 27},
                     {"source = \"Higham\"", "", "judge[0].source", "missing", 24},
                     {"source = \"Higham\"", "source = \"\"", "judge[0].source", "must not be empty", 28},
                     {"[[judge]]", "[[judges]]", "judges", "did you mean 'judge'", 24},
                     {"[[generator]]\nname = \"normal\"",
                      "[[judge]]\noutput = \"C\"\nkind = \"relative\"\ntolerance = 1\nsource = \"s\"\n[[generator]]\nname = \"normal\"",
                      "judge[1].output", "two judges", 31},
                     {"kind = \"normal\"", "kind = \"uniform\"", "generator[0].kind", "not one of normal", 32},
                     {"name = \"normal\"", "name = \"shifted\"", "generator[1].name", "stands twice", 35},
                     {"scale = 0.5", "scale = 0", "generator[1].scale", "positive", 37},
                     {"{ A = 1 }", "{ C = 1 }", "generator[1].offset.C", "no input 'C'", 38},
                     {"kind = \"permute\"", "kind = \"permute\"\ntensors = [\"A\"]", "symmetry[0].tensors", "every tensor", 42},
                     {"axis = \"K\"", "axis = \"Q\"", "symmetry[1].axis", "no axis 'Q'", 46},
                     {"[\"A\", \"B\"]", "[\"A\", \"Z\"]", "symmetry[1].tensors[1]", "no tensor 'Z'", 47},
                     {"[\"A\", \"B\"]", "[\"A\", \"C\"]", "symmetry[1].tensors[1]", "does not have axis 'K'", 47},
                     {"[\"A\", \"B\"]", "[\"A\", \"A\"]", "symmetry[1].tensors[0]", "stands twice", 47},
                     {"[\"A\", \"B\"]", "[]", "symmetry[1].tensors", "names the tensors", 47},
                 },
                 parsed_task);
}

TEST(TaskFile, FamiliesAndWhatIsTimedOnThem) {
  const auto both = parsed_task(kGoodTask);
  EXPECT_EQ(both->families, (std::vector<std::string>{"cpu", "cuda"}));
  EXPECT_EQ(timed_workload(*both, "cuda").axes.at("M"), 1024);
  const std::string timed = "[timed]\naxes = { M = 1024 }\n",
                    on = timed + "[timed_on.cuda]\naxes = { M = 8192 }\ngenerator = \"shifted\"\n";
  const auto own = parsed_task(replaced(kGoodTask, timed, on));
  ASSERT_TRUE(own) << own.error().text();
  EXPECT_EQ(timed_workload(*own, "cuda").axes.at("M"), 8192);
  EXPECT_EQ(timed_workload(*own, "cuda").generator, "shifted");
  EXPECT_EQ(timed_workload(*own, "cpu").axes.at("M"), 1024);
  const auto gpu = parsed_task(replaced(kGoodTask, "format = 1", "format = 1\nfamilies = [\"cuda\"]"));
  ASSERT_TRUE(gpu) << gpu.error().text();
  EXPECT_EQ(gpu->families, (std::vector<std::string>{"cuda"}));
  const std::string good = replaced(kGoodTask, timed, on);
  expect_refused(good.c_str(),
                 {
                     {"format = 1", "format = 1\nfamilies = []", "families", "names no family", 2},
                     {"format = 1", "format = 1\nfamilies = [\"gpu\"]", "families[0]", "no family 'gpu'"},
                     {"format = 1", "format = 1\nfamilies = [\"cpu\", \"cpu\"]", "families[0]", "stands twice"},
                     {"format = 1", "format = 1\nfamilies = [\"cpu\"]", "timed_on.cuda.axes", "'cuda' is not among", 9},
                     {"timed_on.cuda", "timed_on.hip", "timed_on.hip", "unknown", 7},
                     {"{ M = 8192 }", "{ M = 0 }", "timed_on.cuda.axes.M", "not between 1", 8},
                     {"generator = \"shifted\"", "generator = \"shiftd\"", "timed_on.cuda.generator", "did you mean 'shifted'", 9},
                 },
                 parsed_task);
}

TEST(TaskFile, IndexesAreJudgedThroughAnInput) {
  const auto definition = *parse_definition(R"JSON({"name": "topk", "op_type": "topk",
    "axes": {"rows": {"type": "var"}, "columns": {"type": "const", "value": 64}, "k": {"type": "const", "value": 8}},
    "inputs": {"x": {"shape": ["rows", "columns"], "dtype": "float32"}, "h": {"shape": ["columns"], "dtype": "float16"}},
    "outputs": {"values": {"shape": ["rows", "k"], "dtype": "float32"}, "indices": {"shape": ["rows", "k"], "dtype": "int32"}},
    "reference": "def run(x, h):\n  return 0\n"})JSON",
                                            "definition.json");
  const std::string good = R"TOML(format = 1
operator = "topk"
timed.axes = { rows = 4 }
cost = { flops = 0, bytes = "rows" }
[[generator]]
name = "normal"
kind = "normal"
[[judge]]
output = "values"
kind = "exact"
source = "definition"
[[judge]]
output = "indices"
kind = "indexes"
of = "x"
values = "values"
source = "definition"
)TOML";
  const auto parse_topk = [&](const std::string& text) { return parse_task_file(text, "task.toml", definition); };
  const auto task = parse_topk(good);
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->judges[1].kind, JudgeKind::indexes);
  EXPECT_EQ(task->judges[1].of, "x");
  EXPECT_EQ(task->judges[1].values, "values");
  EXPECT_STREQ(name(JudgeKind::indexes), "indexes");
  expect_refused(good.c_str(),
                 {
                     {"of = \"x\"\n", "", "judge[1].of", "names the input", 12},
                     {"of = \"x\"", "of = \"y\"", "judge[1].of", "no input 'y'", 15},
                     {"of = \"x\"", "of = \"h\"", "judge[1].values", "does not have the type of 'h'", 16},
                     {"values = \"values\"", "values = \"indices\"", "judge[1].values", "no other output 'indices'", 16},
                     {"values = \"values\"", "values = \"values\"\ntolerance = 1", "judge[1].tolerance", "no tolerance", 17},
                     {"values = \"values\"", "values = \"values\"\nrelative = 1", "judge[1].relative", "only a scaled", 17},
                     {"kind = \"exact\"", "kind = \"exact\"\nof = \"x\"", "judge[0].of", "only an indexes", 11},
                     {"kind = \"exact\"", "kind = \"relative\"\ntolerance = 1", "judge", "not judged exact"},
                     {"output = \"indices\"\nkind = \"indexes\"\nof = \"x\"\nvalues = \"values\"",
                      "output = \"indices\"\nkind = \"exact\"\nvalues = \"values\"", "judge[1].values", "only an indexes", 15},
                 },
                 parse_topk);
}

TEST(TaskFile, AScaledJudgeMayHaveRelativeAndAbsoluteParts) {
  const auto task = parsed_task(replaced(kGoodTask, "tolerance = 2e-6", "tolerance = 2e-6\nrelative = 5e-4\nabsolute = 3e-8"));
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->judges[0].relative, 5e-4);
  EXPECT_EQ(task->judges[0].absolute, 3e-8);
}

TEST(TaskFile, RelativeAndExactJudges) {
  const std::string scaled = "kind = \"scaled\"\ntolerance = 2e-6";
  EXPECT_TRUE(parsed_task(replaced(kGoodTask, scaled, "kind = \"exact\"")));
  EXPECT_TRUE(parsed_task(replaced(kGoodTask, scaled, "kind = \"relative\"\nabsolute = 1e-5")));
  EXPECT_FALSE(parsed_task(replaced(kGoodTask, scaled, "kind = \"relative\"")));
}

// The operators of this repository are read by the program that is built from it.
TEST(TaskFile, ReadsTheRepositorysOperators) {
  int count = 0;
  for (const auto& folder : fs::directory_iterator(fs::path(FORGE_SOURCE_DIR) / "operators")) {
    const fs::path definition_file = folder.path() / "definition.json", task_file = folder.path() / "task.toml";
    if (!fs::exists(definition_file)) continue;
    const auto definition = parse_definition(*read_file(definition_file), definition_file.string());
    ASSERT_TRUE(definition) << definition.error().text();
    const auto task = parse_task_file(*read_file(task_file), task_file.string(), *definition);
    EXPECT_TRUE(task) << task.error().text();
    count++;
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace forge
