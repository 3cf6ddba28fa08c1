// SPDX-License-Identifier: Apache-2.0
// Files, crash-safe: a file is either the old one or the whole new one, whatever happens in between.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.h"

namespace forge {
namespace fs = std::filesystem;

Result<std::string> read_file(const fs::path&);  // whole file; not_found / io, also for a pipe or a device
// Temp file beside the target, fsync, rename, fsync of the folder. disk_full / io leave the old file whole.
Status write_file_atomic(const fs::path&, std::string_view content);
Status make_dirs(const fs::path&);
// A fresh folder under $TMPDIR or /tmp, removed with everything in it on destruction.
class TempDir {
 public:
  static Result<TempDir> make(std::string_view prefix = "forge");
  TempDir(TempDir&&) noexcept;
  TempDir& operator=(TempDir&&) noexcept;
  ~TempDir();
  const fs::path& path() const { return m_path; }

 private:
  explicit TempDir(fs::path p) : m_path(std::move(p)) {}
  fs::path m_path;
};

// A file descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : m_fd(fd) {}
  Fd(Fd&& o) noexcept : m_fd(o.release()) {}
  Fd& operator=(Fd&& o) noexcept;
  ~Fd();
  int get() const { return m_fd; }
  int release() {
    int f = m_fd;
    m_fd = -1;
    return f;
  }
  explicit operator bool() const { return m_fd >= 0; }

 private:
  int m_fd = -1;
};

// Where things live. Data (operators, blueprints, knowledge) is found beside the program or in the source tree;
// FORGE_DATA overrides. State (runs, vault, store) lives in FORGE_HOME, else $XDG_DATA_HOME/forge, else ~/.local/share/forge.
struct Paths {
  fs::path data;     // holds operators/ blueprints/ knowledge/
  fs::path plugins;  // holds <operator>/oracle.so and <operator>/expert-<name>.so, and the forge-runner program
  fs::path home;     // state
};
Result<Paths> find_paths();

}  // namespace forge
