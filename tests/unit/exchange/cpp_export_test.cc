// SPDX-License-Identifier: Apache-2.0
// What an export consists of, what is refused, and that launchers compile without a warning. Built, called and held against an
// oracle they are in tests/suites/exchange.sh.
#include "exchange/cpp_export.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "util/fs.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr const char* kExportDefinition = R"({"name": "pair-sum", "op_type": "test",
 "axes": {"rows": {"type": "var"}, "columns": {"type": "const", "value": 64}},
 "inputs": {"x": {"shape": ["rows", "columns"], "dtype": "float16"}, "alpha": {"shape": null, "dtype": "float32"}},
 "outputs": {"y": {"shape": ["rows", "columns"], "dtype": "float16"}},
 "reference": "def run(x, alpha):\n  return x\n"})";

ExportRequest request_for(const std::string& target, const std::string& plan) {
  ExportRequest r;
  r.definition = *parse_definition(kExportDefinition, "definition.json");
  r.target = *find_target(target);
  const bool cuda = r.target.family == "cuda";
  r.package.source_name = cuda ? "kernel.cu" : "kernel.cpp";
  r.package.source = "#include \"forge_args.h\"\n";
  r.package.plan_text = fmt::format("format = 1\ntarget = \"{}\"\n{}", target, plan);
  r.origin = "a test\nwith a line break";
  if (cuda) r.image = std::string("\x7f\x00\xff image", 9);
  return r;
}

std::string content_of(const std::vector<ExportedFile>& files, const std::string& name) {
  for (const ExportedFile& f : files)
    if (f.name == name) return f.content;
  ADD_FAILURE() << "no file " << name;
  return {};
}

// g++'s complaints about the launcher; empty when there are none.
std::string complaints(const std::vector<ExportedFile>& files, const std::string& source, const std::string& flags) {
  const auto folder = TempDir::make("cpp-export");
  for (const ExportedFile& f : files) EXPECT_TRUE(write_file_atomic(folder->path() / f.name, f.content));
  const std::string at = folder->path().string();
  const std::string line = fmt::format("g++ -fsyntax-only -Wall -Wextra -Wshadow -Werror {} {}/{} > {}/log 2>&1", flags, at, source, at);
  return std::system(line.c_str()) == 0 ? "" : read_file(at + "/log").value_or("no log");
}

constexpr const char* kCpuPlan = R"toml(requires = ["rows > 0 && rows < 4096"]
[[let]]
name = "half"
value = "ceil_div(rows, 2)"
[[workspace]]
name = "part"
bytes = "half * 4"
init = "zero"
[[launch]]
entry = "first"
when = "half > 1"
grid = "min(half, resident)"
smem = "columns * sm_count"
[[launch]]
entry = "second"
grid = "rows"
)toml";

TEST(CppExport, CpuLauncherSaysWhatThePlanSays) {
  const auto files = export_cpp(request_for("cpu:x86-64-avx512", kCpuPlan));
  ASSERT_TRUE(files) << files.error().text();
  ASSERT_EQ(files->size(), 5u);
  const std::string source = content_of(*files, "pair_sum.cc"), header = content_of(*files, "pair_sum.h");
  EXPECT_NE(source.find("v_half = e.ceil_div(v_rows, 2)"), std::string::npos) << source;
  EXPECT_NE(source.find("avx512vl"), std::string::npos);
  EXPECT_NE(header.find("const std::uint16_t* x"), std::string::npos) << header;
  EXPECT_NE(header.find("float alpha{}"), std::string::npos);
  EXPECT_EQ(header.find("columns"), std::string::npos);  // a constant axis is nobody's argument
  EXPECT_NE(content_of(*files, "forge_args.h").find("__asm__(\"forge_export_pair_sum_first\")"), std::string::npos);
  EXPECT_NE(content_of(*files, "README.md").find("-march=x86-64-v4"), std::string::npos);
  EXPECT_EQ(complaints(*files, "pair_sum.cc", "-std=c++17"), "");
  EXPECT_EQ(complaints(*files, "pair_sum.cc", "-std=c++20"), "");
}

constexpr const char* kCudaPlan = R"toml([[workspace]]
name = "part"
bytes = "rows * 256"
init = "clean"
[[map]]
name = "x"
tensor = "x"
offset = "8 * 0"
dims = ["columns", "rows"]
strides = ["columns"]
box = [64, 16]
swizzle = 128
[[map]]
name = "part"
tensor = "part"
dtype = "bf16"
dims = ["32", "4", "rows"]
l2 = 256
im2col = { lower = [-1], upper = [1], channels = 32, pixels = 8 }
[[launch]]
entry = "first"
grid = "4 * ceil_div(rows, 4)"
block = 128
cluster = 4
smem = "rows * 64"
[[launch]]
entry = "second"
grid = "resident"
block = 256
cooperative = true
[[launch]]
entry = "second"
grid = "1"
block = 32
pdl = true
)toml";

TEST(CppExport, CudaLauncherHasMapsClustersAndAttributes) {
  const auto files = export_cpp(request_for("cuda:sm_90a", kCudaPlan));
  ASSERT_TRUE(files) << files.error().text();
  const std::string source = content_of(*files, "pair_sum.cc");
  for (const char* part : {"map.im2col = true", "map.lower[0] = -1", "p.cluster = 4", "p.cooperative = true", "p.early = true",
                           "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", "map.box[1] = 16"})
    EXPECT_NE(source.find(part), std::string::npos) << part << "\n" << source;
  EXPECT_NE(content_of(*files, "pair_sum_image.cc").find("127,0,255,"), std::string::npos);
  EXPECT_EQ(complaints(*files, "pair_sum_image.cc", "-std=c++17"), "");
  if (!fs::exists("/usr/local/cuda/include/cuda.h")) GTEST_SKIP() << "no cuda.h: the launcher is not compiled here";
  EXPECT_EQ(complaints(*files, "pair_sum.cc", "-std=c++17 -isystem /usr/local/cuda/include"), "");
}

TEST(CppExport, RefusesWithAReason) {
  const auto refused = [](ExportRequest r) {
    const auto files = export_cpp(r);
    return files ? std::string("exported") : files.error().text();
  };
  EXPECT_NE(refused(request_for("cpu:x86-64-avx2", "[[launch]]\nentry = \"a\"\ngrid = \"cols\"\n")).find("unknown name 'cols'"),
            std::string::npos);
  EXPECT_NE(refused(request_for("cpu:x86-64-avx2", "oops")).find("launch.toml"), std::string::npos);
  ExportRequest bare = request_for("cuda:sm_90a", kCudaPlan);
  bare.image.clear();
  EXPECT_NE(refused(bare).find("nvcc"), std::string::npos);
  ExportRequest clash = request_for("cpu:x86-64-avx2", kCpuPlan);
  clash.definition.axes[0].name = "Arguments";
  clash.definition.inputs[0].shape = clash.definition.outputs[0].shape = {"Arguments"};
  clash.package.plan_text = "format = 1\ntarget = \"cpu:x86-64-avx2\"\n[[launch]]\nentry = \"a\"\ngrid = 1\n";
  EXPECT_NE(refused(clash).find("rename"), std::string::npos);
}

// The message of a refusal where a tensor, a constant axis, an entry or the launcher has this name.
std::string with_name(const std::string& where, const std::string& name, ExportRequest* request = nullptr) {
  const std::string entry = where == "entry" ? name : "a";
  ExportRequest r = request_for("cpu:x86-64-avx2", fmt::format("[[launch]]\nentry = \"{}\"\ngrid = 1\n", entry));
  if (where == "tensor") r.definition.inputs[0].name = name;
  if (where == "axis") r.definition.axes[1].name = r.definition.inputs[0].shape[1] = r.definition.outputs[0].shape[1] = name;
  if (where == "operator") r.definition.name = name;
  if (where == "name") r.name = name;
  if (request) *request = r;
  const auto files = export_cpp(r);
  return files ? "" : files.error().text();
}

TEST(CppExport, NamesThatDoNotCompileAreRefused) {
  for (const char* name : {"EOF", "errno", "NULL", "INT32_MAX", "linux", "EINVAL", "SEEK_SET", "stdin", "__x", "_X"})
    for (const char* where : {"tensor", "axis", "entry", "name", "operator"}) EXPECT_NE(with_name(where, name), "") << where << " " << name;
  for (const char* name : {"std", "kernel", "forge_args", "stdint"}) {
    EXPECT_NE(with_name("operator", name).find("--namespace"), std::string::npos) << name;
    EXPECT_NE(with_name("name", name), "") << name;
  }
  EXPECT_NE(with_name("name", "no name"), "");
  EXPECT_NE(with_name("name", "class"), "");
  for (const char* name : {"E", "EPS", "K_MAX", "x__y", "std", "N", "_x"}) {
    ExportRequest r;
    EXPECT_EQ(with_name("tensor", name, &r), "") << name;
    EXPECT_EQ(complaints(*export_cpp(r), "pair_sum.cc", "-std=c++17"), "") << name;
  }
}

// Whatever is a macro where the launcher's own headers are included.
TEST(CppExport, NoMacroOfItsHeadersIsExported) {
  const auto folder = TempDir::make("cpp-export");
  ASSERT_TRUE(folder);
  const std::string at = folder->path().string();
  const auto files = export_cpp(request_for("cpu:x86-64-avx2", kCpuPlan));
  for (const ExportedFile& f : *files) ASSERT_TRUE(write_file_atomic(folder->path() / f.name, f.content));
  ASSERT_EQ(std::system(fmt::format("cd {} && g++ -std=gnu++20 -pthread -dM -E pair_sum.cc >macros", at).c_str()), 0);
  int asked = 0;
  for (const std::string& line : split(read_file(at + "/macros").value_or(""), '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() < 2 || !is_identifier(words[1])) continue;  // NAME(x) is one only where a ( follows
    ++asked;
    EXPECT_NE(with_name("tensor", words[1]), "") << words[1];
  }
  EXPECT_GT(asked, 1000);
}

TEST(CppExport, TwoOfOneOperatorLinkUnderTwoNames) {
  const auto folder = TempDir::make("cpp-export");
  ASSERT_TRUE(folder);
  std::string line = "cd " + folder->path().string() + " && g++ -std=c++20 -shared -fPIC -pthread -o both.so";
  for (const char* name : {"first_sum", "second_sum"}) {
    ExportRequest r = request_for("cpu:x86-64-avx2", "[[launch]]\nentry = \"a\"\ngrid = 1\n");
    r.name = name;
    r.package.source += "extern \"C\" void a(const forge_args*, const forge_block*) {}\n";
    const auto files = export_cpp(r);
    ASSERT_TRUE(files) << files.error().text();
    ASSERT_TRUE(make_dirs(folder->path() / name));
    for (const ExportedFile& f : *files) ASSERT_TRUE(write_file_atomic(folder->path() / name / f.name, f.content));
    line += fmt::format(" {0}/{0}.cc {0}/kernel.cpp", name);
  }
  EXPECT_EQ(std::system(line.c_str()), 0);
}

}  // namespace
}  // namespace forge
