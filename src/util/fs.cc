// SPDX-License-Identifier: Apache-2.0
#include "util/fs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "util/random.h"
#include "util/scratch.h"

namespace forge {

Fd& Fd::operator=(Fd&& o) noexcept {
  if (this != &o) {
    if (m_fd >= 0) close(m_fd);
    m_fd = o.release();
  }
  return *this;
}
Fd::~Fd() {
  if (m_fd >= 0) close(m_fd);
}

Result<std::string> read_file(const fs::path& path) {
  // Not blocking, for a FIFO that nobody writes to; on a regular file that means nothing.
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_errno("cannot read", path.string(), errno);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return fail_errno("cannot read", path.string(), errno);
  if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))  // waited for, or without an end
    return fail(Error{.code = Code::io, .message = "cannot read: a pipe or a device, not a regular file", .file = path.string()});
  std::string out;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("cannot read", path.string(), errno);
    if (n == 0) return out;
    out.append(buffer, static_cast<std::size_t>(n));
  }
}

static Status sync_folder(const fs::path& folder) {
  Fd fd(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno("cannot open folder", folder.string(), errno);
  // Some file systems refuse fsync on folders (EINVAL); there the rename is all that can be had.
  if (fsync(fd.get()) != 0 && errno != EINVAL) return fail_errno("cannot sync folder", folder.string(), errno);
  return {};
}

// A file without a name, which a kill takes along; not every file system has them.
static Fd open_unnamed(const fs::path& folder) {
  return Fd(open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644));
}
static bool give_name(const Fd& fd, const fs::path& name) {
  const std::string self = "/proc/self/fd/" + std::to_string(fd.get());
  return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

Status write_file_atomic(const fs::path& path, std::string_view content) {
  const fs::path temp = path.string() + ".tmp" + std::to_string(os_entropy());
  const auto open_named = [&] { return Fd(open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)); };
  Fd fd = open_unnamed(path.parent_path());
  bool named = !fd;
  if (named) fd = open_named();
  if (!fd) return fail_errno("cannot write", path.string(), errno);
  auto give_up = [&](const char* what) {
    const int saved = errno;
    if (named) unlink(temp.c_str());
    return fail_errno(what, path.string(), saved);
  };
  const auto fill = [&]() -> const char* {  // what went wrong
    std::size_t done = 0;
    while (done < content.size()) {
      const ssize_t n = write(fd.get(), content.data() + done, content.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return "cannot write";
      done += static_cast<std::size_t>(n);
    }
    return fsync(fd.get()) != 0 ? "cannot sync" : nullptr;
  };
  if (const char* what = fill()) return give_up(what);
  if (!named) {
    if (give_name(fd, path)) return sync_folder(path.parent_path());
    const bool replaces = errno == EEXIST;  // only a rename replaces a file, so the new one needs a name, for microseconds
    named = replaces && give_name(fd, temp);
    if (!named && replaces) return give_up("cannot write");
    if (!named) {  // no /proc to name it by
      fd = open_named();
      if (!fd) return fail_errno("cannot write", path.string(), errno);
      named = true;
      if (const char* what = fill()) return give_up(what);
    }
  }
  if (rename(temp.c_str(), path.c_str()) != 0) return give_up("cannot rename into place");
  return sync_folder(path.parent_path());
}

Status make_dirs(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return fail_errno("cannot make folder", path.string(), error.value());
  return {};
}

Result<TempDir> TempDir::make(std::string_view prefix) {
  const char* base = std::getenv("TMPDIR");
  std::string name(prefix);  // "forge-build" -> forge-scratch-build-XXXXXX
  if (name.starts_with("forge")) name.erase(0, name.find_first_not_of('-', 5));
  FORGE_TRY_ASSIGN(fs::path made, make_scratch(base && *base ? base : "/tmp", "forge-scratch", name));
  return TempDir(std::move(made));
}
TempDir::TempDir(TempDir&& o) noexcept : m_path(std::move(o.m_path)) { o.m_path.clear(); }
TempDir& TempDir::operator=(TempDir&& o) noexcept {
  std::swap(m_path, o.m_path);
  return *this;
}
TempDir::~TempDir() {
  if (!m_path.empty()) drop_scratch(m_path);
}

static fs::path program_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : self.parent_path();
}

Result<Paths> find_paths() {
  Paths paths;
  const fs::path here = program_folder();
  // In order: what the user says, the installed tree (bin/ beside share/forge), a source tree above the build folder.
  std::vector<fs::path> data_places = {here / "../share/forge", here / "..", here / "../.."};
  if (const char* given = std::getenv("FORGE_DATA"); given && *given) data_places = {given};
  for (const fs::path& place : data_places)
    if (fs::is_directory(place / "operators")) {
      std::error_code error;
      paths.data = fs::weakly_canonical(place, error);
      break;
    }
  if (paths.data.empty())
    return fail(Code::not_found, "no operators/ folder near " + here.string(),
                "run from a build of the source tree, or set FORGE_DATA to it");
  std::vector<fs::path> plugin_places = {here / "plugins", here / "../lib/forge/plugins", here / "../plugins"};
  if (const char* given = std::getenv("FORGE_PLUGINS"); given && *given) plugin_places = {given};
  for (const fs::path& place : plugin_places)
    if (fs::is_directory(place)) {
      std::error_code error;
      paths.plugins = fs::weakly_canonical(place, error);
      break;
    }
  if (paths.plugins.empty())
    return fail(Code::not_found, "no plugins/ folder near " + here.string(), "build the project, or set FORGE_PLUGINS");
  if (const char* home = std::getenv("FORGE_HOME"); home && *home) {
    paths.home = home;
  } else if (const char* xdg = std::getenv("XDG_DATA_HOME"); xdg && *xdg) {
    paths.home = fs::path(xdg) / "forge";
  } else if (const char* user = std::getenv("HOME"); user && *user) {
    paths.home = fs::path(user) / ".local/share/forge";
  } else {
    return fail(Code::not_found, "no place for state: neither FORGE_HOME nor HOME is set", "set FORGE_HOME to a folder");
  }
  return paths;
}

}  // namespace forge
