// SPDX-License-Identifier: Apache-2.0
// What the benchmarks' programs take from the command line (bench/bench.h).
#include <gtest/gtest.h>

#include "../../../bench/bench.h"

namespace forge {
namespace {

int counted(const char* text) {
  std::string program = "bench", count = text;
  char* argv[] = {program.data(), count.data()};
  return bench::count_from(2, argv, 7);
}

TEST(BenchCount, IsTakenOrRefusedNeverGuessed) {
  EXPECT_EQ(bench::count_from(1, nullptr, 7), 7);
  EXPECT_EQ(counted("1000"), 1000);
  for (const char* odd : {"abc", "-5", "0", "", "10x", " 10", "1e3", "99999999999"})
    EXPECT_EXIT(counted(odd), testing::ExitedWithCode(2), "is no whole number from 1") << odd;
}

}  // namespace
}  // namespace forge
