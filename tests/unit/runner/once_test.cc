// SPDX-License-Identifier: Apache-2.0
// A call as a file, written by the judge's side, read and made by the runner's, over a driver of host functions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda_fake_driver.h"
#include "device/cuda.h"
#include "forge/fill.h"
#include "runner/cuda_compose.h"
#include "runner/cuda_serve.h"
#include "util/process.h"

namespace forge {
namespace {

class OnceTest : public testing::Test {
 protected:
  void SetUp() override {
    fake_card::state() = {};
    cu::set_driver(&fake_card::driver());
    m_folder = std::make_unique<TempDir>(*TempDir::make());
    m_x = std::make_unique<DeviceBuffer>(*DeviceBuffer::make(1 << 22, "x"));
    m_y = std::make_unique<DeviceBuffer>(*DeviceBuffer::make(1 << 20, "y"));
  }
  void TearDown() override {
    m_x.reset();
    m_y.reset();
    cu::set_driver(nullptr);
  }
  fs::path path() const { return m_folder->path() / "call"; }
  CallSpec spec() const {
    CallSpec s;
    s.plan.launches = {{.entry = "copy", .grid = 8, .block = 128}};
    using K = ArgField::Kind;
    s.layout.fields = {{.kind = K::tensor, .name = "x", .offset = 0, .bytes = 8},
                       {.kind = K::tensor, .name = "y", .offset = 8, .bytes = 8}};
    s.layout.bytes = 16;
    s.input_specs = {{.name = "x", .dtype = DType::f16}};
    s.output_specs = {{.name = "y", .dtype = DType::f16}};
    s.input_shapes = {{2, 1'048'576}};
    s.output_shapes = {{64}};
    s.inputs = {{.access = Access::read, .device = m_x.get()}};
    s.outputs = {{.access = Access::write, .device = m_y.get()}};
    return s;
  }
  OnceFile image() const {
    const std::map<std::string, std::uint32_t> entries = {{"copy", 0}};
    auto file = compose_cuda_once(spec(), &entries);
    EXPECT_TRUE(file) << file.error().text();
    file->load->subject = wire::Subject::cuda_image;
    file->load->entry_count = 1;
    copy_text(file->load->entries[0], "copy");
    file->cubin = "a cubin";
    return std::move(*file);
  }
  std::string bytes() {
    OnceFile file = image();
    const auto written = write_once_file(path(), file);
    EXPECT_TRUE(written) << written.error().text();
    return *read_file(path());
  }
  std::string complaint(const std::string& content) {
    EXPECT_TRUE(write_file_atomic(path(), content));
    const auto file = read_once_file(path());
    return file ? "none" : file.error().text();
  }

  std::unique_ptr<TempDir> m_folder;
  std::unique_ptr<DeviceBuffer> m_x, m_y;
};

TEST_F(OnceTest, WhatIsWrittenIsRead) {
  bytes();
  const auto file = read_once_file(path());
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->cubin, "a cubin");
  EXPECT_EQ(text_of(file->load->entries[0]), "copy");
  ASSERT_EQ(file->imports.size(), 2u);
  EXPECT_EQ(file->imports[0].allocation, m_x->id());
  EXPECT_EQ(file->imports[0].bytes, m_x->allocation_bytes());
  EXPECT_EQ(file->prepare->launch_count, 1u);
  EXPECT_EQ(file->prepare->input_count, 1u);
  EXPECT_STREQ(file->prepare->tensors[0].name, "x");
  EXPECT_EQ(file->prepare->tensors[0].shape[1], 1'048'576);
}

TEST_F(OnceTest, WhatIsNoCallIsRefusedWithWhatIsWrong) {
  const std::string good = bytes();
  EXPECT_NE(complaint("").find("ends where a message should begin"), std::string::npos);
  EXPECT_NE(complaint("x" + good).find("magic"), std::string::npos);
  std::string other = good;
  other[4] = 99;
  EXPECT_NE(complaint(other).find("protocol version 99"), std::string::npos);
  EXPECT_NE(complaint(good.substr(0, 1000)).find("ends within load"), std::string::npos);
  EXPECT_NE(complaint(good.substr(0, sizeof(wire::Load) + 3)).find("ends within the image: 3 of 7"), std::string::npos);
  EXPECT_NE(complaint(good.substr(0, good.size() - 1)).find("ends within prepare"), std::string::npos);
  EXPECT_NE(complaint(good.substr(0, good.size() - sizeof(wire::CudaPrepare))).find("should begin"), std::string::npos);
  EXPECT_NE(complaint(good + "x").find("behind the last message"), std::string::npos);
  EXPECT_NE(complaint(good.substr(sizeof(wire::Load) + 7)).find("where load is expected"), std::string::npos);
  for (std::size_t n = 0; n < 400; ++n) {  // refused or not, it ends
    std::string changed = good;
    changed[n * 104729 % good.size()] ^= char(1 + n % 255);
    complaint(changed);
  }
  fs::resize_file(path(), kOnceBytes + 1);  // a hole: no space is taken
  EXPECT_NE(read_once_file(path()).error().text().find("more than"), std::string::npos);
  EXPECT_EQ(complaint(good), "none");
}

TEST_F(OnceTest, TheCallIsMadeOnceBetweenTheProfilersMarks) {
  bytes();
  const auto file = read_once_file(path());
  ASSERT_TRUE(file) << file.error().text();
  int sealed = 0;
  const auto s = run_once(fake_card::driver(), "our cubin", *file, [&sealed] { ++sealed; });
  ASSERT_TRUE(s) << s.error().text();
  EXPECT_EQ(sealed, 1) << "an image's code runs in its sandbox only";
  const auto& log = fake_card::state().log;
  const auto begin = std::find(log.begin(), log.end(), "profiler start"), end = std::find(log.begin(), log.end(), "profiler stop");
  ASSERT_NE(end, log.end());
  EXPECT_EQ(std::vector<std::string>(begin + 1, end), (std::vector<std::string>{"launch copy grid=8 block=128 shared=0", "wait"}));
  EXPECT_EQ(std::count_if(log.begin(), log.end(), [](const auto& l) { return l.starts_with("launch copy"); }), 1);
  // The input, all of it, in whole periods and what is left: not the output.
  std::vector<std::string> copies;
  std::copy_if(log.begin(), log.end(), std::back_inserter(copies), [](const auto& l) { return l.starts_with("copy in"); });
  EXPECT_EQ(copies, (std::vector<std::string>{"copy in 2097146", "copy in 2097146", "copy in 12"}));
  double sum = 0, squares = 0;
  const auto& pattern = fake_card::state().first_copy;
  for (std::size_t i = 0; i + 1 < pattern.size(); i += 2) {
    std::uint16_t half = 0;
    std::memcpy(&half, pattern.data() + i, 2);
    const double v = fill::f16_to_float(half);
    sum += v, squares += v * v;
  }
  const double n = double(pattern.size() / 2);
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.01);
}

TEST_F(OnceTest, AnInputOutsideItsAllocationIsRefused) {
  OnceFile file = image();
  file.prepare->tensors[0].shape[0] = 1 << 20;
  int sealed = 0;
  const auto s = run_once(fake_card::driver(), "our cubin", file, [&sealed] { ++sealed; });
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().message.find("input 'x'"), std::string::npos) << s.error().text();
}

TEST_F(OnceTest, TheProgramSaysWhatIsWrongWithItsFile) {
  ASSERT_TRUE(write_file_atomic(path(), "no call at all, and more than a header"));
  const auto r = run_process({.argv = {FORGE_BINARY_DIR "/forge-runner", "--once", path().string()}, .env = {}});
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r->exit_code, 1);
  EXPECT_NE(r->output.find("no message begins here"), std::string::npos) << r->output;
}

}  // namespace
}  // namespace forge
