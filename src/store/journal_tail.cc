// SPDX-License-Identifier: Apache-2.0
#include "store/journal_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "store/journal_text.h"
#include "util/text.h"

namespace forge {

struct JournalTail::Impl {
  fs::path file;
  ino_t inode = 0;
  JournalText text;
};

JournalTail::JournalTail(fs::path file) : m_impl(std::make_unique<Impl>()) { m_impl->file = std::move(file); }
JournalTail::JournalTail(JournalTail&&) noexcept = default;
JournalTail& JournalTail::operator=(JournalTail&&) noexcept = default;
JournalTail::~JournalTail() = default;

Result<JournalTail::News> JournalTail::read() {
  Impl& t = *m_impl;
  const Fd fd(open(t.file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return fail_errno("cannot read", t.file.string(), errno);
  News news;
  const auto size = static_cast<std::size_t>(info.st_size);
  if (info.st_ino != t.inode || size < t.text.good_bytes) {
    news.again = t.text.lines > 0;
    t.inode = info.st_ino, t.text = {};
  }
  std::string fresh(size - t.text.good_bytes, '\0');
  std::size_t got = 0;
  while (got < fresh.size()) {
    const ssize_t n = pread(fd.get(), fresh.data() + got, fresh.size() - got, static_cast<off_t>(t.text.good_bytes + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("cannot read", t.file.string(), errno);
    if (n == 0) break;  // cut meanwhile
    got += static_cast<std::size_t>(n);
  }
  fresh.resize(got);
  if (auto parsed = parse_journal(t.file, fresh, t.text); !parsed) {
    t.text = {}, t.inode = 0;  // so that it is said again, and a mended file is read from its start
    return fail(parsed.error());
  }
  news.events = std::move(t.text.events);
  t.text.events.clear();
  return news;
}

// "1: FLOCK  ADVISORY  WRITE 8738 fe:00:10953966 0 EOF". The device is left out of it: some file systems show another one to stat().
bool JournalTail::written_to() const {
  struct stat info {};
  if (stat(m_impl->file.c_str(), &info) != 0) return false;
  const auto locks = read_file("/proc/locks");
  if (!locks) return false;
  const std::string inode = ":" + std::to_string(info.st_ino);
  for (const std::string& line : split(*locks, '\n'))
    if (line.find(" WRITE ") != std::string::npos && line.find(inode + " ") != std::string::npos) return true;
  return false;
}

}  // namespace forge
