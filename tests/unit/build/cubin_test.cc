// SPDX-License-Identifier: Apache-2.0
// Cubins that nvcc makes here: honest ones are admitted, others are refused by name. Skipped where there is no nvcc.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <map>

#include "build/build.h"
#include "build/compiler_log.h"
#include "util/process.h"
#include "util/random.h"

namespace forge {
namespace {

constexpr const char* kDefinition = R"({"name": "scale", "op_type": "scale", "axes": {"n": {"type": "var"}},
  "inputs": {"x": {"shape": ["n"], "dtype": "float32"}}, "outputs": {"y": {"shape": ["n"], "dtype": "float32"}}, "reference": "def run(x): return x"})";
constexpr const char* kPlan = R"toml(format = 1
target = "cuda:sm_90a"

[[launch]]
entry = "scale"
grid = "ceil_div(n, 128)"
block = 128
)toml";
constexpr const char* kHead = "#include \"forge_args.h\"\n";
constexpr const char* kIndex = "  const int i = blockIdx.x * 128 + threadIdx.x;\n  if (i >= p.n) return;\n";

std::string kernel(const std::string& before, const std::string& body, const std::string& attributes = "__launch_bounds__(128)") {
  return std::string(kHead) + before + "extern \"C\" __global__ void " + attributes + " scale(const __grid_constant__ forge_args p) {\n" +
         kIndex + body + "}\n";
}

const Definition& scale_definition() {
  static const Definition d = *parse_definition(kDefinition, "definition.json");
  return d;
}

using Built = tl::expected<Image, BuildFailure>;
std::string said(const Built& b) {
  return b ? "built" : std::string(name(b.error().reason)) + ": " + b.error().detail + "\n" + b.error().log;
}

class Cubin : public ::testing::Test {
 protected:
  void SetUp() override {
    static const auto found = find_cuda_compiler();  // once: it asks the toolkit for its files
    if (!found) GTEST_SKIP() << found.error().text();
    compiler = found->get();
  }
  Built build(const std::string& source, const std::string& plan = kPlan, const Definition& definition = scale_definition(),
              const char* target = "cuda:sm_90a") const {
    KernelPackage p{.source_name = "kernel.cu", .source = source, .plan_text = plan, .origin = "test"};
    return Builder(*compiler, {}).build(p, definition, *find_target(target));
  }
  // Two at a time: a compilation takes seconds and most of them wait for files.
  std::vector<Built> build_all(const std::vector<std::string>& sources) const {
    std::vector<Built> out(sources.size(), tl::unexpected(BuildFailure{}));
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < sources.size(); i = next++) out[i] = build(sources[i]);
    };
    const auto other = std::async(std::launch::async, work);
    work();
    other.wait();
    return out;
  }
  Built build_fixture(const std::string& name, const char* target = "cuda:sm_90a") const {
    const fs::path folder = fs::path(FORGE_SOURCE_DIR) / "tests/fixtures/cuda" / name;
    std::string plan = *read_file(folder / "launch.toml");
    plan.replace(plan.find("cuda:sm_90a"), 11, target);
    return build(*read_file(folder / "kernel.cu"), plan, *parse_definition(*read_file(folder / "definition.json"), "definition.json"),
                 target);
  }
  Compiler* compiler = nullptr;
};

// As CompilerTest's for g++: the script lies in a folder that looks like a toolkit's, as in /usr/local.
TEST_F(Cubin, AScriptLeadsToTheToolkitBehindIt) {
  const fs::path nvcc = find_program("nvcc").empty() ? "/usr/local/cuda/bin/nvcc" : find_program("nvcc");
  const auto folder = TempDir::make("forge-script");
  const fs::path script = folder->path() / "bin/nvcc";
  fs::create_directories(script.parent_path());
  ASSERT_TRUE(write_file_atomic(script, "#!/bin/sh\nexec " + nvcc.string() + " \"$@\"\n"));
  fs::permissions(script, fs::perms::owner_all);
  const auto with = make_cuda_compiler(script);
  ASSERT_TRUE(with) << with.error().text();
  KernelPackage p{.source_name = "kernel.cu", .source = kernel("", "  p.y[i] = p.x[i];\n"), .plan_text = kPlan, .origin = "test"};
  const Built built = Builder(**with, {}).build(p, scale_definition(), *find_target("cuda:sm_90a"));
  EXPECT_TRUE(built) << said(built);
}

TEST_F(Cubin, HonestOnesAreAdmitted) {
  const std::map<std::string, std::string> honest = {
      {"constant table, __sinf, shared memory", kernel("__constant__ float table[4] = {1, 2, 3, 4};\n",
                                                       "  __shared__ float s[128];\n  s[threadIdx.x] = p.x[i];\n  __syncthreads();\n"
                                                       "  p.y[i] = __sinf(s[threadIdx.x ^ 1]) * table[i & 3];\n")},
      {"dynamic shared memory, shuffles, atomics",
       kernel("extern __shared__ float pool[];\n",
              "  pool[threadIdx.x] = p.x[i];\n  __syncthreads();\n  float v = pool[threadIdx.x ^ 64];\n"
              "  for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);\n  atomicAdd(p.y + i, v);\n  atomicAdd(pool, v);\n")},
      {"cooperative groups, barriers, ptx",
       kernel("#include <cooperative_groups.h>\n#include <cuda/barrier>\n#include <cuda/ptx>\n",
              "  const auto b = cooperative_groups::this_thread_block();\n  b.sync();\n  p.y[i] = p.x[i] + b.thread_rank();\n")},
      {"functions that stay functions, a division",
       kernel("__device__ __noinline__ float f(float v, int n) { for (int k = 0; k < n; k++) v = v * v + 1 / v; return v; }\n",
              "  p.y[i] = f(p.x[i], p.n) + sqrtf(f(p.y[i], 3));\n")},
      {"a switch becomes a jump table", kernel("",
                                               "  float v = p.x[i];\n  switch (p.n) { case 1: v += 1; break; case 2: v *= v; break; case "
                                               "3: v = 1 / v; break; case 4: v -= 8; break;"
                                               " case 5: v = sqrtf(v); break; case 6: v = exp2f(v); break; case 7: v = __cosf(v); break; "
                                               "case 8: v *= 9; break; }\n  p.y[i] = v;\n")},
      {"a pointer to constant or global memory",
       kernel("__constant__ float t[8];\n", "  const float* q = p.n > 9 ? t : p.x;\n  p.y[i] = q[i & 7];\n")},
      {"expf and its like carry no tables", kernel("", "  p.y[i] = expf(p.x[i]) + logf(p.x[i]) + powf(p.x[i], 1.5f) + tanhf(p.x[i]);\n")},
      {"local arrays, spills",
       kernel("", "  float a[64];\n  for (int k = 0; k < 64; k++) a[k] = p.x[(i + k) % p.n];\n  p.y[i] = a[p.n & 63] + a[i & 63];\n")},
  };
  std::vector<std::string> sources;
  for (const auto& [what, source] : honest) sources.push_back(source);
  const auto built = build_all(sources);
  std::size_t at = 0;
  for (const auto& [what, source] : honest) EXPECT_TRUE(built[at]) << what << "\n" << said(built[at]), ++at;
}

TEST_F(Cubin, ResourcesAreReadFromTheImage) {
  std::string plan = kPlan;
  plan += "cluster = 2\n";
  const auto image = build(kernel("",
                                  "  __shared__ float s[160];\n  float a[32];\n  for (int k = 0; k < 32; k++) a[k] = p.x[(i + k) % p.n];\n"
                                  "  s[threadIdx.x] = a[p.n & 31];\n  __syncthreads();\n  p.y[i] = s[threadIdx.x ^ 1];\n",
                                  "__cluster_dims__(2) __launch_bounds__(128)"),
                           plan);
  ASSERT_TRUE(image) << said(image);
  ASSERT_EQ(image->resources.size(), 1u);
  const EntryResources& r = image->resources[0];
  EXPECT_EQ(r.entry, "scale");
  EXPECT_GT(r.registers, 8);
  EXPECT_LT(r.registers, 256);
  EXPECT_EQ(r.static_shared, 640) << "without the kilobyte that the system keeps of a block";
  EXPECT_EQ(r.frame, 128);
  EXPECT_EQ(r.max_threads, 128);
  EXPECT_EQ(r.cluster, 2);
  // What ptxas says of the same.
  EXPECT_NE(image->build.log.find("128 bytes stack frame"), std::string::npos) << image->build.log;
  EXPECT_NE(image->build.log.find("640 bytes smem"), std::string::npos) << image->build.log;
  EXPECT_NE(image->build.log.find("Used " + std::to_string(r.registers) + " registers"), std::string::npos) << image->build.log;
}

struct Refused {
  std::string source, rule, word;
};

TEST_F(Cubin, OthersAreRefusedByName) {
  const std::string plain = "  p.y[i] = p.x[i];\n";
  const std::vector<Refused> table = {
      {kernel("__device__ int count;\n", "  p.y[i] = float(atomicAdd(&count, 1));\n"), "writable_state", "'count' in .nv.global"},
      {kernel("__device__ int count = 3;\n", "  p.y[i] = float(atomicAdd(&count, 1));\n"), "writable_state", "workspace"},
      {kernel("__managed__ int count;\n", "  p.y[i] = float(atomicAdd(&count, 1));\n"), "writable_state", "count"},
      {kernel("", "  static int count;\n  p.y[i] = float(atomicAdd(&count, 1));\n"), "writable_state", "count"},
      {kernel("__device__ const float table[5] = {1, 2, 3, 4, 5};\n", "  p.y[i] = table[p.n % 5];\n"), "writable_state", "__constant__"},
      {kernel("", "  p.y[i] = sinf(p.x[i]);\n"), "writable_state", "use __sinf"},
      {kernel("", "  p.y[i] = tanf(p.x[i]);\n"), "writable_state", "use __sinf"},
      {kernel("#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n", plain), "writable_state", "comes with a header"},
      {kernel("#include <cstdio>\n", "  printf(\"%d\", i);\n  p.y[i] = 0;\n"), "import", "prints nothing"},
      {kernel("", "  float* q = (float*)malloc(4);\n  *q = p.x[i];\n  p.y[i] = *q;\n"), "import", "allocates nothing"},
      {kernel("", "  float* q = new float[p.n];\n  q[i] = p.x[i];\n  p.y[i] = q[i];\n"), "import", "allocates nothing"},
      {kernel("#include <cassert>\n", "  assert(p.x[i] > 0);\n  p.y[i] = 0;\n"), "import", "no assert"},
      {kernel("extern \"C\" __device__ float elsewhere(float);\n", "  p.y[i] = elsewhere(p.x[i]);\n"), "", "elsewhere"},
      {kernel("__device__ float f(float v) { return v + 1; }\n__device__ float g(float v) { return v * 3; }\n",
              "  float (*q)(float) = p.n > 3 ? f : g;\n  p.y[i] = q(p.x[i]);\n"),
       "instruction", "indirect call"},
      {kernel("struct B { __device__ virtual float f(float v) { return v; } };\nstruct C : B { __device__ float f(float v) override { "
              "return 2 * v; } };\n",
              "  B b; C c; B* q = p.n > 3 ? &b : &c;\n  p.y[i] = q->f(p.x[i]);\n"),
       "writable_state", "virtual"},
      {kernel("extern \"C\" __global__ void more(const __grid_constant__ forge_args p) { p.y[0] = 0; }\n", plain), "extra_export",
       "'more'"},
      {kernel("static __global__ void hidden(float* y) { y[0] = 0; }\n__device__ void* keep() { return (void*)hidden; }\n", plain),
       "extra_export", "hidden"},
      {kernel("", plain, ""), "", ""},  // no bounds given: admitted
      {kernel("", plain, "__launch_bounds__(64)"), "block", "write __launch_bounds__(128)"},
      {kernel("", plain, "__block_size__((64))"), "", ""},
      {kernel("", plain, "__cluster_dims__(2) __launch_bounds__(128)"), "cluster", "__cluster_dims__ say 2"},
      {std::string(kHead) + "extern \"C\" __global__ void scale(const float* x, float* y) { y[0] = x[0]; }\n", "parameters", "forge_args"},
      {std::string(kHead) + "extern \"C\" __global__ void scale(forge_args p, int) { p.y[0] = 0; }\n", "parameters", "2 parameters"},
      {std::string(kHead) + "extern \"C\" __global__ void scale(const float* x) { }\n", "parameters",
       "takes 8 bytes, and forge_args has 24"},
      {std::string(kHead) + "extern \"C\" __global__ void other(const __grid_constant__ forge_args p) { p.y[0] = 0; }\n", "launch.toml",
       "`scale`"},
      {std::string(kHead) + "__global__ void scale(const __grid_constant__ forge_args p) { p.y[0] = 0; }\n", "launch.toml", "C++ name"},
      // Refused by the compiler already.
      {kernel("texture<float, 1> t;\n", plain), "kernel.cu", "texture"},
      {kernel("__global__ void child(float* y) { y[0] = 1; }\n", "  child<<<1, 1>>>(p.y);\n"), "kernel.cu", "separate compilation"},
      {kernel("#include <cub/cub.cuh>\n", plain), "kernel.cu:2", "#include <cub/cub.cuh> is out of view"},
      {kernel("#include <thrust/sort.h>\n", plain), "kernel.cu:2", "#include <thrust/sort.h> is out of view"},
      {kernel("#include <cublas_v2.h>\n", plain), "kernel.cu:2", "#include <cublas_v2.h> is out of view"},
      {kernel("#include \"/etc/passwd\"\n", plain), "kernel.cu:2", "#include \"/etc/passwd\" is out of view"},
      {kernel("", "  p.q[i] = 1;\n"), "kernel.cu(5): error", "q"},
      {kernel("", "  asm volatile(\"mov.frob.u32 %r0, 1;\");\n"), "ptxas", "frob"},
  };
  std::vector<std::string> sources;
  for (const Refused& r : table) sources.push_back(r.source);
  const auto built = build_all(sources);
  for (std::size_t i = 0; i < table.size(); ++i) {
    SCOPED_TRACE(table[i].source + "\n" + said(built[i]));
    if (table[i].rule.empty() && table[i].word.empty()) {
      EXPECT_TRUE(built[i] || built[i].error().reason == Reason::build_failed || built[i].error().detail.starts_with("block"));
      continue;
    }
    ASSERT_FALSE(built[i]) << "was admitted";
    const std::string& detail = built[i].error().detail;
    EXPECT_TRUE(detail.starts_with(table[i].rule)) << detail;
    EXPECT_NE(detail.find(table[i].word), std::string::npos) << detail;
  }
}

TEST_F(Cubin, OtherArchitecturesAndSeparateCompilationAreRefused) {
  const auto image = build(kernel("", "  p.y[i] = p.x[i];\n"));
  ASSERT_TRUE(image) << said(image);
  const auto admit = [&](const std::string& bytes, const char* target) {
    return admit_cubin(bytes, image->plan, 24, *find_target(target));
  };
  ASSERT_TRUE(admit(image->bytes, "cuda:sm_90a"));
  const auto wrong = admit(image->bytes, "cuda:sm_100a");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().rule, "architecture");
  std::string plain = image->bytes;  // assembled for sm_90: the flags are equal, the note tells
  const std::size_t note = plain.find("-arch sm_90a");
  ASSERT_NE(note, std::string::npos);
  plain[note + 11] = ' ';
  ASSERT_FALSE(admit(plain, "cuda:sm_90a"));
  EXPECT_EQ(admit(plain, "cuda:sm_90a").error().rule, "architecture");
  std::string relocatable = image->bytes;
  relocatable[16] = 1;  // e_type
  EXPECT_EQ(admit(relocatable, "cuda:sm_90a").error().rule, "elf_format");
  std::string other_machine = image->bytes;
  other_machine[18] = 62;
  EXPECT_EQ(admit(other_machine, "cuda:sm_90a").error().rule, "elf_format");
  const auto bigger = admit_cubin(image->bytes, image->plan, 32, *find_target("cuda:sm_90a"));
  ASSERT_FALSE(bigger);
  EXPECT_EQ(bigger.error().rule, "parameters");
}

TEST_F(Cubin, SameSourceSameBytesAndTheCacheKeepsResources) {
  const auto cache = *TempDir::make();
  const std::string source = kernel("", "  p.y[i] = p.x[i] + __LINE__;\n  if (p.n < 0) p.y[0] = (__DATE__ __TIME__ __FILE__)[i];\n");
  const auto a = build(source), b = build(source);
  ASSERT_TRUE(a || a.error().detail.starts_with("writable_state")) << said(a);
  if (a && b) {
    EXPECT_EQ(a->sha256, b->sha256);
  }
  KernelPackage p{.source_name = "kernel.cu", .source = kernel("", "  p.y[i] = p.x[i];\n"), .plan_text = kPlan, .origin = "test"};
  Builder builder(*compiler, cache.path());
  const auto first = builder.build(p, scale_definition(), *find_target("cuda:sm_90a"));
  ASSERT_TRUE(first) << said(first);
  const auto again = builder.build(p, scale_definition(), *find_target("cuda:sm_90a"));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->build.seconds, first->build.seconds) << "not from the cache";
  ASSERT_EQ(again->resources.size(), 1u);
  EXPECT_EQ(again->resources[0].registers, first->resources[0].registers);
}

// The examples of the launch plan's design: a persistent GEMM by TMA and wgmma, and a split-K in two launches.
TEST_F(Cubin, WorkedExamplesAreAdmittedAndBecomeNumbers) {
  const auto gemm = build_fixture("gemm");
  ASSERT_TRUE(gemm) << said(gemm);
  const auto resident = [](const LaunchSpec&, std::int64_t) -> Result<std::int64_t> { return 132; };
  const Definition d = *parse_definition(*read_file(fs::path(FORGE_SOURCE_DIR) / "tests/fixtures/cuda/gemm/definition.json"), "d");
  const auto big = make_concrete(gemm->plan, d, {{"M", 8192}, {"N", 8192}, {"K", 8192}}, 132, resident);
  ASSERT_TRUE(big) << big.error().text();
  EXPECT_EQ(big->launches.at(0).grid, 132);
  EXPECT_EQ(big->launches.at(0).scratch_bytes, 197632);
  EXPECT_EQ(big->maps.at(0).stride_bytes, std::vector<std::int64_t>{16384});
  const auto tiny = make_concrete(gemm->plan, d, {{"M", 1}, {"N", 8}, {"K", 8}}, 132, resident);
  ASSERT_TRUE(tiny) << tiny.error().text();
  EXPECT_EQ(tiny->launches.at(0).grid, 1);
  EXPECT_EQ(make_concrete(gemm->plan, d, {{"M", 8}, {"N", 8}, {"K", 12}}, 132, resident).error().field, "requires[1]");
  EXPECT_EQ(gemm->resources.at(0).max_threads, 384);
  EXPECT_EQ(gemm->resources.at(0).registers, 168) << "64 K registers among 384 threads";

  const auto split = build_fixture("split_k");
  ASSERT_TRUE(split) << said(split);
  EXPECT_EQ(split->resources.size(), 2u);
  const auto blackwell = build_fixture("split_k", "cuda:sm_100a");
  EXPECT_TRUE(blackwell) << said(blackwell);
}

TEST_F(Cubin, EveryViewOfTheSandboxCompiles) {
  for (const CompilerView view : {CompilerView::landlock, CompilerView::bubblewrap, CompilerView::namespaces, CompilerView::none}) {
    const auto narrow = make_cuda_compiler(find_program("nvcc").empty() ? fs::path("/usr/local/cuda/bin/nvcc") : find_program("nvcc"),
                                           {.seconds = 120, .memory_bytes = std::size_t(6) << 30, .view = view});
    ASSERT_TRUE(narrow) << narrow.error().text();
    KernelPackage p{.source_name = "kernel.cu", .source = kernel("", "  p.y[i] = p.x[i];\n"), .plan_text = kPlan, .origin = "test"};
    const auto image = Builder(**narrow, {}).build(p, scale_definition(), *find_target("cuda:sm_90a"));
    if (!image && view != CompilerView::none) {
      GTEST_LOG_(INFO) << "a view that this machine lacks: " << image.error().detail;
      continue;
    }
    ASSERT_TRUE(image) << said(image);
    if (view == CompilerView::none) {
      const auto& lines = image->build.sandbox;
      EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& l) { return l.starts_with("missing: a narrowed view"); }));
    }
  }
}

TEST_F(Cubin, LimitsEndACompilation) {
  const auto quick = make_cuda_compiler(find_program("nvcc").empty() ? fs::path("/usr/local/cuda/bin/nvcc") : find_program("nvcc"),
                                        {.seconds = 0.3, .memory_bytes = std::size_t(6) << 30});
  ASSERT_TRUE(quick) << quick.error().text();
  KernelPackage p{.source_name = "kernel.cu", .source = kernel("", "  p.y[i] = p.x[i];\n"), .plan_text = kPlan, .origin = "test"};
  const auto image = Builder(**quick, {}).build(p, scale_definition(), *find_target("cuda:sm_90a"));
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().reason, Reason::build_timeout) << said(image);
}

TEST_F(Cubin, NoBytesCrashTheReaders) {
  const auto image =
      build(kernel("__constant__ float t[64];\n",
                   "  __shared__ float s[128];\n  s[threadIdx.x] = t[i & 63];\n  __syncthreads();\n  p.y[i] = s[p.n & 127];\n"));
  ASSERT_TRUE(image) << said(image);
  const TargetSpec target = *find_target("cuda:sm_90a");
  int refused = 0;
  const auto read_all = [&](const std::string& bytes) {
    const auto admitted = admit_cubin(bytes, image->plan, 24, target);
    if (!admitted) {
      ++refused;
      EXPECT_FALSE(admitted.error().rule.empty());
      EXPECT_FALSE(admitted.error().detail.empty());
    }
    (void)cubin_resources(bytes);
  };
  for (std::size_t n = 0; n < image->bytes.size(); n += n < 200 ? 1 : 7) read_all(image->bytes.substr(0, n));
  Random random(20261130);
  for (int trial = 0; trial < 6000; ++trial) {
    std::string bad = image->bytes;
    for (std::uint64_t k = 0, n = 1 + random.below(4); k < n; ++k) bad[random.below(bad.size())] = static_cast<char>(random.next());
    read_all(bad);
  }
  const std::uint64_t extremes[] = {
      0, 1, 0xff, 0xffff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff, image->bytes.size()};
  std::uint64_t table = 0;
  std::memcpy(&table, image->bytes.data() + 0x28, 8);
  ASSERT_LT(table, image->bytes.size());
  for (int trial = 0; trial < 6000; ++trial) {
    std::string bad = image->bytes;
    const std::size_t width = std::size_t(1) << random.below(4);
    const std::size_t at = random.below(4) == 0 ? random.below(64) : table + random.below(bad.size() - table);
    if (at + width > bad.size()) continue;
    std::memcpy(bad.data() + at, &extremes[random.below(std::size(extremes))], width);
    read_all(bad);
  }
  EXPECT_GT(refused, 1000);
}

TEST(CompilerLog, WhatNvccSaysIsExplained) {
  const ProcessResult failed{.exit_code = 1};
  const auto detail = [&](const std::string& log) { return explain_failure(failed, log, {})->detail; };
  EXPECT_EQ(detail("kernel.cu(7): warning: x\nkernel.cu(9): error: identifier \"q\" is undefined\n"),
            "kernel.cu(9): error: identifier \"q\" is undefined");
  EXPECT_EQ(detail("a.h(3): error: no\n          detected during instantiation of \"f<T>\" at line 12 of kernel.cu\n"),
            "a.h(3): error: no (kernel.cu, line 12)");
  EXPECT_EQ(detail("ptxas kernel.ptx, line 24; error   : Unknown modifier '.frob'\nptxas fatal   : aborted\n"),
            "ptxas kernel.ptx, line 24; error   : Unknown modifier '.frob'");
  EXPECT_EQ(clean_log("ptxas /tmp/b1/tmpxft_00002ea4_00000000-6_kernel.ptx, line 24; tmpxft_", "/tmp/b1"),
            "ptxas kernel.ptx, line 24; tmpxft_");
  EXPECT_EQ(explain_failure(failed, "nvcc error   : 'cicc' died due to signal 24 (CPU time limit)\n", {})->reason, Reason::build_timeout);
}

}  // namespace
}  // namespace forge
