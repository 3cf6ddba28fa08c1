// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "util/fs.h"
#include "util/hash.h"
#include "util/process.h"
#include "util/random.h"
#include "util/scratch.h"
#include "util/shell.h"
#include "util/text.h"

namespace forge {
namespace {

TEST(Hash, KnownAnswer) {  // FIPS 180-2, appendix B.1
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Random, BelowStaysBelowAndCoversAll) {
  Random r(7);
  int seen[5] = {};
  for (int i = 0; i < 1000; ++i) ++seen[r.below(5)];
  for (int n : seen) EXPECT_GT(n, 100);
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  Random r(3);
  double sum = 0, squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = r.normal();
    sum += x, squares += x * x;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1, 0.03);
}

TEST(Text, ExpandReplacesAndNamesTheUnknown) {
  EXPECT_EQ(*expand("a {{x}} {{ y }}", {{"x", "1"}, {"y", "2"}}, "f"), "a 1 2");
  auto bad = expand("a\n{{stor}}", {{"store", "1"}}, "f");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().line, 2);
  EXPECT_NE(bad.error().fix.find("store"), std::string::npos);
  EXPECT_FALSE(expand("{{open", {}, "f"));
}

TEST(Text, Globs) {
  EXPECT_TRUE(glob_match("vfmadd*ps", "vfmadd231ps"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("v?ovntps", "vmovntps"));
  EXPECT_FALSE(glob_match("vfmadd*ps", "vfmadd231pd"));
  EXPECT_FALSE(glob_match("", "x"));
}

TEST(Text, ClosestFindsTyposOnly) {
  EXPECT_EQ(closest("tolerence", {"tolerance", "source"}), "tolerance");
  EXPECT_EQ(closest("zebra", {"tolerance", "source"}), "");
}

TEST(Files, APipeOrADeviceIsNotWaitedFor) {
  const auto dir = TempDir::make();
  ASSERT_TRUE(dir);
  const fs::path pipe = dir->path() / "record.json", endless = dir->path() / "endless";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", endless);
  for (const fs::path& path : {pipe, endless}) {
    const auto read = read_file(path);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::io);
    EXPECT_NE(read.error().text().find("not a regular file"), std::string::npos) << read.error().text();
  }
}

TEST(Files, AtomicWriteReplacesWhole) {
  TempDir dir = std::move(*TempDir::make());
  ASSERT_TRUE(write_file_atomic(dir.path() / "f", "one"));
  ASSERT_TRUE(write_file_atomic(dir.path() / "f", "two"));
  EXPECT_EQ(*read_file(dir.path() / "f"), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);
}

TEST(Files, WhatMayNotBeReadIsNotToBeMadeWritable) {
  EXPECT_EQ(fail_errno("cannot read", "a", EACCES).value().text(), "a: cannot read: Permission denied (let this user read it)");
  EXPECT_NE(fail_errno("cannot write", "a", EACCES).value().fix.find("make it writable"), std::string::npos);
}

TEST(Files, AFullDiskLeavesTheOldFile) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP();
  auto r = write_file_atomic("/dev/full/x", "y");
  ASSERT_FALSE(r);
  EXPECT_EQ(fail_errno("w", "f", ENOSPC).value().code, Code::disk_full);
}

TEST(Scratch, WhatADeadProcessLeftIsRemovedAndNothingElse) {
  const TempDir dir = std::move(*TempDir::make());
  const auto named = [&](const char* name) { return dir.path() / name; };
  const pid_t child = fork();
  if (child == 0) {
    const auto left = make_scratch(dir.path(), "family", "dead");
    const bool ok = left && write_file_atomic(*left / "f", "x");
    _exit(ok ? 0 : 1);  // without dropping it
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  fs::create_directory(named("family-of-a-user"));  // of another mode
  fs::create_directory(named("other-abcdef"));
  fs::permissions(named("other-abcdef"), fs::perms::owner_all);
  fs::create_directory_symlink(named("other-abcdef"), named("family-link00"));
  const auto mine = make_scratch(dir.path(), "family");
  ASSERT_TRUE(mine) << mine.error().text();
  std::set<std::string> there;
  for (const auto& entry : fs::directory_iterator(dir.path())) there.insert(entry.path().filename());
  EXPECT_EQ(there, (std::set<std::string>{mine->filename(), "family-of-a-user", "other-abcdef", "family-link00"}));
  // What a living process holds stays, whoever sweeps.
  const pid_t sweeper = fork();
  if (sweeper == 0) {
    const auto another = make_scratch(dir.path() / ".", "family");  // a path not swept yet
    _exit(another && fs::exists(*mine) ? 0 : 1);
  }
  ASSERT_EQ(waitpid(sweeper, &status, 0), sweeper);
  EXPECT_EQ(status, 0);
  drop_scratch(*mine);
  EXPECT_FALSE(fs::exists(*mine));
}

TEST(Scratch, AForkedChildDropsNothingOfItsParents) {
  auto folder = TempDir::make();
  ASSERT_TRUE(folder);
  const pid_t child = fork();
  if (child == 0) {
    { const TempDir moved = std::move(*folder); }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(folder->path()));
}

TEST(Files, AWriterThatIsKilledLeavesNothingBesideTheFile) {
  const TempDir dir = std::move(*TempDir::make());
  if (!Fd(open(dir.path().c_str(), O_WRONLY | O_TMPFILE, 0600))) GTEST_SKIP() << "no unnamed files on this file system";
  ASSERT_TRUE(write_file_atomic(dir.path() / "f", "old"));
  const std::string large(8 << 20, 'x');
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0)
      for (;;)
        if (!write_file_atomic(dir.path() / "f", large)) _exit(1);
    usleep(static_cast<useconds_t>(1000 + 700 * i));
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    const auto now = read_file(dir.path() / "f");
    ASSERT_TRUE(now && (*now == "old" || *now == large));
  }
  EXPECT_LE(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 2) << "only a kill between two calls leaves one";
}

TEST(Process, CapturesOutputAndExitCode) {
  auto r = run_process({.argv = {"sh", "-c", "echo out; echo err >&2; exit 3"}, .env = {"PATH=/usr/bin:/bin"}});
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r->exit_code, 3);
  EXPECT_EQ(r->output, "out\nerr\n");
}

TEST(Process, KillsTheWholeGroupOnTimeout) {
  auto r = run_process({.argv = {"sh", "-c", "sleep 60 & sleep 60"}, .env = {"PATH=/usr/bin:/bin"}, .timeout_s = 0.3});
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->timed_out);
  EXPECT_LT(r->seconds, 5);
}

TEST(Process, OutputIsCapped) {
  auto r = run_process({.argv = {"sh", "-c", "yes | head -c 3000000"}, .env = {"PATH=/usr/bin:/bin"}, .output_cap = 1000});
  ASSERT_TRUE(r);
  EXPECT_LT(r->output.size(), 1100u);
  EXPECT_NE(r->output.find("dropped"), std::string::npos);
}

TEST(Process, NothingOfTheEnvironmentIsInherited) {
  setenv("FORGE_SECRET", "1", 1);
  auto r = run_process({.argv = {"env"}, .env = {"ONLY=this"}});
  EXPECT_EQ(r->output, "ONLY=this\n");
}

TEST(Process, AMissingProgramIsSaid) { EXPECT_EQ(run_process({.argv = {"no-such-program-x"}}).error().code, Code::not_found); }

// The second file cannot be written: its folder is a file. Nothing is left, and another attempt is free to succeed.
TEST(Scratch, AFolderIsWrittenWholeOrNotAtAll) {
  const TempDir dir = std::move(*TempDir::make());
  const fs::path in = dir.path() / "in", filled = dir.path() / "filled";
  ASSERT_TRUE(make_dirs(in));
  ASSERT_TRUE(make_dirs(filled));
  for (const fs::path& folder : {in / "new", in / "new/", filled}) {
    EXPECT_FALSE(write_folder(folder, {{"a/one", "1"}, {"two", "2"}, {"two/three", "3"}}));
    EXPECT_TRUE(fs::is_empty(in) && fs::is_empty(filled)) << folder;
    ASSERT_TRUE(write_folder(folder, {{"a/one", "1"}, {"two", "2"}}));
    EXPECT_EQ(read_file(folder / "a/one").value_or("") + read_file(folder / "two").value_or(""), "12");
    EXPECT_TRUE(fs::is_directory(folder));
    if (folder != filled) {
      EXPECT_EQ(std::distance(fs::directory_iterator(in), {}), 1);
    }
    for (const auto& entry : fs::directory_iterator(in)) fs::remove_all(entry);
  }
  struct stat as_made {};
  ASSERT_TRUE(write_folder(in / "new", {{"one", "1"}}));
  ASSERT_EQ(stat((in / "new").c_str(), &as_made), 0);
  const mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(as_made.st_mode & 0777, 0777 & ~mask);
}

TEST(Shell, AWordIsWhatItWas) {
  EXPECT_EQ(shell_word("/a/b-c_1.d"), "/a/b-c_1.d");
  for (const std::string text : {"", "sp ace", "it's", "''", "$HOME", "a;b", "~", "new\nline", "*", "\xc3\xa4", "\\", "#"}) {
    const TempDir dir = std::move(*TempDir::make());
    const std::string out = (dir.path() / "out").string();
    ASSERT_EQ(std::system(("printf %s " + shell_word(text) + " >" + out).c_str()), 0) << text;
    EXPECT_EQ(read_file(out).value_or("none"), text) << shell_word(text);
  }
}

}  // namespace
}  // namespace forge
