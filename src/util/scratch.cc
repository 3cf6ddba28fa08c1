// SPDX-License-Identifier: Apache-2.0
#include "util/scratch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace forge {

namespace {

struct Held {
  std::mutex mutex;
  std::map<fs::path, std::pair<Fd, pid_t>> locks;  // and whose they are: a child that was forked drops nothing of its parent's
  std::set<fs::path> swept;                        // base / family
};
Held& held() {
  static Held* const h = new Held;  // never destroyed: a TempDir may be static too
  return *h;
}

Fd open_folder(const fs::path& folder) { return Fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)); }

// The name still leads to what was opened: nobody swept it meanwhile.
bool still_there(const Fd& fd, const fs::path& folder) {
  struct stat opened {
  }, named{};
  return fstat(fd.get(), &opened) == 0 && lstat(folder.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

bool made_by_us(const Fd& fd) {
  struct stat s {};
  return fstat(fd.get(), &s) == 0 && s.st_uid == geteuid() && (s.st_mode & 0777) == 0700;
}

void sweep(const fs::path& base, const std::string& family) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(base, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with(family + "-")) found.push_back(at->path());
  }
  for (const fs::path& folder : found) {
    const Fd fd = open_folder(folder);
    if (!fd || !made_by_us(fd) || flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !still_there(fd, folder)) continue;
    std::error_code ignored;
    fs::remove_all(folder, ignored);  // what cannot be removed is no fault of whoever needs a folder now
  }
}

}  // namespace

Result<fs::path> make_scratch(const fs::path& base, const std::string& family, const std::string& name) {
  Held& h = held();
  {
    std::lock_guard lock(h.mutex);
    if (h.swept.insert(base / family).second) sweep(base, family);
  }
  for (;;) {
    std::string pattern = (base / (family + "-" + name + (name.empty() ? "" : "-") + "XXXXXX")).string();
    if (!mkdtemp(pattern.data())) return fail_errno("cannot make a temporary folder", pattern, errno);
    Fd fd = open_folder(pattern);
    // A sweeper that came between the two lines above holds the lock and removes the folder: another one then. Where there are no
    // locks at all nobody sweeps.
    if (!fd && errno == ENOENT) continue;
    if (!fd) {
      const int why = errno;
      rmdir(pattern.c_str());
      return fail_errno("cannot open a temporary folder", pattern, why);
    }
    while (flock(fd.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    if (!still_there(fd, pattern)) continue;
    std::lock_guard lock(h.mutex);
    h.locks[pattern] = {std::move(fd), getpid()};
    return fs::path(pattern);
  }
}

void drop_scratch(const fs::path& folder) {
  std::error_code ignored;
  std::lock_guard lock(held().mutex);
  const auto at = held().locks.find(folder);
  if (at == held().locks.end() || at->second.second != getpid()) return;
  fs::remove_all(folder, ignored);  // nobody to tell
  held().locks.erase(at);
}

static Status write_into(const fs::path& folder, const std::vector<std::pair<fs::path, std::string>>& files) {
  FORGE_TRY(make_dirs(folder));
  for (const auto& [file, content] : files) {
    FORGE_TRY(make_dirs((folder / file).parent_path()));
    FORGE_TRY(write_file_atomic(folder / file, content));
  }
  return {};
}

Status write_folder(const fs::path& wanted, const std::vector<std::pair<fs::path, std::string>>& files) {
  std::error_code error;
  fs::path folder = fs::absolute(wanted, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "out/"
  if (fs::exists(fs::symlink_status(folder, error))) {        // perhaps somebody stands in it: filled in place
    const Status written = write_into(folder, files);
    if (!written)
      for (const auto& [file, content] : files) fs::remove_all(folder / *file.begin(), error);
    return written;
  }
  FORGE_TRY(make_dirs(folder.parent_path()));
  FORGE_TRY_ASSIGN(const fs::path scratch, make_scratch(folder.parent_path(), ".forge-writing"));
  const fs::path whole = scratch / "whole";  // the scratch folder itself is nobody else's to read
  Status written = write_into(whole, files);
  if (written && rename(whole.c_str(), folder.c_str()) != 0) written = fail_errno("cannot rename into place", folder.string(), errno);
  drop_scratch(scratch);
  return written;
}

}  // namespace forge
