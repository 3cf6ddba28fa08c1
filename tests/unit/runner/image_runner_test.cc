// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "kernel_fixture.h"
#include "runner/channel.h"
#include "runner/spawn.h"

namespace forge {
namespace {

TEST_F(KernelTest, CorrectKernelWritesItsOutput) {
  auto runner = start_image_runner(compile(k_double), options());
  ASSERT_TRUE(runner) << runner.error().detail;
  auto prepared = (*runner)->prepare(spec());
  ASSERT_TRUE(prepared) << prepared.error().detail;
  for (int repeat = 0; repeat < 20; ++repeat) {
    floats(*m_x)[3] = static_cast<float>(repeat);
    floats(*m_y)[3] = -1;
    auto t = (*runner)->call();
    ASSERT_TRUE(t) << t.error().detail;
    EXPECT_GT(t->outside_s, t->inside_s);
    EXPECT_EQ(floats(*m_y)[3], static_cast<float>(repeat) * 2 + 7);
  }
  for (std::size_t i = 4; i < k_n; ++i) ASSERT_EQ(floats(*m_y)[i], floats(*m_x)[i] * 2 + 7) << i;
#ifndef __SANITIZE_ADDRESS__  // which needs more address space than any limit leaves
  for (const auto& line : (*runner)->sandbox()) EXPECT_EQ(line.find("missing"), std::string::npos) << line;
#endif
}

// The failure that a kernel body leads to.
struct Expected {
  Reason reason;
  const char* detail;
};
#define ENTRY "extern \"C\" __attribute__((visibility(\"default\"))) void k(const forge_args* a, const forge_block* b) {"

TEST_F(KernelTest, ZeroWorkspaceAndScratchAreThere) {
  const Image image = compile(ENTRY R"(
    float* s = (float*)b->scratch;
    s[0] = 1; s[b->worker + 1] = 2; ((char*)b->scratch)[8191] = 1;
    a->y[b->index] = a->w[b->index] + (float)b->count + (b->worker < b->workers ? 0.5f : 0.f);
  })",
                              8192);
  auto runner = start_image_runner(image, options());
  ASSERT_TRUE(runner) << runner.error().detail;
  CallSpec c = spec(64);
  c.plan.workspaces[0].init = WorkspaceInit::zero;
  std::memset(m_w->data(), 0x5a, m_w->bytes());
  ASSERT_TRUE((*runner)->prepare(c));
  auto t = (*runner)->call();
  ASSERT_TRUE(t) << t.error().detail;
  for (int i = 0; i < 64; ++i) EXPECT_EQ(floats(*m_y)[i], 64.5f);
  EXPECT_EQ(floats(*m_w)[k_n - 1], 0.f);
}

TEST_F(KernelTest, LaunchesRunInOrderWithABarrierBetween) {
  Image image = compile(ENTRY R"( for (int i = b->index; i < a->n; i += b->count) a->w[i] = a->x[i] + 1; }
    extern "C" __attribute__((visibility("default"))) void second(const forge_args* a, const forge_block* b) {
      for (int i = b->index; i < a->n; i += b->count) a->y[i] = a->w[a->n - 1 - i];
    })");
  LaunchSpec second;
  second.entry = "second";
  image.plan.launches.push_back(second);
  auto runner = start_image_runner(image, options());
  ASSERT_TRUE(runner) << runner.error().detail;
  CallSpec c = spec();
  c.plan.launches = {{"k", 7, 0}, {"second", 3, 0}};
  ASSERT_TRUE((*runner)->prepare(c));
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::memset(m_y->data(), 0xff, m_y->bytes());
    ASSERT_TRUE((*runner)->call());
    for (std::size_t i = 0; i < k_n; ++i) ASSERT_EQ(floats(*m_y)[i], floats(*m_x)[k_n - 1 - i] + 1);
  }
  c.plan.launches = {{"absent", 1, 0}};
  const auto p = (*runner)->prepare(c);
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().reason, Reason::plan_invalid);
}

TEST_F(KernelTest, MemoryFunctionsComeFromTheLoader) {
  const auto r = run_once(R"(extern "C" { void* memcpy(void*, const void*, unsigned long); void* memset(void*, int, unsigned long);
      void* memmove(void*, const void*, unsigned long); int memcmp(const void*, const void*, unsigned long); })" ENTRY R"(
    if (b->index) return;
    memcpy(a->y, a->x, a->n * 4);
    memset(a->w, 0, a->n * 4);
    memmove(a->y + 1, a->y, 999 * 4);
    a->y[0] = memcmp(a->y + 1, a->x, 999 * 4) == 0 ? 42.f : -1.f;
  })");
  ASSERT_TRUE(r) << r.error().detail;
  EXPECT_EQ(floats(*m_y)[0], 42.f);
  EXPECT_EQ(floats(*m_y)[999], floats(*m_x)[998]);
}

TEST_F(KernelTest, EveryMisdeedHasItsReason) {
  const std::pair<std::string, Expected> cases[] = {
      {"*(volatile int*)16 = 1; }", {Reason::crashed, "segmentation fault"}},
      {"a->y[a->n + 64] = 1; }", {Reason::out_of_bounds, "past the end of output y"}},
      {"volatile float v = a->x[a->n + 64]; (void)v; }", {Reason::out_of_bounds, "past the end of input x"}},
      {"volatile float v = a->x[-5000]; (void)v; }", {Reason::out_of_bounds, "before input x"}},
      {"((float*)a->x)[5] = 1; }", {Reason::out_of_bounds, "wrote to input x at byte 20"}},
      {"((char*)b->scratch)[8192] = 1; }", {Reason::out_of_bounds, "scratch of worker"}},
      {"__builtin_trap(); }", {Reason::crashed, "illegal instruction"}},
      {"volatile int z = 0; a->y[0] = 100 / z; }", {Reason::crashed, "division"}},
      {"asm volatile(\"movaps 4(%0), %%xmm0\" :: \"r\"(a->y) : \"xmm0\"); }", {Reason::crashed, "misaligned"}},
      {"long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"(39) : \"rcx\", \"r11\", \"memory\"); }",
       {Reason::forbidden_call, "getpid (39)"}},
      {"long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"(231), \"D\"(0) : \"rcx\", \"r11\", \"memory\"); }",
       {Reason::forbidden_call, "exit_group (231)"}},
      // A call that the harness's own loop may make: not from an image.
      {"long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"(228), \"D\"(1), \"S\"(0) : \"rcx\", \"r11\", \"memory\"); }",
       {Reason::forbidden_call, "clock_gettime (228)"}},
      {"volatile char big[3000]; big[b->index] = 1; k(a, b); a->y[0] += big[b->index]; }", {Reason::crashed, "stack of worker"}},
      {"void (*f)() = (void (*)())a->y; f(); }", {Reason::crashed, "segmentation fault"}},
      {"*(volatile char*)&k = 1; }", {Reason::crashed, "segmentation fault"}},
  };
  for (const auto& [body, expected] : cases) {
    const auto r = run_once(ENTRY + body, 4, 8192);
    ASSERT_FALSE(r) << body;
    EXPECT_EQ(r.error().reason, expected.reason) << body << "\n" << r.error().detail;
    EXPECT_NE(r.error().detail.find(expected.detail), std::string::npos) << body << "\n" << r.error().detail;
  }
}

TEST_F(KernelTest, AHangIsKilledAtTheDeadline) {
  RunnerOptions o = options();
  o.call_timeout_s = 0.3;
  const auto r = run_once(ENTRY "for (volatile int i = 0;; ) i = i + 1; }", 4, 0, o);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason, Reason::timed_out);
}

TEST_F(KernelTest, StackScratchAndRegistersForgetBetweenCalls) {
  // Leaves a mark 2 KiB and 100 KiB down the stack, at the end of scratch, and in zmm16 / ymm15; reports what it finds of them.
  const Image image = compile(ENTRY R"(
    unsigned long found = 0, mark = 0x1234567890abcdefUL, v;
    char* here = (char*)__builtin_frame_address(0);
    if (*(volatile unsigned long*)(here - 2048) == mark) found |= 1;
    if (*(volatile unsigned long*)(here - 100000) == mark) found |= 2;
    if (*(volatile unsigned long*)((char*)b->scratch + 4088) == mark) found |= 4;
    asm volatile("vmovq %%xmm15, %0" : "=r"(v)); if (v == mark) found |= 8;
    if (a->extra == 512) { asm volatile("vmovq %%xmm20, %0" : "=r"(v)); if (v == mark) found |= 16; }
    a->y[b->worker] = found;
    *(volatile unsigned long*)(here - 2048) = mark;
    *(volatile unsigned long*)(here - 100000) = mark;
    *(volatile unsigned long*)((char*)b->scratch + 4088) = mark;
    asm volatile("vmovq %0, %%xmm15" :: "r"(mark));
    if (a->extra == 512) asm volatile("vmovq %0, %%xmm20" :: "r"(mark));
  })",
                              4096);
  auto runner = start_image_runner(image, options());
  ASSERT_TRUE(runner) << runner.error().detail;
  CallSpec c = spec(1);  // one block a call: blocks of one call may see each other's leavings
  c.plan.lets = {{"extra", __builtin_cpu_supports("avx512vl") ? 512 : 256}};
  ASSERT_TRUE((*runner)->prepare(c));
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::memset(m_y->data(), 0, m_y->bytes());
    ASSERT_TRUE((*runner)->call());
    for (std::size_t worker = 0; worker < options().cores.size(); ++worker)
      ASSERT_EQ(floats(*m_y)[worker], 0.f) << "bits found on call " << repeat;
  }
}

TEST_F(KernelTest, BlocksSeeDefaultFloatingPointState) {
  const Image image = compile(ENTRY R"(
    unsigned mxcsr; asm volatile("stmxcsr %0" : "=m"(mxcsr));
    if (mxcsr != 0x1f80) a->y[1] = 1;
    a->y[0] = 3;
    unsigned other = 0xffc0; asm volatile("ldmxcsr %0; std" :: "m"(other));
  })");
  auto runner = start_image_runner(image, options());
  ASSERT_TRUE(runner);
  ASSERT_TRUE((*runner)->prepare(spec(32)));
  std::memset(m_y->data(), 0, m_y->bytes());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE((*runner)->call());
  EXPECT_EQ(floats(*m_y)[0], 3.f);
  EXPECT_EQ(floats(*m_y)[1], 0.f);
}

TEST_F(KernelTest, LoadFailuresAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"static int state; " ENTRY "a->y[0] = state++; }", "state"},
      {"extern \"C\" float sinf(float); " ENTRY "a->y[0] = sinf(a->x[0]); }", "sinf"},
      {"extern \"C\" void other() {}", "k is missing"},
  };
  for (const auto& [source, detail] : cases) {
    const auto r = start_image_runner(compile(source), options());
    ASSERT_FALSE(r) << source;
    EXPECT_EQ(r.error().reason, Reason::load_failed) << r.error().detail;
    EXPECT_NE(r.error().detail.find(detail), std::string::npos) << r.error().detail;
  }
  Image garbage = compile(k_double);
  garbage.bytes.resize(100);
  EXPECT_EQ(start_image_runner(garbage, options()).error().reason, Reason::load_failed);
}

TEST_F(KernelTest, ScratchBeyondTheMemoryLimitIsRefused) {
  RunnerOptions o = options();
  o.memory_bytes = std::size_t(64) << 20;
  const auto r = run_once(k_double, 4, std::int64_t(1) << 30, o);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason, Reason::out_of_memory);
}

std::vector<pid_t> runner_children() {
  std::vector<pid_t> pids;
  std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  while (const dirent* e = readdir(proc.get())) {
    const pid_t pid = std::atoi(e->d_name);
    if (pid <= 0) continue;
    const auto stat = read_file(fs::path("/proc") / e->d_name / "stat");
    char state = 0;
    int parent = 0;
    if (stat && stat->find("(forge-runner)") != std::string::npos &&
        std::sscanf(stat->c_str() + stat->rfind(')') + 1, " %c %d", &state, &parent) == 2 && parent == getpid())
      pids.push_back(pid);
  }
  return pids;
}

// Every thread's state letter, from procfs.
std::string thread_states(pid_t pid) {
  std::string states;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    const auto stat = read_file(task.path() / "stat");
    if (stat) states += (*stat)[stat->rfind(')') + 2];
  }
  return states;
}

TEST_F(KernelTest, IsStoppedBetweenCallsAndBurnsNothing) {
  auto runner = start_image_runner(compile(k_double), options());
  ASSERT_TRUE(runner);
  ASSERT_TRUE((*runner)->prepare(spec()));
  const auto pids = runner_children();
  ASSERT_EQ(pids.size(), 1u);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE((*runner)->call());
    EXPECT_EQ(thread_states(pids[0]), std::string(options().cores.size(), 'T'));
  }
  clockid_t clock;
  ASSERT_EQ(clock_getcpuclockid(pids[0], &clock), 0);
  timespec before, after;
  clock_gettime(clock, &before);
  usleep(50'000);
  clock_gettime(clock, &after);
  EXPECT_EQ(before.tv_sec, after.tv_sec);
  EXPECT_EQ(before.tv_nsec, after.tv_nsec);
}

TEST_F(KernelTest, AKilledRunnerIsAFailureAndLeavesNoZombie) {
  auto runner = start_image_runner(compile(k_double), options());
  ASSERT_TRUE(runner);
  ASSERT_TRUE((*runner)->prepare(spec()));
  ASSERT_TRUE((*runner)->call());
  const auto pids = runner_children();
  ASSERT_EQ(pids.size(), 1u);
  kill(pids[0], SIGKILL);
  const auto r = (*runner)->call();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason, Reason::runner_broke);
  EXPECT_NE(r.error().detail.find("signal 9"), std::string::npos) << r.error().detail;
  EXPECT_EQ((*runner)->call().error().reason, Reason::runner_broke);  // and stays so
  EXPECT_TRUE(runner_children().empty());
}

std::size_t open_files() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& e : fs::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

TEST_F(KernelTest, TwoHundredStartsLeakNothing) {
  const Image good = compile(k_double), bad = compile(ENTRY "__builtin_trap(); }");
  const std::size_t before = open_files();
  for (int i = 0; i < 200; ++i) {
    auto runner = start_image_runner(i % 4 == 3 ? bad : good, options());
    ASSERT_TRUE(runner) << i << " " << runner.error().detail;
    ASSERT_TRUE((*runner)->prepare(spec()));
    EXPECT_EQ((*runner)->call().has_value(), i % 4 != 3);
  }
  EXPECT_EQ(open_files(), before);
  EXPECT_TRUE(runner_children().empty());
}

TEST_F(KernelTest, AMissingProgramIsNamed) {
  RunnerOptions o = options();
  o.program = "/nonexistent/forge-runner";
  const auto r = start_image_runner(compile(k_double), o);
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().detail.find("/nonexistent/forge-runner"), std::string::npos);
  o.program = "/bin/true";  // a program that does not speak the protocol
  const auto silent = start_image_runner(compile(k_double), o);
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().reason, Reason::runner_broke);
}

TEST_F(KernelTest, NobodyWaitsForARunnerThatDoesNotRead) {
  auto deaf = RunnerProcess::start("/usr/bin/yes", {});
  ASSERT_TRUE(deaf);
  const std::string packet(8192, 'x');
  int error = 0;
  for (int i = 0; i < 10000 && error == 0; ++i) error = send_packet(deaf->channel(), packet.data(), packet.size());
  EXPECT_EQ(error, EAGAIN);
}

TEST_F(KernelTest, AnEmptyCallCostsLittle) {
  auto runner = start_image_runner(compile(ENTRY "}"), options());
  ASSERT_TRUE(runner);
  ASSERT_TRUE((*runner)->prepare(spec(2)));
  std::vector<double> inside, outside, turn;
  for (int i = 0; i < 300; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto t = (*runner)->call();
    turn.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    ASSERT_TRUE(t);
    inside.push_back(t->inside_s);
    outside.push_back(t->outside_s);
  }
  const auto median = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
    return v[v.size() / 2] * 1e6;
  };
  const double in = median(inside), out = median(outside), whole = median(turn);
  std::printf("empty call, median of 300: inside %.2f us, outside %.1f us, whole turn %.0f us\n", in, out, whole);
  // Loose: the machine that runs this may be busy. docs/formats/runner-protocol.md has the figures of a quiet one.
  EXPECT_LT(in, 200);
  EXPECT_LT(out, 2000);
}

}  // namespace
}  // namespace forge
