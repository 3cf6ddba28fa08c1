// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/cpu.h"
#include "device/survey.h"
#include "util/progress.h"

namespace forge {
namespace {

TEST(CpuProbe, ThisMachineHasATargetAndProperties) {
  const auto target = native_cpu_target();
  ASSERT_TRUE(target) << target.error().text();
  const auto m = probe_cpu(*target);
  ASSERT_TRUE(m) << m.error().text();
  EXPECT_EQ(m->device_class.rfind("cpu:", 0), 0u);
  EXPECT_EQ(m->boot_id.size(), 36u);
  EXPECT_EQ(m->cores, static_cast<int>(usable_cores().size()));
  for (const char* name : {"l1d_bytes", "l2_bytes", "cores", "vector_bits", "has_avx512", "has_avx512_bf16", "line_bytes", "page_bytes"})
    EXPECT_TRUE(m->properties.count(name)) << name;
  EXPECT_GE(m->properties.at("l1d_bytes"), 16 << 10);
  EXPECT_EQ(m->properties.at("vector_bits"), target->vector_bits);
}

TEST(CpuProbe, RefusesATargetOfAnotherFamily) {
  TargetSpec cuda{.name = "cuda:sm_90a", .family = "cuda"};
  const auto m = probe_cpu(cuda);
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().code, Code::bad_input);
}

TEST(CpuCeilings, ArePlausibleAndCached) {
  const auto machine = probe_cpu(*native_cpu_target());
  ASSERT_TRUE(machine);
  auto folder = TempDir::make();
  ASSERT_TRUE(folder);
  const fs::path cache = folder->path() / "sub" / "ceilings.txt";
  const auto before = usable_cores();
  const auto first = measure_ceilings(*machine, cache);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(usable_cores(), before);  // the caller's affinity is as it was
  EXPECT_GT(first->gflops, 5.0);
  EXPECT_LT(first->gflops, 1e5);
  EXPECT_GT(first->read_gbs, 0.5);
  EXPECT_GT(first->copy_gbs, 0.5);
  RecordProperty("gflops", std::to_string(first->gflops));
  std::printf("ceilings: %.1f GFLOP/s, read %.1f GB/s, copy %.1f GB/s\n", first->gflops, first->read_gbs, first->copy_gbs);

  const double begin = monotonic_seconds();
  const auto second = measure_ceilings(*machine, cache);
  ASSERT_TRUE(second);
  EXPECT_LT(monotonic_seconds() - begin, 0.1);
  EXPECT_NEAR(second->gflops, first->gflops, first->gflops * 1e-4);

  Machine other_boot = *machine;
  other_boot.boot_id = "another";
  ASSERT_TRUE(write_file_atomic(cache, "damaged"));
  const auto third = measure_ceilings(other_boot, cache);  // neither a foreign nor a damaged cache is believed
  ASSERT_TRUE(third);
  EXPECT_EQ(read_file(cache)->find("forge-ceilings 1 another"), 0u);
}

TEST(CpuSurvey, ChoosesTheTargetAndKeepsOneCache) {
  auto home = TempDir::make();
  ASSERT_TRUE(home);
  const auto machine = survey_machine("", home->path());
  ASSERT_TRUE(machine) << machine.error().text();
  EXPECT_EQ(machine->target.name, native_cpu_target()->name);
  EXPECT_GT(machine->ceilings.gflops, 0);
  EXPECT_TRUE(fs::exists(ceilings_cache(home->path())));
  EXPECT_EQ(survey_machine("cpu:z80", home->path()).error().code, Code::bad_input);
}

}  // namespace
}  // namespace forge
