// SPDX-License-Identifier: Apache-2.0
// The JSON of a FlashInfer-Trace Solution; that its sources compile without flags and run is shown in tests/suites/exchange.sh.
#include "exchange/trace_solution.h"

#include <gtest/gtest.h>

#include <set>

#include "core/json_io.h"

namespace forge {
namespace {

ExportRequest solution_request(const std::string& target) {
  ExportRequest r;
  r.definition = *parse_definition(R"json({"name": "scale-rows", "op_type": "test",
 "axes": {"rows": {"type": "var"}, "columns": {"type": "const", "value": 64}},
 "inputs": {"x": {"shape": ["rows", "columns"], "dtype": "bfloat16"}, "alpha": {"shape": null, "dtype": "float32"}},
 "outputs": {"y": {"shape": ["rows", "columns"], "dtype": "bfloat16"}}, "reference": "def run(x, alpha):\n  return x\n"})json",
                                   "definition.json");
  r.target = *find_target(target);
  const bool cuda = r.target.family == "cuda";
  r.package.source_name = cuda ? "kernel.cu" : "kernel.cpp";
  r.package.source = "#include \"forge_args.h\"\n";
  r.package.plan_text =
      "format = 1\ntarget = \"" + target + "\"\n[[launch]]\nentry = \"scale\"\ngrid = \"rows\"\n" + (cuda ? "block = 32\n" : "");
  r.origin = "a test";
  if (cuda) r.image = "image";
  return r;
}

Json solution_of(const ExportRequest& r) {
  const auto text = export_trace_solution(r, {.name = "s1", .author = "me"});
  EXPECT_TRUE(text) << text.error().text();
  return text ? *parse_json(*text, "solution") : Json();
}

std::string source_of(const Json& solution, const std::string& path) {
  for (const Json& s : solution["sources"])
    if (s["path"] == path) return s["content"];
  ADD_FAILURE() << "no source " << path;
  return {};
}

TEST(TraceSolution, HasWhatALoaderDemands) {
  for (const char* target : {"cpu:x86-64-avx512", "cuda:sm_90a"}) {
    const Json j = solution_of(solution_request(target));
    const bool cuda = std::string(target).starts_with("cuda");
    EXPECT_EQ(j["name"], "s1");
    EXPECT_EQ(j["author"], "me");
    EXPECT_EQ(j["definition"], "scale-rows");  // as the definition has it, not as C++ does
    EXPECT_EQ(j["spec"]["language"], cuda ? "cuda" : "cpp");
    EXPECT_EQ(j["spec"]["binding"], "tvm-ffi");
    EXPECT_EQ(j["spec"]["destination_passing_style"], true);
    EXPECT_EQ(j["spec"]["entry_point"], cuda ? "binding.cu::run" : "binding.cc::run");
    std::set<std::string> paths;
    for (const Json& s : j["sources"]) EXPECT_TRUE(paths.insert(s["path"].get<std::string>()).second);
    const std::string binding = source_of(j, cuda ? "binding.cu" : "binding.cc");
    EXPECT_NE(binding.find("void run(tvm::ffi::TensorView t_x, double t_alpha, tvm::ffi::TensorView t_y)"), std::string::npos) << binding;
    EXPECT_NE(binding.find("check(t_x, \"x\", " + std::string(cuda ? "kDLCUDA" : "kDLCPU") + ", 4, 16, 2)"), std::string::npos);
    EXPECT_FALSE(paths.count("kernel.cu"));  // would be compiled for the wrong architecture
  }
  EXPECT_NE(source_of(solution_of(solution_request("cpu:x86-64-avx512")), "kernel.cpp").find("avx512vl"), std::string::npos);
}

TEST(TraceSolution, RefusesWhatASolutionCannotSay) {
  const auto refused = [](const ExportRequest& r) {
    const auto text = export_trace_solution(r, {.name = "s1", .author = "me"});
    return text ? std::string("exported") : text.error().text();
  };
  ExportRequest axis = solution_request("cpu:x86-64-avx2");
  axis.definition.axes.push_back({.name = "groups", .constant = false, .value = 0});
  EXPECT_NE(refused(axis).find("no tensor has this axis"), std::string::npos);
  ExportRequest packed = solution_request("cpu:x86-64-avx2");
  packed.definition.inputs[0].dtype = DType::f4_e2m1;
  EXPECT_NE(refused(packed).find("4-bit"), std::string::npos);
  ExportRequest scalar = solution_request("cpu:x86-64-avx2");
  scalar.definition.inputs[1].dtype = DType::f16;
  EXPECT_NE(refused(scalar).find("make it float32"), std::string::npos);
}

}  // namespace
}  // namespace forge
