// SPDX-License-Identifier: Apache-2.0
#include "build/private_view.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "util/text.h"

namespace forge {

namespace {

int write_text(const char* path, const char* text, std::size_t size) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = write(fd, text, size) == static_cast<ssize_t>(size) ? 0 : errno;
  close(fd);
  return error;
}

int new_namespaces(const std::string& uid_map, const std::string& gid_map) {
  const int user = uid_map.empty() ? 0 : CLONE_NEWUSER;
  if (unshare(user | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) != 0) return errno;
  if (user) {
    if (int e = write_text("/proc/self/setgroups", "deny", 4)) return e;
    if (int e = write_text("/proc/self/uid_map", uid_map.data(), uid_map.size())) return e;
    if (int e = write_text("/proc/self/gid_map", gid_map.data(), gid_map.size())) return e;
  }
  return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? 0 : errno;
}

std::pair<std::string, std::string> id_maps() {
  const uid_t uid = geteuid();
  if (uid == 0) return {};
  return {fmt::format("{0} {0} 1", uid), fmt::format("{0} {0} 1", getegid())};
}

}  // namespace

Result<PrivateView> plan_private_view(const std::vector<std::string>& paths, const fs::path& build_folder) {
  PrivateView v;
  v.folder = build_folder.string();
  v.stage = (build_folder / "view").string();
  v.folder_in_stage = v.stage + v.folder;
  std::tie(v.uid_map, v.gid_map) = id_maps();
  FORGE_TRY(make_dirs(v.stage));
  std::set<std::string> folders;  // sorted: a folder comes before what lies in it
  const auto add_with_parents = [&](fs::path p) {
    for (; p.has_relative_path(); p = p.parent_path()) folders.insert(v.stage + p.string());
  };
  std::error_code error;
  for (const char* link : {"/bin", "/lib", "/lib64"})
    if (const fs::path to = fs::read_symlink(link, error); !error) v.links.emplace_back(to.string(), v.stage + link);
  std::vector<std::string> view = paths;
  std::sort(view.begin(), view.end());
  std::string around;  // the last folder bound: what lies in it is there already
  for (const std::string& p : view) {
    if (!fs::exists(p, error) || (!around.empty() && p.starts_with(around + "/"))) continue;
    if (fs::is_symlink("/" + split(p, '/')[1], error)) continue;  // reached through a link made above
    const bool folder = fs::is_directory(p, error);
    add_with_parents(folder ? fs::path(p) : fs::path(p).parent_path());
    if (folder)
      around = p;
    else
      v.files.push_back(v.stage + p);
    v.read_only.emplace_back(p, v.stage + p);
  }
  add_with_parents(build_folder);
  v.folders.assign(folders.begin(), folders.end());
  return v;
}

int enter_private_view(const PrivateView& v) {
  if (int e = new_namespaces(v.uid_map, v.gid_map)) return e;
  if (mount("view", v.stage.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=1m") != 0) return errno;
  for (const std::string& p : v.folders)
    if (mkdir(p.c_str(), 0755) != 0 && errno != EEXIST) return errno;
  for (const auto& [text, path] : v.links)
    if (symlink(text.c_str(), path.c_str()) != 0) return errno;
  for (const std::string& p : v.files) {
    const int fd = open(p.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0) return errno;
    close(fd);
  }
  for (const auto& [from, onto] : v.read_only) {
    if (mount(from.c_str(), onto.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return errno;
    // A user namespace may not drop flags that the outer mount has; it is read-only for us anyway where that fails.
    if (mount(nullptr, onto.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID, nullptr) != 0 && errno != EPERM) return errno;
  }
  if (mount(v.folder.c_str(), v.folder_in_stage.c_str(), nullptr, MS_BIND, nullptr) != 0) return errno;
  if (chdir(v.stage.c_str()) != 0) return errno;
  // The old root is stacked over the new one, then taken away.
  if (syscall(SYS_pivot_root, ".", ".") != 0) return errno;
  if (umount2(".", MNT_DETACH) != 0) return errno;
  return chdir(v.folder.c_str()) == 0 ? 0 : errno;
}

bool can_enter_private_view() {
  const auto [uid_map, gid_map] = id_maps();
  const pid_t pid = fork();
  if (pid < 0) return false;
  if (pid == 0) _exit(new_namespaces(uid_map, gid_map) == 0 ? 0 : 1);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace forge
