// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "util/hash.h"
#include "util/progress.h"

namespace forge {
namespace {

class StoreTest : public testing::Test {
 protected:
  TempDir dir = std::move(*TempDir::make("store"));

  void write_run(const std::string& id, bool finished) {
    Journal j = std::move(*Journal::open(dir.path() / "runs" / id / "journal.jsonl", Journal::Mode::create));
    auto put = [&](const char* type, const char* request, const char* response) {
      ASSERT_TRUE(j.step(type, request, [&] { return Result<std::string>(response); }));
    };
    put("run.start", R"({"task":{"operator":"gemm_f32","target":"cpu:x86-64-avx2","reference":"expert"}})", "null");
    put("gate.submit", "{}", R"({"reason":"accepted"})");
    put("gate.submit", "{}", R"({"reason":"wrong_result"})");
    if (finished) put("run.end", R"({"stop":"exhausted","verdict":"faster","speedup":1.25,"package":"ab"})", "null");
  }
};

TEST_F(StoreTest, LastIsWhatWasNotedWhateverTheClockSaid) {
  Store s = std::move(*Store::open(dir.path()));
  write_run("a", true);
  write_run("b", false);
  const auto journal = [&](const char* id) { return dir.path() / "runs" / id / "journal.jsonl"; };
  fs::last_write_time(journal("a"), fs::last_write_time(journal("b")) + std::chrono::hours(5));
  EXPECT_EQ(*s.resolve_run("last"), "a") << "by the times of the files, where nothing was noted";
  ASSERT_TRUE(s.note_last("b"));
  EXPECT_EQ(*s.resolve_run("last"), "b");
  fs::remove_all(dir.path() / "runs" / "b");
  EXPECT_EQ(*s.resolve_run("last"), "a") << "the noted one is gone";
  for (const char* odd : {"", "../..", "a/b"}) {
    ASSERT_TRUE(s.note_last(odd));
    EXPECT_EQ(*s.resolve_run("last"), "a") << odd;
  }
}

TEST_F(StoreTest, IndexComesFromJournals) {
  Store s = std::move(*Store::open(dir.path()));
  write_run("a", true);
  write_run("b", false);
  auto rows = s.runs();
  ASSERT_TRUE(rows) << rows.error().text();
  ASSERT_EQ(rows->size(), 2u);
  for (const RunRow& r : *rows) {
    EXPECT_EQ(r.operator_name, "gemm_f32");
    EXPECT_EQ(r.candidates, 2);
    EXPECT_EQ(r.accepted, 1);
    EXPECT_EQ(r.state, r.id == "a" ? "finished" : "interrupted");
  }
  auto counts = s.reason_counts(std::nullopt);
  ASSERT_TRUE(counts);
  ASSERT_EQ(counts->size(), 2u);
  EXPECT_EQ((*counts)[0].second, 2);
}

TEST_F(StoreTest, ADamagedIndexIsMadeAgain) {
  {
    Store s = std::move(*Store::open(dir.path()));
    write_run("a", true);
    ASSERT_TRUE(s.runs());
  }
  std::ofstream(dir.path() / "index.sqlite", std::ios::trunc)
      << "this is no database, it is a text that is long enough to be read as a header";
  std::error_code ignored;
  fs::remove(dir.path() / "index.sqlite-wal", ignored);
  auto s = Store::open(dir.path());
  ASSERT_TRUE(s) << s.error().text();
  EXPECT_EQ(s->runs()->size(), 1u);
}

TEST_F(StoreTest, WhatIsAddedToARunIsReadOnFromWhereTheIndexEnded) {
  Store s = std::move(*Store::open(dir.path()));
  write_run("a", false);
  ASSERT_EQ(s.runs()->front().candidates, 2);
  const fs::path file = dir.path() / "runs" / "a" / "journal.jsonl";
  {
    // A change before the end, of the same length: whoever reads the file again from its start would refuse it.
    std::string text = *read_file(file);
    text.replace(text.find("wrong_result"), 12, "right_result");
    std::ofstream(file, std::ios::trunc | std::ios::binary) << text;
  }
  EXPECT_FALSE(read_journal(file));
  const std::string last = read_file(file)->substr(fs::file_size(file) - 19, 16);
  {
    // What a run goes on with, and a line that is being written.
    std::ofstream out(file, std::ios::app | std::ios::binary);
    const std::string body =
        R"({"seq":4,"time":"t","type":"gate.submit","request":{},"response":{"reason":"accepted"},"seconds":0,"prev":")";
    out << body << last << R"(","hash":")" << sha256_hex(body + last + "\"}").substr(0, 16) << "\"}\n"
        << R"({"seq":5,"ti)";
  }
  const auto rows = s.runs();
  ASSERT_TRUE(rows) << rows.error().text();
  EXPECT_EQ(rows->front().candidates, 3);
  EXPECT_EQ(rows->front().accepted, 2);
  EXPECT_EQ(s.reason_counts("a")->front().second, 2);
}

TEST_F(StoreTest, AReplacedJournalIsReadFromItsStart) {
  Store s = std::move(*Store::open(dir.path()));
  write_run("a", false);
  ASSERT_EQ(s.runs()->front().candidates, 2);
  const fs::path file = dir.path() / "runs" / "a" / "journal.jsonl";
  fs::remove(file);
  {
    Journal j = std::move(*Journal::open(file, Journal::Mode::create));
    for (int n = 0; n < 20; ++n)
      ASSERT_TRUE(j.step("gate.submit", std::to_string(n), [] { return Result<std::string>(R"({"reason":"timed_out"})"); }));
  }
  EXPECT_EQ(s.runs()->front().candidates, 20);
  EXPECT_EQ(s.reason_counts("a")->size(), 1u);
}

TEST_F(StoreTest, AReasonIsFoundWhereverAVerdictHasIt) {
  Store s = std::move(*Store::open(dir.path()));
  {
    Journal j = std::move(*Journal::open(dir.path() / "runs" / "a" / "journal.jsonl", Journal::Mode::create));
    for (const char* verdict :
         {R"({"reason":"accepted","detail":"the first"})", R"({"detail":"the last","reason":"accepted"})", R"({"reason":"accept\u0065d"})",
          R"({"reason":"a \"b\""})", R"({"reason":null})", R"([{"reason":"accepted"}])"})
      ASSERT_TRUE(j.step("gate.submit", "{}", [&] { return Result<std::string>(verdict); }));
  }
  const auto rows = s.runs();
  ASSERT_TRUE(rows) << rows.error().text();
  EXPECT_EQ(rows->front().candidates, 6);
  EXPECT_EQ(rows->front().accepted, 3);
  const auto counts = *s.reason_counts("a");
  EXPECT_EQ(counts, (std::vector<std::pair<std::string, std::int64_t>>{{"accepted", 3}, {"", 2}, {"a \"b\"", 1}}));
}

TEST_F(StoreTest, RebuildRepeatsTheIndex) {
  Store s = std::move(*Store::open(dir.path()));
  write_run("a", true);
  ASSERT_TRUE(s.runs());
  ASSERT_TRUE(s.rebuild_index());
  auto rows = s.runs();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_DOUBLE_EQ((*rows)[0].best_speedup, 1.25);
}

TEST_F(StoreTest, RunsAreFoundByPrefix) {
  Store s = std::move(*Store::open(dir.path()));
  write_run("gemm-1", true);
  write_run("gemm-2", true);
  EXPECT_EQ(*s.resolve_run("gemm-1"), "gemm-1");
  EXPECT_EQ(s.resolve_run("gemm").error().code, Code::bad_input);
  EXPECT_EQ(s.resolve_run("soft").error().code, Code::not_found);
  EXPECT_TRUE(s.resolve_run("last"));
}

TEST_F(StoreTest, ArtifactsAreCheckedOnTheWayOut) {
  Store s = std::move(*Store::open(dir.path()));
  std::string sha;
  ASSERT_TRUE(s.put_artifact("bytes", &sha));
  EXPECT_EQ(*s.get_artifact(sha), "bytes");
  std::ofstream(dir.path() / "artifacts" / sha.substr(0, 2) / sha.substr(2)) << "other";
  EXPECT_EQ(s.get_artifact(sha).error().code, Code::bad_input);
  EXPECT_FALSE(s.get_artifact("../../etc/passwd"));
}

TEST_F(StoreTest, WhereTheIndexCannotBeWrittenReadersMakeItInMemory) {
  {
    Store s = std::move(*Store::open(dir.path()));
    write_run("a", true);
  }
  std::error_code ignored;
  for (const char* file : {"index.sqlite", "index.sqlite-wal", "index.sqlite-shm"}) fs::remove(dir.path() / file, ignored);
  fs::create_directory(dir.path() / "index.sqlite");  // fails for root too
  EXPECT_FALSE(Store::open(dir.path()));
  auto s = Store::open_to_read(dir.path());
  ASSERT_TRUE(s) << s.error().text();
  const auto rows = s->runs();
  ASSERT_TRUE(rows) << rows.error().text();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->front().best_speedup, 1.25);
  EXPECT_EQ(s->reason_counts(std::nullopt)->size(), 2u);
}

TEST_F(StoreTest, ReasonsOfDeletedRunsDoNotCount) {
  Store s = std::move(*Store::open(dir.path()));
  write_run("a", true);
  write_run("b", true);
  ASSERT_EQ(s.reason_counts(std::nullopt)->front().second, 2);
  fs::remove_all(dir.path() / "runs" / "b");
  const auto counts = s.reason_counts(std::nullopt);
  ASSERT_TRUE(counts);
  ASSERT_EQ(counts->size(), 2u);
  for (const auto& [reason, n] : *counts) EXPECT_EQ(n, 1) << reason;
  EXPECT_TRUE(s.reason_counts("b")->empty());
}

TEST_F(StoreTest, OneRunThatCannotBeReadHidesNoOther) {
  Store s = std::move(*Store::open(dir.path()));
  write_run("a", true);
  const fs::path runs = dir.path() / "runs";
  fs::create_directories(runs / "folder" / "journal.jsonl");
  fs::create_directories(runs / "pipe");
  ASSERT_EQ(mkfifo((runs / "pipe" / "journal.jsonl").c_str(), 0600), 0);  // nobody writes: who waits for it waits for ever
  fs::create_directories(runs / "loop");
  fs::create_symlink("journal.jsonl", runs / "loop" / "journal.jsonl");
  fs::create_directories(runs / "empty");  // no journal: no run
  const auto rows = s.runs();
  ASSERT_TRUE(rows) << rows.error().text();
  ASSERT_EQ(rows->size(), 4u);
  EXPECT_EQ(rows->front().id, "a");
  for (std::size_t i = 1; i < rows->size(); ++i) {
    EXPECT_EQ((*rows)[i].state, "unreadable") << (*rows)[i].id;
    EXPECT_NE((*rows)[i].unreadable, "") << (*rows)[i].id;
  }
  EXPECT_EQ(s.reason_counts(std::nullopt)->size(), 2u);
  EXPECT_FALSE(s.index_run("folder"));
  EXPECT_EQ(*s.resolve_run("loop"), "loop") << "found, so that what is wrong with it can be said";
}

TEST_F(StoreTest, AJournalOfSomebodyElseHidesNoOtherRun) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user for a moment";
  Store s = std::move(*Store::open(dir.path()));
  write_run("a", true);
  write_run("b", false);
  write_run("c", false);
  const auto open_to_others = [](const fs::path& p) {
    fs::permissions(p, fs::perms(0055), fs::perm_options::add);  // the group too: it stays the same
  };
  open_to_others(dir.path());
  for (const auto& entry : fs::recursive_directory_iterator(dir.path())) open_to_others(entry.path());
  fs::permissions(dir.path() / "runs" / "b" / "journal.jsonl", fs::perms::owner_read);
  fs::permissions(dir.path() / "runs" / "c", fs::perms::owner_all);
  ASSERT_EQ(seteuid(65534), 0);
  const auto rows = s.runs();
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_TRUE(rows) << rows.error().text();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ(rows->front().id, "a");
  for (const std::size_t i : {1, 2}) EXPECT_NE((*rows)[i].unreadable.find("Permission denied"), std::string::npos) << (*rows)[i].id;
  EXPECT_EQ(s.runs()->back().state, "interrupted") << "it can be read now";
}

TEST_F(StoreTest, ARunsFolderThatIsGoneIsNoFolderWithoutRuns) {
  Store s = std::move(*Store::open(dir.path()));
  fs::remove_all(dir.path() / "runs");
  EXPECT_EQ(s.runs().error().code, Code::not_found);
}

TEST_F(StoreTest, AHomeThatCannotBeMadeIsSaid) {
  std::ofstream(dir.path() / "file") << "x";
  auto s = Store::open(dir.path() / "file" / "home");  // a file where a folder should be: fails for root too
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().text().find("FORGE_HOME"), std::string::npos);
}

TEST(Lease, MeasuringExcludesBuildingInAnotherProcess) {
  TempDir dir = std::move(*TempDir::make());  // a lock of its own: another forge may be measuring on this machine
  const std::string file = dir.path() / "lock";
  auto lease = Lease::take(Lease::Kind::measure, file.c_str());
  ASSERT_TRUE(lease);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    { Lease inherited = std::move(*lease); }  // a lock belongs to the open file, which a fork shares; a real child has closed it on exec
    const double start = monotonic_seconds();
    auto mine = Lease::take(Lease::Kind::build, file.c_str());
    _exit(mine && monotonic_seconds() - start > 0.2 ? 0 : 1);
  }
  usleep(400'000);
  { Lease gone = std::move(*lease); }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace forge
