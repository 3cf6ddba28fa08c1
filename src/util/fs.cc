// SPDX-License-Identifier: Apache-2.0
#include "util/fs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "util/random.h"

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
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno("cannot read", path.string(), errno);
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

Status write_file_atomic(const fs::path& path, std::string_view content) {
  const fs::path temp = path.string() + ".tmp" + std::to_string(os_entropy());
  Fd fd(open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) return fail_errno("cannot write", path.string(), errno);
  auto give_up = [&](const char* what) {
    const int saved = errno;
    unlink(temp.c_str());
    return fail_errno(what, path.string(), saved);
  };
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = write(fd.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return give_up("cannot write");
    done += static_cast<std::size_t>(n);
  }
  if (fsync(fd.get()) != 0) return give_up("cannot sync");
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
  std::string pattern = std::string(base && *base ? base : "/tmp") + "/" + std::string(prefix) + "-XXXXXX";
  if (!mkdtemp(pattern.data())) return fail_errno("cannot make a temporary folder", pattern, errno);
  return TempDir(fs::path(pattern));
}
TempDir::TempDir(TempDir&& o) noexcept : m_path(std::move(o.m_path)) { o.m_path.clear(); }
TempDir& TempDir::operator=(TempDir&& o) noexcept {
  std::swap(m_path, o.m_path);
  return *this;
}
TempDir::~TempDir() {
  if (m_path.empty()) return;
  std::error_code ignored;  // a destructor has nobody to tell
  fs::remove_all(m_path, ignored);
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
