// SPDX-License-Identifier: Apache-2.0
// Experts compiled at test time: one body of run() each.
#include <algorithm>

#include "kernel_fixture.h"

namespace forge {
namespace {

const char* k_expert = R"(
#include "forge/expert.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <new>
static forge_tensor g_in[4], g_out[4];
static int64_t g_n;
static char g_text[200];
static const char* g_error = "";
static void* create(int32_t threads, const int32_t*) { snprintf(g_text, sizeof g_text, "toy 1.0, %d threads, OMP %s", threads, getenv("OMP_NUM_THREADS")); return g_text; }
static const char* describe(void*) { return g_text; }
static const char* error(void*) { return g_error; }
static int32_t prepare(void*) { return 0; }
static void destroy(void*) {}
static int32_t plan(void*, const forge_tensor* in, int32_t ni, const forge_tensor* out, int32_t no) {
  memcpy(g_in, in, ni * sizeof *in); memcpy(g_out, out, no * sizeof *out);
  g_n = in[0].shape[0];
  if (g_n == 13) { g_error = "unlucky shape"; return 1; }
  return 0;
}
static float* X() { return (float*)g_in[0].data; }
static float* Y() { return (float*)g_out[0].data; }
static int32_t run(void*);
static const forge_expert_v1 api = {FORGE_EXPERT_VERSION, "toy", "toy", 1, 0, create, describe, plan, prepare, run, error, destroy};
extern "C" const forge_expert_v1* forge_expert(void) { return &api; }
static int32_t run(void*) {
)";

class ExpertTest : public KernelTest {
 protected:
  RunnerResult<std::unique_ptr<Runner>> start(const std::string& run_body, RunnerOptions o = options()) {
    auto folder = TempDir::make("expert");
    EXPECT_TRUE(folder);
    m_folder = std::make_unique<TempDir>(std::move(*folder));
    const fs::path source = m_folder->path() / "expert.cc", library = m_folder->path() / "expert-toy.so";
    EXPECT_TRUE(write_file_atomic(source, k_expert + run_body + "\n  return 0;\n}\n"));
    ProcessOptions p;
    p.argv = {"g++",           "-shared", "-fPIC",          "-O1",      "-w", "-I", std::string(FORGE_SOURCE_DIR) + "/include",
              source.string(), "-o",      library.string(), "-lpthread"};
    p.env = {"PATH=/usr/bin:/bin"};
    const auto r = run_process(p);
    EXPECT_TRUE(r && r->exit_code == 0) << (r ? r->output : r.error().text());
    return start_expert_runner(library.string(), o);
  }
  RunnerResult<CallTiming> run_expert(const std::string& body, RunnerOptions o = options()) {
    auto runner = start(body, o);
    if (!runner) return tl::unexpected(runner.error());
    if (auto p = (*runner)->prepare(spec()); !p) return tl::unexpected(p.error());
    return (*runner)->call();
  }
  std::unique_ptr<TempDir> m_folder;
};

TEST_F(ExpertTest, RunsOnTheJudgesBuffersAndDescribesItself) {
  auto runner = start("for (int64_t i = 0; i < g_n; ++i) Y()[i] = X()[i] * 3;");
  ASSERT_TRUE(runner) << runner.error().detail;
  EXPECT_EQ((*runner)->description().rfind("toy 1.0, ", 0), 0u) << (*runner)->description();
  EXPECT_NE((*runner)->description().find("OMP " + std::to_string(options().cores.size())), std::string::npos);
  EXPECT_TRUE((*runner)->composed());
  EXPECT_FALSE((*runner)->call());  // nothing planned yet
  ASSERT_TRUE((*runner)->prepare(spec()));
  for (int i = 0; i < 5; ++i) {
    floats(*m_x)[9] = static_cast<float>(i);
    const auto t = (*runner)->call();
    ASSERT_TRUE(t) << t.error().detail;
    EXPECT_EQ(floats(*m_y)[9], static_cast<float>(i) * 3);
  }
  for (const auto& line : (*runner)->sandbox()) EXPECT_EQ(line.find("missing: seccomp"), std::string::npos) << line;
}

TEST_F(ExpertTest, ARefusedShapeLeavesItUsable) {
  auto runner = start("Y()[0] = 5;");
  ASSERT_TRUE(runner) << runner.error().detail;
  CallSpec c = spec();
  c.input_shapes = c.output_shapes = {{13}};
  const auto refused = (*runner)->prepare(c);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("unlucky shape"), std::string::npos);
  ASSERT_TRUE((*runner)->prepare(spec()));
  ASSERT_TRUE((*runner)->call());
  EXPECT_EQ(floats(*m_y)[0], 5.f);
}

TEST_F(ExpertTest, ScalarsArriveInTheirType) {
  auto runner = start("Y()[0] = *(const float*)g_in[1].data; Y()[1] = g_in[1].rank; Y()[2] = g_in[1].bits;");
  ASSERT_TRUE(runner);
  CallSpec c = spec();
  c.inputs.push_back({});
  c.input_specs.push_back({"eps", DType::f32, true, {}});
  c.input_shapes.push_back({});
  c.scalars = {0.25};
  const auto p = (*runner)->prepare(c);
  ASSERT_TRUE(p) << p.error().detail;
  ASSERT_TRUE((*runner)->call());
  EXPECT_EQ(floats(*m_y)[0], 0.25f);
  EXPECT_EQ(floats(*m_y)[1], 0.f);
  EXPECT_EQ(floats(*m_y)[2], 32.f);
}

TEST_F(ExpertTest, MisdeedsHaveTheirReasons) {
  struct Case {
    const char* body;
    Reason reason;
    const char* detail;
  };
  const Case cases[] = {
      {"socket(AF_INET, SOCK_STREAM, 0);", Reason::forbidden_call, "socket (41)"},
      {"if (fork() == 0) _exit(0);", Reason::forbidden_call, "clone (56)"},
      {"execl(\"/bin/true\", \"true\", (char*)0);", Reason::forbidden_call, "execve (59)"},
      {"kill(getppid(), 9);", Reason::forbidden_call, "kill (62)"},
      {"X()[1] = 3;", Reason::out_of_bounds, "wrote to input x at byte 4"},
      {"Y()[g_n + 64] = 3;", Reason::out_of_bounds, "past the end of output y"},
      {"abort();", Reason::crashed, "signal 6"},
      {"*(volatile int*)0 = 1;", Reason::crashed, "segmentation fault"},
      {"_exit(0);", Reason::runner_broke, "exit code 0"},
      {"g_error = \"no luck\"; return 2;", Reason::runner_broke, "no luck"},
#ifndef __SANITIZE_ADDRESS__
      {"static char* volatile p; for (;;) { p = new char[1 << 26]; memset(p, 1, 1 << 26); }", Reason::out_of_memory, "out of memory"},
#endif
      {"throw 3;", Reason::runner_broke, "threw"},
  };
  RunnerOptions o = options();
  o.memory_bytes = std::size_t(256) << 20;
  for (const Case& c : cases) {
    const auto r = run_expert(c.body, o);
    ASSERT_FALSE(r) << c.body;
    EXPECT_EQ(r.error().reason, c.reason) << c.body << "\n" << r.error().detail;
    EXPECT_NE(r.error().detail.find(c.detail), std::string::npos) << c.body << "\n" << r.error().detail;
  }
}

TEST_F(ExpertTest, FilesAreReadOnlyAndThreadsAllowed) {
  const auto r = run_expert(R"(
    int fd = open("/tmp/forge-expert-was-here", O_CREAT | O_WRONLY, 0644);
    Y()[0] = fd < 0 ? 1 : 0;
    fd = open("/proc/cpuinfo", O_RDONLY);
    Y()[1] = fd >= 0 ? 1 : 0;
    pthread_t t;
    Y()[2] = 0;
    if (pthread_create(&t, 0, [](void*) -> void* { Y()[2] = 1; return 0; }, 0) == 0) pthread_join(t, 0);
    Y()[3] = getenv("PATH") || getenv("HOME") || getenv("LD_LIBRARY_PATH") ? 0 : 1;
  )");
  ASSERT_TRUE(r) << r.error().detail;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(floats(*m_y)[i], 1.f) << i;
  EXPECT_FALSE(fs::exists("/tmp/forge-expert-was-here"));
}

TEST_F(ExpertTest, AThreadThatGoesOnAfterRunIsStopped) {
  auto runner = start(R"(
    static volatile long count;
    static pthread_t t;
    if (!t) pthread_create(&t, 0, [](void*) -> void* { for (;;) ++count; }, 0);
    Y()[0] = (float)(count >> 20);
  )");
  ASSERT_TRUE(runner);
  ASSERT_TRUE((*runner)->prepare(spec()));
  ASSERT_TRUE((*runner)->call());
  ASSERT_TRUE((*runner)->call());
  const float before = floats(*m_y)[0];
  usleep(900'000);
  ASSERT_TRUE((*runner)->call());
  EXPECT_LT(floats(*m_y)[0] - before, 100.f);  // 900 ms of counting would be over 300; on a busy machine a call itself takes a while
}

TEST_F(ExpertTest, ProfileFindsGeneratedCode) {
  auto runner = start(R"(
    static void (*loop)(long);
    if (!loop) {  // mov rax, rdi; L: dec rax; jnz L; ret
      const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
      void* p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      memcpy(p, code, sizeof code);
      loop = (void (*)(long))p;
    }
    loop(20000000);
  )");
  ASSERT_TRUE(runner);
  ASSERT_TRUE((*runner)->prepare(spec()));
  const auto p = (*runner)->profile(0.5);
  ASSERT_TRUE(p) << p.error().detail;
  EXPECT_GT(p->samples, 20);
  ASSERT_FALSE(p->where.empty());
  EXPECT_EQ(p->where[0].mapping, "jit");
  EXPECT_GT(p->where[0].share, 0.8);
  ASSERT_FALSE(p->hot_code.empty());
  EXPECT_NE(p->hot_code[0].second.find("\x75\xfb\xc3"), std::string::npos);
  ASSERT_FALSE(p->hot_places.empty());
  EXPECT_EQ(p->hot_places[0], p->hot_code[0].first);  // a window starts at its first sample
  ASSERT_TRUE((*runner)->call());                     // still usable, and no timer left behind
}

TEST_F(ExpertTest, AHangIsKilledAtTheDeadline) {
  RunnerOptions o = options();
  o.call_timeout_s = 0.3;
  const auto r = run_expert("for (;;) pause();", o);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason, Reason::timed_out);
}

TEST_F(ExpertTest, AMissingOrForeignLibraryIsNamed) {
  const auto missing = start_expert_runner("/nonexistent/expert-x.so", options());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().reason, Reason::load_failed);
  EXPECT_NE(missing.error().detail.find("expert-x.so"), std::string::npos) << missing.error().detail;
  const auto foreign = start_expert_runner("/lib/x86_64-linux-gnu/libm.so.6", options());
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().detail.find("forge_expert"), std::string::npos) << foreign.error().detail;
}

TEST_F(KernelTest, ImagesHaveNoProfile) {
  auto runner = start_image_runner(compile(k_double), options());
  ASSERT_TRUE(runner);
  ASSERT_TRUE((*runner)->prepare(spec()));
  const auto p = (*runner)->profile(0.1);
  ASSERT_TRUE(p) << p.error().detail;
  EXPECT_EQ(p->samples, 0);
  EXPECT_TRUE(p->where.empty());
  EXPECT_FALSE(p->note.empty());
}

}  // namespace
}  // namespace forge
