// SPDX-License-Identifier: Apache-2.0
#include "store/journal_tail.h"

#include <gtest/gtest.h>

#include <fstream>

namespace forge {
namespace {

class JournalTailTest : public ::testing::Test {
 protected:
  TempDir m_folder = TempDir::make("forge-tail").value();
  fs::path m_file = m_folder.path() / "journal.jsonl";
  Journal m_journal = Journal::open(m_file, Journal::Mode::create).value();

  void write(const std::string& type) { ASSERT_TRUE(m_journal.decide(type, R"({"a":1})")); }
  void append(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::app) << text; }
};

TEST_F(JournalTailTest, GivesWhatWasAppendedSinceTheLastCall) {
  JournalTail tail(m_file);
  EXPECT_TRUE(tail.read()->events.empty());
  write("one"), write("two");
  const auto first = tail.read();
  ASSERT_TRUE(first && first->events.size() == 2u);
  write("three");
  const auto second = tail.read();
  ASSERT_TRUE(second && second->events.size() == 1u);
  EXPECT_EQ(second->events[0].type, "three");
  EXPECT_EQ(second->events[0].seq, 3);
  EXPECT_FALSE(second->again);
}

TEST_F(JournalTailTest, AHalfWrittenLineComesWhenItIsWhole) {
  write("one"), write("two");
  const std::string text = read_file(m_file).value();
  const fs::path copy = m_folder.path() / "copy.jsonl";
  const std::size_t half = text.find('\n') + 20;
  append(copy, text.substr(0, half));
  JournalTail tail(copy);
  EXPECT_EQ(tail.read()->events.size(), 1u);
  EXPECT_TRUE(tail.read()->events.empty());
  append(copy, text.substr(half));
  const auto rest = tail.read();
  ASSERT_TRUE(rest && rest->events.size() == 1u);
  EXPECT_EQ(rest->events[0].type, "two");
}

TEST_F(JournalTailTest, AReplacedFileBeginsAgain) {
  write("one");
  const fs::path other = m_folder.path() / "other.jsonl";
  append(other, read_file(m_file).value());
  write("two");
  JournalTail tail(m_file);
  EXPECT_EQ(tail.read()->events.size(), 2u);
  fs::rename(other, m_file);
  const auto news = tail.read();
  ASSERT_TRUE(news);
  EXPECT_TRUE(news->again);
  EXPECT_EQ(news->events.size(), 1u);
}

TEST_F(JournalTailTest, DamageIsAnErrorWithItsLineUntilItIsMended) {
  write("one"), write("two");
  std::string text = read_file(m_file).value();
  const fs::path copy = m_folder.path() / "copy.jsonl";
  std::string bad = text;
  bad[bad.find("\"two\"") + 1] = 'T';
  append(copy, bad);
  JournalTail tail(copy);
  for (int i = 0; i < 2; ++i) {
    const auto news = tail.read();
    ASSERT_FALSE(news);
    EXPECT_EQ(news.error().line, 2);
  }
  std::ofstream(copy, std::ios::trunc) << text;
  EXPECT_EQ(tail.read()->events.size(), 2u);
}

TEST_F(JournalTailTest, KnowsWhetherSomebodyWrites) {
  write("one");
  const JournalTail tail(m_file);
  EXPECT_TRUE(tail.written_to());
  m_journal = Journal::open({}, Journal::Mode::memory).value();
  EXPECT_FALSE(tail.written_to());
  EXPECT_TRUE(Journal::open(m_file, Journal::Mode::resume)) << "looking takes no lock";
}

TEST_F(JournalTailTest, AMissingFileIsNotFound) { EXPECT_EQ(JournalTail(m_folder.path() / "x").read().error().code, Code::not_found); }

}  // namespace
}  // namespace forge
