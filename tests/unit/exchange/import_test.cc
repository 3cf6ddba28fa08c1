// SPDX-License-Identifier: Apache-2.0
// What importers take, what they refuse and say, and that no text whatever brings them down.
#include "exchange/import.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <random>

#include "exchange/python_text.h"
#include "exchange/task_yaml.h"

namespace forge {
namespace {

constexpr const char* kNorm = R"json({"name": "norm_d64", "op_type": "norm", "extra": 1,
 "axes": {"rows": {"type": "var"}, "dim": {"type": "const", "value": 64}},
 "inputs": {"x": {"shape": ["rows", "dim"], "dtype": "bfloat16"}, "eps": {"shape": null, "dtype": "float32"}},
 "outputs": {"y": {"shape": ["rows", "dim"], "dtype": "bfloat16"}},
 "reference": "def run(x, eps):\n  return x\n"})json";
constexpr const char* kLines =
    R"json({"definition": "norm_d64", "workload": {"uuid": "a", "axes": {"rows": 7}, "inputs": {"eps": {"type": "scalar", "value": 1e-6}}}}
{"definition": "norm_d64", "solution": null, "workload": {"uuid": "b", "axes": {"rows": 300}, "inputs": {"x": {"type": "safetensors", "path": "p", "tensor_key": "x"}}}}
no line
{"uuid": "bare", "axes": {"rows": 7}}
)json";
constexpr const char* kProblem = R"py(import torch
class Model(torch.nn.Module):
    """A # text with def forward(self): in it"""
    def __init__(self):
        super().__init__()
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)  # the product
M, K = 3, 4
batch_size = 16
K = 8 * 2
N = 5
def get_inputs():
    A = torch.rand(batch_size, K)
    return [A, torch.rand(
        K, N, dtype=torch.float32).cuda() * 2.0]
def get_init_inputs():
    return []
)py";
constexpr const char* kTask = R"yaml(# name: product
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
lang: "py"
description: |
  A text: with a colon
    - and what looks like a list
tests:
  - {"m": 64, "k": 32, "seed": 1, "kind": "odd"}
  - m: 8
    k: 4
benchmarks:
  - {"m": 128, "k": 128, "seed": 43214}
)yaml";
constexpr const char* kReference = R"py(import torch
def ref_kernel(data):
    return data[0]
def generate_input(m: int, k: int, seed: int):
    gen = torch.Generator(device="cuda")
    a = torch.empty((m, k), device="cuda", dtype=torch.float16)
    b = torch.randn(k, 16, generator=gen)
    return (a, b)
)py";

class Import : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::make("import");
    ASSERT_TRUE(made);
    m_folder = std::make_unique<TempDir>(std::move(*made));
  }
  fs::path put(const std::string& name, const std::string& content) {
    const fs::path file = m_folder->path() / name;
    EXPECT_TRUE(make_dirs(file.parent_path()));
    EXPECT_TRUE(write_file_atomic(file, content));
    return file;
  }
  ImportItem only(const fs::path& path) {
    auto items = import_tasks(path);
    if (!items || items->size() != 1) {
      ADD_FAILURE() << (items ? "not one item" : items.error().text());
      return {};
    }
    return std::move(items->front());
  }
  static std::string file_of(const ImportItem& item, const std::string& name) {
    if (!item.taken) {
      ADD_FAILURE() << (item.refused ? item.refused->text() : "nothing");
      return {};
    }
    for (const ExportedFile& f : item.taken->files)
      if (f.name == name) return f.content;
    ADD_FAILURE() << "no " << name;
    return {};
  }
  std::string refusal(const fs::path& path) {
    const ImportItem item = only(path);
    return item.refused ? item.refused->text() : "taken";
  }
  static bool has(const std::vector<std::string>& lines, const std::string& part) {
    for (const std::string& l : lines)
      if (l.find(part) != std::string::npos) return true;
    return false;
  }
  std::unique_ptr<TempDir> m_folder;
};

TEST_F(Import, DefinitionWithItsWorkloads) {
  const fs::path definition = put("definitions/norm/norm_d64.json", kNorm);
  put("workloads/norm/norm_d64.jsonl", kLines);
  for (const fs::path& path : {definition, m_folder->path()}) {
    const ImportItem item = only(path);
    EXPECT_EQ(file_of(item, "definition.json"), kNorm);
    const std::string task = file_of(item, "task.toml");
    EXPECT_NE(task.find("[timed]\naxes = { rows = 300 }"), std::string::npos) << task;
    EXPECT_NE(task.find("axes = { rows = 7 }"), std::string::npos);
    EXPECT_NE(task.find("offset = { eps = 1e-06 }"), std::string::npos);
    EXPECT_TRUE(has(item.taken->missing, "judge for output y"));
    EXPECT_TRUE(has(item.taken->missing, "oracle"));
    EXPECT_TRUE(has(item.taken->notes, "1 lines of workloads could not be read"));
    EXPECT_TRUE(has(item.taken->notes, "recorded content for x"));
  }
}

// What is MISSING does not load; once it is filled in, it does.
TEST_F(Import, TaskFileLoadsOnceItIsComplete) {
  put("workloads/norm/norm_d64.jsonl", kLines);
  const ImportItem item = only(put("definitions/norm/norm_d64.json", kNorm));
  const Definition definition = *parse_definition(kNorm, "definition.json");
  std::string task = file_of(item, "task.toml");
  EXPECT_FALSE(parse_task_file(task, "task.toml", definition));
  task +=
      "\n[[judge]]\noutput = \"y\"\nkind = \"relative\"\ntolerance = 0.01\nsource = \"a test\"\n[cost]\nflops = \"rows\"\nbytes = "
      "\"rows\"\n";
  const auto parsed = parse_task_file(task, "task.toml", definition);
  ASSERT_TRUE(parsed) << parsed.error().text() << "\n" << task;
  EXPECT_EQ(parsed->timed.axes.at("rows"), 300);
  ASSERT_EQ(parsed->workloads.size(), 1u);  // the bare line has the shape of the first
}

TEST_F(Import, DefinitionsThatCannotBeTaken) {
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = kNorm;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
    return refusal(put("one.json", text));
  };
  EXPECT_NE(changed("norm_d64", "norm/../d64").find("rename it"), std::string::npos);
  EXPECT_NE(changed("\"rows\"", "\"class\"").find("no C identifier"), std::string::npos);
  EXPECT_NE(changed("bfloat16", "complex64").find("no dtype of FlashInfer-Trace"), std::string::npos);
  EXPECT_NE(changed("\"dim\"]", "\"depth\"]").find("no axis is called"), std::string::npos);
  put("two/definitions/norm/a.json", kNorm);
  put("two/definitions/norm/b.json", kNorm);
  const auto items = import_tasks(m_folder->path() / "two");
  ASSERT_TRUE(items);
  ASSERT_EQ(items->size(), 2u);
  EXPECT_TRUE((*items)[0].taken);
  EXPECT_NE((*items)[1].refused->text().find("was defined before"), std::string::npos);
}

TEST_F(Import, SamplingHasNoOneAnswer) {
  std::string text = kNorm;
  text.replace(text.find("return x"), 8, "return torch.multinomial(x, 1)");
  EXPECT_TRUE(has(only(put("one.json", text)).taken->missing, "torch.multinomial, so that outputs are random draws"));
}

TEST_F(Import, KernelBenchProblemsWhoseShapesArePlain) {
  const ImportItem item = only(put("level1/7_Product.py", kProblem));
  const auto d = parse_definition(file_of(item, "definition.json"), "definition.json");
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(d->name, "kernelbench_7_Product");
  EXPECT_EQ(find_tensor(*d, "A")->shape, (std::vector<std::string>{"batch_size", "K"}));
  EXPECT_EQ(find_tensor(*d, "out")->shape, (std::vector<std::string>{"batch_size", "N"}));
  EXPECT_FALSE(find_axis(*d, "batch_size")->constant);
  EXPECT_EQ(find_axis(*d, "K")->value, 16);
  EXPECT_EQ(file_of(item, "reference.py"), kProblem);
}

TEST_F(Import, KernelBenchProblemsThatNeedPythonSayWhichLine) {
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kProblem;
    text.replace(text.find(from), from.size(), to);
    return refusal(put("p.py", text));
  };
  EXPECT_NE(with("super().__init__()", "self.fc = torch.nn.Linear(3, 4)").find("p.py:5: the model makes weights"), std::string::npos);
  EXPECT_NE(with("torch.rand(batch_size, K)", "make_it(3)").find("p.py:13: what 'A = make_it(3)' makes"), std::string::npos);
  EXPECT_NE(with("return [A, ", "return [").find("forward takes 2 arguments and get_inputs gives 1"), std::string::npos);
  EXPECT_NE(with("def forward(self, A", "def backward(self, A").find("no class Model with forward"), std::string::npos);
  std::string unknown = kProblem;
  unknown.replace(unknown.find("torch.matmul(A, B)"), 18, "self.helper(A, B)");
  const ImportItem item = only(put("p.py", unknown));
  ASSERT_TRUE(item.taken);
  EXPECT_TRUE(has(item.taken->missing, "the outputs: what forward returns"));
}

TEST_F(Import, KernelBenchShapesThatAreNotPlainAreNotTaken) {
  const auto problem = [&](const std::string& forward, const std::string& before, const std::string& inputs, const std::string& head = "") {
    return only(put("p.py", "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return " + forward +
                                "\ndim = 1024\nbatch_size = 16\n" + before + "\ndef get_inputs(" + head + "):\n    return [" + inputs +
                                "]\n"));
  };
  const std::string plain = "torch.rand(batch_size, dim)";
  const ImportItem taken = problem("torch.softmax(x, dim=1)", "", plain);
  EXPECT_NE(file_of(taken, "definition.json").find("\"out\""), std::string::npos);
  for (const char* forward : {"torch.softmax(x, dim=1).sum(dim=1)", "torch.relu(x) + torch.relu(x)", "torch.relu(x)(x)",
                              "torch.cumsum(x, dim=1, dtype=torch.int64)"}) {
    const ImportItem item = problem(forward, "", plain);
    EXPECT_NE(file_of(item, "IMPORT.md").find("the outputs: what forward returns"), std::string::npos) << forward;
    EXPECT_EQ(file_of(item, "definition.json").find("\"out\""), std::string::npos) << forward;
  }
  const ImportItem integers = problem("torch.exp(x)", "", "torch.randint(0, 9, (batch_size, dim))");
  EXPECT_NE(file_of(integers, "IMPORT.md").find("the outputs: what forward returns"), std::string::npos);
  for (const char* before : {"dim *= 4", "batch_size = int(os.environ[\"B\"])", "dim, x = 8, 9"}) {
    const ImportItem item = problem("torch.relu(x)", before, plain);
    ASSERT_TRUE(item.refused) << before;
    EXPECT_NE(item.refused->text().find("is not known without running it"), std::string::npos) << before;
  }
  EXPECT_TRUE(problem("torch.relu(x)", "", plain, "dim=3").refused);
}

TEST_F(Import, GpuModeShapesThatAreNotPlainAreNotTaken) {
  put("mul/task.yml", kTask);
  const auto missing = [&](const std::string& from, const std::string& to) {
    std::string text = kReference;
    text.replace(text.find(from), from.size(), to);
    put("mul/reference.py", text);
    const std::string page = file_of(only(m_folder->path() / "mul"), "IMPORT.md");
    return page.find("the inputs: what generate_input makes") != std::string::npos;
  };
  const std::string at = "    gen = ";
  EXPECT_FALSE(missing(at, at));
  for (const char* line : {"m = m * 2", "m *= 2", "m, k = k, m", "if m > 3: m = 3", "if m > 3:\n        m = 3", "for m in x: pass",
                           "with f() as m: pass", "print(m := 3)", "del m", "from x import m"})
    EXPECT_TRUE(missing(at, "    " + std::string(line) + "\n" + at)) << line;
  for (const char* line : {"a = a.T", "a, x = b, a", "a.t_()", "a.data = b", "if m > 3:\n        a = a.T"})
    EXPECT_TRUE(missing("    return (a, b)", "    " + std::string(line) + "\n    return (a, b)")) << line;
  for (const char* line : {"a.normal_()", "a[0] = 1", "print(a)"})
    EXPECT_FALSE(missing("    return (a, b)", "    " + std::string(line) + "\n    return (a, b)")) << line;
  // A constant of a parameter's name is not what is meant.
  EXPECT_TRUE(missing("def generate_input(m: int, k: int, seed: int):\n    gen = torch.Generator(device=\"cuda\")\n    a = torch.empty((m",
                      "m = 64\ndef generate_input(m: int, k: int, seed: int):\n    a = torch.empty((m * 2"));
}

TEST_F(Import, AGpuModeFolderIsNamedWhateverWayItIsWritten) {
  put("task1/reference.py", kReference);
  put("task1/task.yml", kTask);
  const fs::path here = fs::current_path();
  for (const char* way : {"task1", "task1/", "task1/.", "task1/../task1/task.yml", "task1/./task.yml"})
    EXPECT_EQ(only(m_folder->path() / way).taken.value_or(ImportedOperator{}).name, "task1") << way;
  fs::current_path(m_folder->path() / "task1");
  EXPECT_EQ(only(".").taken.value_or(ImportedOperator{}).name, "task1");
  EXPECT_EQ(only("task.yml").taken.value_or(ImportedOperator{}).name, "task1");
  fs::current_path(here);
}

TEST_F(Import, GpuModeTasks) {
  put("product_py/reference.py", kReference);
  const ImportItem item = only(put("product_py/task.yml", kTask));
  const auto d = parse_definition(file_of(item, "definition.json"), "definition.json");
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(d->name, "product_py");
  EXPECT_EQ(find_tensor(*d, "a")->dtype, DType::f16);
  EXPECT_EQ(find_tensor(*d, "b")->shape, (std::vector<std::string>{"k", "d16"}));
  EXPECT_NE(file_of(item, "task.toml").find("axes = { k = 128, m = 128 }"), std::string::npos);
  EXPECT_NE(file_of(item, "task.toml").find("axes = { k = 4, m = 8 }"), std::string::npos);
  EXPECT_TRUE(has(item.taken->missing, "what 'kind' of the cases means"));
  EXPECT_TRUE(has(item.taken->missing, "the outputs"));
  EXPECT_NE(refusal(put("alone/task.yml", kTask)).find("no reference.py beside it"), std::string::npos);
  EXPECT_NE(refusal(put("product_py/task.yml", std::string(kTask) + "multi_gpu: true\n")).find("several GPUs"), std::string::npos);
  EXPECT_NE(refusal(put("product_py/task.yml", "tests:\n  - [1, 2]\n  what is this\n")).find("task.yml:3: 'what is this'"),
            std::string::npos);
}

TEST_F(Import, WhatIsNoTaskSaysWhatIsKnown) {
  const auto says = [](const fs::path& path) {
    const auto items = import_tasks(path);
    return items ? std::string("items") : items.error().text();
  };
  EXPECT_NE(says(m_folder->path() / "none").find("does not exist"), std::string::npos);
  EXPECT_NE(says(m_folder->path()).find("holds no task"), std::string::npos);
  EXPECT_NE(says(put("a.txt", "text")).find("is no task"), std::string::npos);
  EXPECT_NE(says(put("a.json", "{\n\"a\": }")).find("a.json:2"), std::string::npos);
  EXPECT_NE(says(put("a.jsonl", kLines)).find("workloads"), std::string::npos);
  for (const char* name : {"big.json", "big.py"}) {  // sparse
    const fs::path big = put(name, "x");
    fs::resize_file(big, (std::uintmax_t(64) << 20) + 1);
    EXPECT_NE(says(big).find("has 67108865 bytes, more than the 64 MiB"), std::string::npos) << says(big);
  }
  const fs::path pipe = m_folder->path() / "pipe.json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(says(pipe).find("neither a file nor a folder"), std::string::npos);
}

// Cut off and with bytes changed, every text is taken or refused.
TEST_F(Import, DamagedTextsAreRefusedNotFatal) {
  std::mt19937 random(11);
  const std::vector<std::pair<std::string, std::string>> sources = {
      {"d.json", kNorm}, {"p.py", kProblem}, {"t/task.yml", kTask}, {"t/reference.py", kReference}, {"d.jsonl", kLines}};
  put("t/reference.py", kReference);
  put("t/task.yml", kTask);
  put("d.json", kNorm);
  int taken = 0, refused = 0;
  for (int i = 0; i < 200; i++) {
    const auto& [name, whole] = sources[random() % sources.size()];
    std::string text = whole.substr(0, random() % 3 == 0 ? random() % whole.size() : whole.size());
    static const std::string kBytes = "()[]{}\"'\\#:,-=*\n \t|x9\xff";
    for (unsigned n = random() % 6; n > 0 && !text.empty(); n--) text[random() % text.size()] = kBytes[random() % kBytes.size()];
    put(name, text);
    const auto items = import_tasks(m_folder->path());
    if (!items) continue;
    for (const ImportItem& item : *items) item.taken ? ++taken : ++refused;
    put(name, whole);
  }
  EXPECT_GT(taken, 50);
  EXPECT_GT(refused, 10);
}

TEST(PythonText, DeepBracketsAreNoStackOverflow) {
  const std::string deep(200000, '(');
  EXPECT_FALSE(python_tensor("torch.rand(" + deep + std::string(200000, ')') + ")", {}, {}));
  python_constants(python_lines("N = " + deep + "1" + std::string(200000, ')')));
  (void)parse_task_yaml("a: " + std::string(200000, '{') + "\ntests:\n  - {a: " + std::string(200000, '[') + "}\n", "t");
}

// What a constant is after these lines; -1: not known.
std::int64_t constant_after(const std::string& python) {
  const PythonConstants constants = python_constants(python_lines(python));
  const auto n = constants.find("N");
  return n == constants.end() || n->second.tuple ? -1 : n->second.values.front();
}

TEST(PythonText, AConstantThatIsReboundOutOfSightIsNotKnown) {
  for (const char* rebound : {"N *= 4",
                              "N <<= 2",
                              "N = int(\"3\")",
                              "N, M = 8, 9",
                              "(M, N) = 8, 9",
                              "[N] = x",
                              "M = N = f()",
                              "M = 3; N = f()",
                              "*N, M = x",
                              "if x:\n    N = 3",
                              "if x: N = 3",
                              "for N in x: pass",
                              "for M, N in x:\n    pass",
                              "with f() as N:\n    pass",
                              "print(N := 3)",
                              "del N",
                              "import N",
                              "from x import N",
                              "from x import M as N",
                              "from x import *",
                              "def N(): pass",
                              "class N: pass",
                              "try:\n    pass\nexcept E as N:\n    pass",
                              "def f():\n    global M, N\n    N = 3",
                              "exec(\"\")",
                              "N: int = f()",
                              "while x: N = 3",
                              "N.x = 3"})
    EXPECT_EQ(constant_after("N = 16\n" + std::string(rebound) + "\n"), -1) << rebound;
  for (const char* kept :
       {"assert N == 16", "M = f(N=3)", "x = f(N)", "def f(N):\n    N = 3", "class C:\n    N = 3", "print(N <= 3, N)",
        "if __name__ == \"__main__\":\n    N = 3", "if N >= 3: pass", "def f(x=N): pass", "from x import M", "model.eval()", "x = N"})
    EXPECT_EQ(constant_after("N = 16\n" + std::string(kept) + "\n"), 16) << kept;
  EXPECT_EQ(constant_after("N = f()\nN = 4\n"), 4);
  EXPECT_EQ(constant_after("from x import *\nN = 4\n"), 4);
  for (const char* changed : {"S.append(3)", "S[0] = 3", "S += [3]"})
    EXPECT_TRUE(python_constants(python_lines("S = [3, 4]\n" + std::string(changed))).empty()) << changed;
}

TEST(PythonText, AFunctionIsTheLastOfItsName) {
  const std::string two = "def f(a): pass\ndef f(b): pass\n";
  EXPECT_EQ(python_function(python_lines(two), "f")->parameters, std::vector<std::string>{"b"});
  EXPECT_FALSE(python_function(python_lines(two + "f = g\n"), "f"));
}

TEST(PythonText, ADtypeThatIsNotKnownMakesNoTensor) {
  EXPECT_EQ(python_tensor("torch.rand(3).to(device=x, dtype=torch.float16)", {}, {})->dtype, DType::f16);
  EXPECT_EQ(python_tensor("torch.rand(3).to(\"\")", {}, {})->dtype, DType::f32);
  EXPECT_FALSE(python_tensor("torch.rand(3).to(kind)", {}, {}));
  EXPECT_FALSE(python_tensor("torch.rand(3).to(\"\", dtype=kind)", {}, {}));
}

// A folder of real definitions, when there is one.
TEST(ImportReal, EveryDefinitionIsTaken) {
  const char* folder = std::getenv("FORGE_TRACE_DIR");
  if (!folder) GTEST_SKIP() << "FORGE_TRACE_DIR names no folder of definitions";
  const auto items = import_tasks(folder);
  ASSERT_TRUE(items) << items.error().text();
  EXPECT_FALSE(items->empty());
  for (const ImportItem& item : *items) {
    ASSERT_TRUE(item.taken) << item.refused->text();
    EXPECT_TRUE(parse_definition(item.taken->files[0].content, item.source));
  }
}

}  // namespace
}  // namespace forge
