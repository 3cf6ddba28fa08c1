// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include "kernel_fixture.h"

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
  for (const auto& line : (*runner)->sandbox()) EXPECT_EQ(line.find("missing"), std::string::npos) << line;
}

}  // namespace
}  // namespace forge
