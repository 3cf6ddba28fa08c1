// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "device/cpu.h"
#include "device/image_memory.h"
#include "util/process.h"
#include "util/random.h"

namespace forge {
namespace {

std::string compile(const std::string& source, std::vector<std::string> extra = {"-fpie"}) {
  auto folder = TempDir::make("loader");
  EXPECT_TRUE(folder);
  EXPECT_TRUE(write_file_atomic(folder->path() / "k.cpp", source));
  ProcessOptions o;
  o.argv = {"g++",
            "-c",
            "-O2",
            "-ffreestanding",
            "-fno-exceptions",
            "-fno-rtti",
            "-fno-stack-protector",
            "-fno-asynchronous-unwind-tables",
            "-fcf-protection=none",
            "-fno-builtin",
            "k.cpp",
            "-o",
            "k.o"};
  o.argv.insert(o.argv.begin() + 1, extra.begin(), extra.end());
  o.env = {"PATH=/usr/bin:/bin"};
  o.cwd = folder->path();
  const auto r = run_process(o);
  EXPECT_TRUE(r && r->exit_code == 0) << (r ? r->output : r.error().text());
  const auto object = read_file(folder->path() / "k.o");
  return object ? *object : "";
}

const char* k_rich = R"(
static const int table[] = {3, 1, 4, 1, 5, 9, 2, 6};
static const char* const names[] = {"a", "bc", "def"};
extern "C" void* memcpy(void*, const void*, unsigned long);
struct block { int index, count, worker, workers; void* scratch; };
static __attribute__((noinline)) int sum(const int* p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
extern "C" void k(int* out, const block* b) {
  int copy[8];
  memcpy(copy, table, sizeof copy);
  out[0] = sum(copy, 8);
  out[1] = names[b->index % 3][0];
  out[2] = names[2][2];
}
)";

TEST(LoadedImage, CodeConstantsPointersAndImportsWork) {
  const auto image = LoadedImage::load(compile(k_rich), {"k"});
  ASSERT_TRUE(image) << image.error().text();
  ASSERT_NE(image->entry("k"), nullptr);
  EXPECT_EQ(image->entry("other"), nullptr);
  int out[3] = {};
  const BlockInfo block{1, 4, 0, 1, nullptr};
  image->entry("k")(out, &block);
  EXPECT_EQ(out[0], 31);
  EXPECT_EQ(out[1], 'b');
  EXPECT_EQ(out[2], 'f');
  const auto address = reinterpret_cast<std::uint64_t>(image->entry("k"));
  EXPECT_GE(address, k_image_region_begin);
  EXPECT_LT(address, k_image_region_end);
}

TEST(LoadedImageDeathTest, CodeAndConstantsAreNotWritable) {
  auto image = LoadedImage::load(
      compile("extern const int table[4]; const int table[4] = {1, 2, 3, 4}; extern \"C\" const int* k() { return table; }"), {"k"});
  ASSERT_TRUE(image);
  auto* code = reinterpret_cast<volatile char*>(image->entry("k"));
  EXPECT_DEATH(*code = 0, "");
  auto* table = const_cast<volatile int*>(reinterpret_cast<const int* (*)()>(reinterpret_cast<void*>(image->entry("k")))());
  EXPECT_EQ(table[2], 3);
  EXPECT_DEATH(table[2] = 0, "");
}

TEST(LoadedImage, RefusesWhatAKernelMayNotHave) {
  const std::tuple<const char*, std::vector<std::string>, const char*> cases[] = {
      {"int state; extern \"C\" void k() { ++state; }", {"-fpie"}, ".bss"},
      {"int state = 3; extern \"C\" void k() { ++state; }", {"-fpie"}, ".data"},
      {"static thread_local int state; extern \"C\" void k() { ++state; }", {"-fpie"}, "thread-local"},
      {"extern \"C\" int puts(const char*); extern \"C\" void k() { puts(\"x\"); }", {"-fpie"}, "puts"},
      {"struct S { S(); int v; }; extern int y; static S s; S::S() : v(y) {} extern \"C\" int k() { return s.v; }", {"-fpie"}, "section"},
      {"static const int t[4] = {1, 2, 3, 4}; extern \"C\" int k(long i) { return t[i]; }",
       {"-fno-pie", "-mcmodel=small"},
       "relocation type"},
      {"extern \"C\" void j() {}", {"-fpie"}, "entry k is missing"},
      {"static void k() __attribute__((used)); static void k() {}", {"-fpie"}, "entry k is missing"},
  };
  for (const auto& [source, flags, text] : cases) {
    const auto image = LoadedImage::load(compile(source, flags), {"k"});
    ASSERT_FALSE(image) << source;
    EXPECT_NE(image.error().text().find(text), std::string::npos) << source << "\n" << image.error().text();
  }
  EXPECT_FALSE(LoadedImage::load("", {"k"}));
  EXPECT_FALSE(LoadedImage::load("\177ELF", {"k"}));
}

TEST(LoadedImage, DamagedObjectsNeverCrashTheLoader) {
  const std::string object = compile(k_rich);
  ASSERT_FALSE(object.empty());
  int refused = 0;
  for (std::size_t n = 0; n < object.size(); n += 7) refused += !LoadedImage::load(object.substr(0, n), {"k"});
  EXPECT_GT(refused, 0);
  Random random(7);
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = object;
    for (int j = 0; j < 4; ++j) {
      // Half of the damage goes where the structure is: the header and the section headers at the end.
      const std::size_t at =
          j % 2 ? random.below(damaged.size()) : (random.below(2) ? random.below(64) : damaged.size() - 1 - random.below(900));
      damaged[at] = static_cast<char>(random.next());
    }
    (void)LoadedImage::load(damaged, {"k"});
  }
}

TEST(ImageMemory, AgreesWithLibc) {
  Random random(3);
  std::vector<unsigned char> a(3000), b(3000);
  for (int i = 0; i < 2000; ++i) {
    for (auto& v : a) v = static_cast<unsigned char>(random.next());
    b = a;
    const std::size_t n = random.below(random.below(2) ? 40 : 1400), from = random.below(1500), to = random.below(1500);
    std::memmove(a.data() + to, a.data() + from, n);
    EXPECT_EQ(forge_image_memmove(b.data() + to, b.data() + from, n), b.data() + to);
    ASSERT_EQ(a, b);
    std::memset(a.data() + to, i, n);
    forge_image_memset(b.data() + to, i, n);
    ASSERT_EQ(a, b);
    std::vector<unsigned char> c(n + 1, 0x55), d(n + 1, 0x55);
    forge_image_memcpy(c.data(), a.data() + from, n);
    std::memcpy(d.data(), a.data() + from, n);
    ASSERT_EQ(c, d);
    if (n > 0 && random.below(2)) d[random.below(n)] ^= static_cast<unsigned char>(1 + random.below(255));
    const int want = std::memcmp(c.data(), d.data(), n), got = forge_image_memcmp(c.data(), d.data(), n);
    ASSERT_EQ((want > 0) - (want < 0), (got > 0) - (got < 0));
  }
}

}  // namespace
}  // namespace forge
