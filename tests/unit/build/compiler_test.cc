// SPDX-License-Identifier: Apache-2.0
// The compiler's sandbox: what foreign source must not reach while it is compiled, and how compile bombs end.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>

#include "build/compiler_log.h"
#include "build/private_view.h"
#include "toy.h"
#include "util/process.h"
#include "util/sandbox.h"

namespace forge {
namespace {

using namespace testing;

std::unique_ptr<Compiler> limited(CompileLimits limits) {
  auto c = make_cpu_compiler(find_program("g++").empty() ? find_program("clang++") : find_program("g++"), limits);
  EXPECT_TRUE(c) << c.error().text();
  return std::move(*c);
}

// A file that the builder's own process can read.
struct Planted {
  TempDir folder = *TempDir::make("forge-secret");
  fs::path file = folder.path() / "secret.h";
  Planted() { EXPECT_TRUE(write_file_atomic(file, "const int forge_secret = 42;\n")); }
};

std::string using_kernel(const std::string& head) { return head + "\n" + kToySource; }

void expect_file_out_of_view(Compiler& with) {
  const Planted planted;
  const std::string path = planted.file.string();
  const auto include = build_toy(using_kernel("#include \"" + path + "\""), kToyPlan, with);
  EXPECT_FALSE(include) << "the planted file was included";
  const auto incbin = build_toy(using_kernel("asm(\".section .rodata\\n.incbin \\\"" + path + "\\\"\\n.text\");"), kToyPlan, with);
  EXPECT_FALSE(incbin) << "the planted file was copied into the image";
  // The compiler may say that it cannot read it; what it holds must not come out.
  for (const auto* r : {&include, &incbin}) EXPECT_TRUE(*r || r->error().log.find("forge_secret") == std::string::npos) << said(*r);
  // That it exists can be told (Landlock refuses to open it, it does not hide it), never what it holds.
  const auto probe = build_toy(using_kernel("#if __has_include(\"" + path + "\")\n#error seen\n#endif"), kToyPlan, with);
  EXPECT_TRUE(probe || probe.error().log.find("error seen") == std::string::npos) << said(probe);
}

TEST(CompilerSandbox, ForeignFilesAreOutOfView) {
  if (probe_sandbox().landlock_abi == 0) GTEST_SKIP() << "no Landlock in this kernel";
  expect_file_out_of_view(compiler());
}

TEST(CompilerSandbox, ForeignFilesAreOutOfViewOfClang) {
  const fs::path clang = find_program("clang++");
  if (clang.empty() || probe_sandbox().landlock_abi == 0) GTEST_SKIP() << "no clang++ or no Landlock here";
  const auto with = make_cpu_compiler(clang);
  ASSERT_TRUE(with) << with.error().text();
  EXPECT_TRUE(build_toy(kToySource, kToyPlan, **with));
  expect_file_out_of_view(**with);
}

TEST(CompilerSandbox, BubblewrapDoesTheSameWhereLandlockIsMissing) {
  if (find_program("bwrap").empty()) GTEST_SKIP() << "no bubblewrap here";
  const auto with = limited({.view = CompilerView::bubblewrap});
  const auto image = build_toy(kToySource, kToyPlan, *with);
  if (!image && image.error().log.find("bwrap: ") != std::string::npos)
    GTEST_SKIP() << "bubblewrap may not make namespaces here: " << image.error().log;
  ASSERT_TRUE(image) << said(image);
  EXPECT_NE(std::find_if(image->build.sandbox.begin(), image->build.sandbox.end(),
                         [](const std::string& s) { return s.find("bubblewrap") != std::string::npos; }),
            image->build.sandbox.end());
  expect_file_out_of_view(*with);
}

TEST(CompilerSandbox, MountNamespacesDoTheSameWhereBothAreMissing) {
  if (!can_enter_private_view()) GTEST_SKIP() << "no namespaces for us here";
  const auto with = limited({.view = CompilerView::namespaces});
  const auto image = build_toy(kToySource, kToyPlan, *with);
  ASSERT_TRUE(image) << said(image);
  const auto& s = image->build.sandbox;
  EXPECT_TRUE(std::any_of(s.begin(), s.end(), [](const std::string& line) { return line.starts_with("mount namespace"); }));
  expect_file_out_of_view(*with);
}

TEST(CompilerSandbox, WithoutAViewTheRecordSaysSo) {
  const auto with = limited({.view = CompilerView::none});
  const auto image = build_toy(kToySource, kToyPlan, *with);
  ASSERT_TRUE(image) << said(image);
  const auto& s = image->build.sandbox;
  EXPECT_TRUE(std::any_of(s.begin(), s.end(), [](const std::string& line) { return line.starts_with("missing: a narrowed view"); }));
}

TEST(CompilerSandbox, LibrariesAndTheProcessAreOutOfView) {
  if (probe_sandbox().landlock_abi == 0) GTEST_SKIP() << "no Landlock in this kernel";
  for (const char* path :
       {"/etc/passwd", "/proc/self/environ", "/proc/self/maps", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/include/fmt/core.h"}) {
    if (!fs::exists(path)) continue;
    const auto r = build_toy(using_kernel(std::string("asm(\".section .rodata\\n.incbin \\\"") + path + "\\\"\\n.text\");"));
    EXPECT_FALSE(r) << path;
  }
}

TEST(CompilerSandbox, EnvironmentIsNotInherited) {
  setenv("CPLUS_INCLUDE_PATH", "/tmp", 1);
  setenv("GCC_EXEC_PREFIX", "/nowhere/", 1);
  const auto image = build_toy(kToySource);
  unsetenv("CPLUS_INCLUDE_PATH");
  unsetenv("GCC_EXEC_PREFIX");
  EXPECT_TRUE(image) << said(image);
}

TEST(Compiler, ImmintrinAndTheFreestandingHeadersWork) {
  const auto image =
      build_toy(using_kernel("#include <immintrin.h>\n#include <cstdint>\n#include <cstddef>\n#include <type_traits>\n#include "
                             "<limits>\n#include <cmath>\n#include <cstring>\n#include <algorithm>\n#include <array>\n#include <utility>"));
  EXPECT_TRUE(image) << said(image);
}

TEST(Compiler, AnErrorIsQuotedWithoutTheBuildFolder) {
  const auto r = build_toy("#include \"forge_args.h\"\nextern \"C\" void scale(const forge_args* a, const forge_block*) { a->q = 1; }\n");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason, Reason::build_failed);
  EXPECT_TRUE(r.error().detail.starts_with("kernel.cpp:2:")) << said(r);
  EXPECT_EQ(r.error().log.find("/tmp"), std::string::npos) << r.error().log;
}

TEST(CompileBomb, EndlessTemplateIsStopped) {
  const auto with = limited({.seconds = 3});
  const auto r = build_toy(
      using_kernel("template <int N, int K> struct S { static constexpr long v = S<N - 1, K * 2 + 1>::v + S<N - 1, K * 2>::v; };\n"
                   "template <int K> struct S<0, K> { static constexpr long v = K; };\nlong forge_bomb() { return S<29, 0>::v; }"),
      kToyPlan, *with);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason, Reason::build_timeout) << said(r);
  EXPECT_NE(r.error().detail.find("s"), std::string::npos);
}

TEST(CompileBomb, RecursionWithoutEndIsAnError) {
  const auto r = build_toy(
      using_kernel("template <int N> struct S { static constexpr long v = S<N + 1>::v; };\nlong forge_bomb() { return S<0>::v; }"));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason, Reason::build_failed) << said(r);
  EXPECT_LE(r.error().log.size(), 17000u);
}

TEST(CompileBomb, HugeTableIsRefused) {
  const auto with = limited({.seconds = 20, .object_bytes = std::size_t(8) << 20});
  const auto r = build_toy(using_kernel("[[gnu::used]] int forge_huge[1 << 30] = {1};"), kToyPlan, *with);
  ASSERT_FALSE(r);
  EXPECT_TRUE(r.error().reason == Reason::build_failed || r.error().reason == Reason::build_timeout) << said(r);
  EXPECT_NE(r.error().detail.find("MiB"), std::string::npos) << said(r);
}

TEST(CompileBomb, MemoryIsLimited) {
  const auto with = limited({.seconds = 30, .memory_bytes = std::size_t(300) << 20});
  const auto r = build_toy(
      using_kernel("#define A x,x,x,x,x,x,x,x,x,x\n#define B A,A,A,A,A,A,A,A,A,A\n#define C B,B,B,B,B,B,B,B,B,B\n#define D "
                   "C,C,C,C,C,C,C,C,C,C\n#define E D,D,D,D,D,D,D,D,D,D\n#define F E,E,E,E,E,E,E,E,E,E\n#define G F,F,F,F,F,F,F,F,F,F\n"
                   "const int x = 1;\nextern const int forge_bomb[]; const int forge_bomb[] = {G};"),
      kToyPlan, *with);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason, Reason::build_timeout) << said(r);
  EXPECT_NE(r.error().detail.find("memory"), std::string::npos) << said(r);
}

TEST(CompilerLog, IsValidUtf8AndCapped) {
  EXPECT_EQ(clean_log("a\xff"
                      "b\x1b[31m\tc\n",
                      ""),
            "a?b?[31m\tc\n");
  EXPECT_EQ(clean_log("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xed\xa0\x80 \xc0\x80", ""), "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 ??? ??");
  EXPECT_EQ(clean_log("/tmp/b1/kernel.cpp:3: in /tmp/b1", "/tmp/b1"), "kernel.cpp:3: in .");
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "\xe2\x82\xac";
  const std::string capped = clean_log(many, "");
  EXPECT_LE(capped.size(), (16u << 10) + 40);
  const std::size_t end = capped.find("\n... (");
  ASSERT_NE(end, std::string::npos);
  EXPECT_TRUE(clean_log(capped.substr(0, end), "") == capped.substr(0, end)) << "a sequence was cut";
}

TEST(CompilerLog, ALineDirectiveOrAQuotedLineDoesNotPassForTheError) {
  const ProcessResult failed{.exit_code = 1};
  const std::string log =
      "kernel.cpp:1:2: warning: error: of a comment\n   12 | int x; // error: none\n      | ^~~ error:\nkernel.cpp:7:1: error: the real "
      "one\n";
  EXPECT_EQ(explain_failure(failed, log, {})->detail, "kernel.cpp:7:1: error: the real one");
  EXPECT_TRUE(renames_lines("int a;\n  # line 3 \"other.cpp\"\n"));
  EXPECT_TRUE(renames_lines("%: 7 \"other.cpp\""));
  EXPECT_FALSE(renames_lines("#include <immintrin.h>\nint line; // #line"));
  const auto r = build_toy("#line 40 \"forge.cc\"\nint broken = ;\n");
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().detail.find("its own words"), std::string::npos) << r.error().detail;
}

TEST(CompilerLog, AnAssemblersErrorNamesTheKernelAndNotThePipe) {
  const auto r = build_toy(using_kernel("asm(\".incbin \\\"/nowhere/at/all\\\"\");"));
  ASSERT_FALSE(r);
  EXPECT_TRUE(r.error().detail.starts_with("in an asm of the kernel: file not found: /nowhere/at/all")) << r.error().detail;
}

TEST(CompilerLog, ACompilerThatALimitEndedDoesNotAskForABugReport) {
  ProcessResult failed;
  failed.exit_code = 4;
  const std::string log =
      "kernel.cpp:3:1: note: here\ng++: internal compiler error: File size limit exceeded signal terminated program as\nPlease submit a "
      "full bug report, with preprocessed source (by using -freport-bug).\nSee <file:///usr/share/doc/gcc-12/README.Bugs> for "
      "instructions.\n";
  const auto ended = explain_failure(failed, log, {});
  ASSERT_TRUE(ended);
  EXPECT_NE(ended->detail.find("the object is larger than"), std::string::npos);
  EXPECT_EQ(ended->log, "kernel.cpp:3:1: note: here\n");
  const std::string own = "kernel.cpp:3:1: internal compiler error: Segmentation fault\n";
  EXPECT_EQ(explain_failure(failed, own, {})->log, own);  // that one is its fault
}

TEST(FindCompiler, NothingInPathIsSaid) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const auto c = find_cpu_compiler();
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, Code::unsupported);
  EXPECT_NE(c.error().fix.find("apt-get install"), std::string::npos);
}

TEST(ExplainFailure, AKillAndAFullDiskAreTold) {
  ProcessResult r;
  r.exit_code = 1;
  r.output = "g++: fatal error: Killed signal terminated program cc1plus\n";
  EXPECT_TRUE(was_killed(r));
  EXPECT_TRUE(was_killed({.signal = SIGKILL}));
  EXPECT_TRUE(was_killed({.exit_code = 137})) << "as bubblewrap says it";
  EXPECT_FALSE(was_killed({.signal = SIGKILL, .timed_out = true}));
  EXPECT_FALSE(was_killed({.signal = SIGSEGV}));
  EXPECT_FALSE(was_killed({.exit_code = 1, .output = "kernel.cpp:1:1: error: no"}));

  const auto folder = TempDir::make();
  const ProcessResult full{.exit_code = 1, .output = "fatal error: error writing to k.s: No space left on device\n"};
  CompileLimits limits;
  EXPECT_FALSE(disk_filled(full, folder->path(), {.object_bytes = 0})) << "the source may say so; there is space";
  limits.object_bytes = ~std::size_t(0);
  const auto told = disk_filled(full, folder->path(), limits);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->code, Code::disk_full);
  EXPECT_FALSE(disk_filled({.exit_code = 1, .output = "error: no"}, folder->path(), limits));
}

// A script in PATH that runs the compiler from elsewhere: a sandbox shows the compiler, it cannot show what a script will run.
TEST(FindCompiler, AScriptLeadsToTheCompilerBehindIt) {
  for (const char* name : {"g++", "clang++"}) {
    const fs::path program = find_program(name);
    if (program.empty()) continue;
    const auto folder = TempDir::make("forge-script");
    const fs::path script = folder->path() / name;
    ASSERT_TRUE(write_file_atomic(script, "#!/bin/sh\nexec " + program.string() + " \"$@\"\n"));
    fs::permissions(script, fs::perms::owner_all);
    const auto with = make_cpu_compiler(script);
    ASSERT_TRUE(with) << with.error().text();
    const auto built = build_toy(kToySource, kToyPlan, **with);
    EXPECT_TRUE(built) << said(built);
  }
}

}  // namespace
}  // namespace forge
