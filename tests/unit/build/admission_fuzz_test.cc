// SPDX-License-Identifier: Apache-2.0
// Damaged objects: whatever is flipped or cut, the readers answer and never crash (run under the sanitizers too).
#include <gtest/gtest.h>

#include <cstring>

#include "toy.h"
#include "util/random.h"

namespace forge {
namespace {

using namespace testing;

const Image& good_image() {
  static const Image image = [] {
    const auto package = read_package_folder(fs::path(FORGE_SOURCE_DIR) / "tests/exploits/admission/control_tables");
    EXPECT_TRUE(package) << package.error().text();
    auto built = Builder(compiler(), {}).build(*package, toy_definition(), avx2());
    EXPECT_TRUE(built) << said(built);
    return built ? *built : Image{};
  }();
  return image;
}

// Everything that reads a foreign object. Returns whether it was admitted.
bool read_all(const std::string& object, const LaunchPlan& plan) {
  const auto mix = disassemble_object(object);
  if (mix) {
    EXPECT_LE(mix->loops.size(), 4u);
  }
  const auto admitted = admit_cpu_object(object, plan);
  if (!admitted) {
    EXPECT_FALSE(admitted.error().rule.empty());
    EXPECT_FALSE(admitted.error().detail.empty());
  }
  return admitted.has_value();
}

TEST(AdmissionFuzz, TruncatedAnywhere) {
  const Image& good = good_image();
  ASSERT_TRUE(read_all(good.bytes, good.plan));
  for (std::size_t n = 0; n < good.bytes.size(); n += n < 200 || n + 1500 > good.bytes.size() ? 1 : 7)
    EXPECT_FALSE(read_all(good.bytes.substr(0, n), good.plan)) << n;  // the section table comes last
}

TEST(AdmissionFuzz, FlippedBytes) {
  const Image& good = good_image();
  Random random(20261130);
  int refused = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    std::string bad = good.bytes;
    for (std::uint64_t k = 0, n = 1 + random.below(4); k < n; ++k) bad[random.below(bad.size())] = static_cast<char>(random.next());
    refused += !read_all(bad, good.plan);
  }
  EXPECT_GT(refused, 1000);  // most bytes matter
}

// Headers and tables, where a number decides what is read next, with the numbers that break readers.
TEST(AdmissionFuzz, ExtremeNumbersInTables) {
  const Image& good = good_image();
  Random random(7);
  const std::uint64_t extremes[] = {
      0, 1, 0xff, 0xffff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff, good.bytes.size(), good.bytes.size() - 1};
  std::uint64_t table = 0;
  std::memcpy(&table, good.bytes.data() + 0x28, 8);  // e_shoff
  ASSERT_LT(table, good.bytes.size());
  for (int trial = 0; trial < 6000; ++trial) {
    std::string bad = good.bytes;
    const std::size_t width = std::size_t(1) << random.below(4);
    const bool header = random.below(4) == 0;
    const std::size_t at = header ? random.below(64) : table + random.below(bad.size() - table);
    const std::uint64_t value = extremes[random.below(std::size(extremes))];
    if (at + width > bad.size()) continue;
    std::memcpy(bad.data() + at, &value, width);
    read_all(bad, good.plan);
  }
}

TEST(AdmissionFuzz, RandomCodeIsDisassembled) {
  Random random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::pair<std::uint64_t, std::string>> regions;
    for (std::uint64_t r = 0, n = random.below(4); r < n; ++r) {
      std::string bytes(random.below(400), '\0');
      for (char& c : bytes) c = static_cast<char>(random.next());
      regions.emplace_back(trial % 2 ? random.next() : 0x1000 + random.below(300), std::move(bytes));
    }
    const InstructionMix mix = disassemble_code(regions, "jit");
    EXPECT_GE(mix.instructions + mix.undecoded, 0);
  }
}

}  // namespace
}  // namespace forge
