// SPDX-License-Identifier: Apache-2.0
#include "agents/workspace_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "util/fs.h"
#include "util/text.h"

namespace forge {

namespace {

tl::unexpected<Error> wrong(std::string message, std::string fix) { return fail(Code::bad_input, std::move(message), std::move(fix)); }

std::string quoted(const std::string& text) { return "'" + utf8_head(text, 60) + (text.size() > 60 ? "...'" : "'"); }

// Opens a folder below `from`, component by component; a link or ".." is refused.
Result<Fd> open_below(const std::string& workspace, const std::string& folder) {
  const std::string fix = "name a folder inside the workspace by a relative path without '..', e.g. \"M0\"";
  if (folder.find('\0') != std::string::npos || folder.size() > 1000) return wrong("'folder' is no path", fix);
  Fd at(::open(workspace.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!at && errno == ENOENT) return wrong("there is no workspace yet", "give the package as `source` and `plan`");  // a model's
  if (!at) return fail_errno("cannot open the workspace", workspace, errno);
  if (!folder.empty() && folder.front() == '/') return wrong(fmt::format("'folder' {} is absolute", quoted(folder)), fix);
  for (const std::string& part : split(folder, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return wrong(fmt::format("'folder' {} leaves the workspace", quoted(folder)), fix);
    Fd next(::openat(at.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return wrong(fmt::format("'folder' {} is no folder of the workspace (links are not followed)", quoted(folder)), fix);
    at = std::move(next);
  }
  return at;
}

// Nothing when the file is not there.
Result<std::optional<std::string>> read_at(const Fd& folder, const std::string& name) {
  Fd file(::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::optional<std::string>();
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return wrong(fmt::format("{} in the folder is no plain file that can be read", name),
                 "links and devices are not followed; put the text there");
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("cannot read", name, errno);
    if (n == 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > kMaxText)
      return wrong(fmt::format("{} is longer than {} bytes", name, kMaxText), "compute large tables in the kernel");
  }
  if (text.find('\0') != std::string::npos || utf8_prefix(text) < text.size())
    return wrong(fmt::format("{} is no UTF-8 text", name), "save it as UTF-8, without NUL bytes");
  return std::optional<std::string>(std::move(text));
}

}  // namespace

Result<KernelPackage> read_workspace_package(const std::string& workspace, const std::string& folder) {
  if (workspace.empty()) return wrong("there is no workspace here", "give the package as `source` and `plan`");
  FORGE_TRY_ASSIGN(const Fd at, open_below(workspace, folder));
  KernelPackage package;
  FORGE_TRY_ASSIGN(const auto cpp, read_at(at, "kernel.cpp"));
  FORGE_TRY_ASSIGN(const auto cu, read_at(at, "kernel.cu"));
  FORGE_TRY_ASSIGN(const auto plan, read_at(at, "launch.toml"));
  if (bool(cpp) == bool(cu))
    return wrong(cpp ? "the folder holds both kernel.cpp and kernel.cu" : "the folder holds no kernel.cpp (on a GPU kernel.cu)",
                 "a package has one source");
  if (!plan) return wrong("the folder holds no launch.toml", "write the launch plan there");
  package.source_name = cpp ? "kernel.cpp" : "kernel.cu";
  package.source = cpp ? *cpp : *cu;
  package.plan_text = *plan;
  package.origin = "hand-in";
  return package;
}

Status write_workspace_file(const std::string& workspace, const std::string& folder, const std::string& name, const std::string& text) {
  FORGE_TRY(make_dirs(workspace));
  const Fd root(::open(workspace.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail_errno("cannot open the workspace", workspace, errno);
  if (mkdirat(root.get(), folder.c_str(), 0755) != 0 && errno != EEXIST) return fail_errno("cannot make", folder, errno);
  const Fd at(::openat(root.get(), folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!at) return fail_errno("cannot open", folder, errno);
  if (unlinkat(at.get(), name.c_str(), 0) != 0 && errno != ENOENT) return fail_errno("cannot replace", name, errno);
  const Fd file(::openat(at.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file) return fail_errno("cannot write", name, errno);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(file.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("cannot write", name, errno);
    done += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace forge
