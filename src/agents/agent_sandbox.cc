// SPDX-License-Identifier: Apache-2.0
#include "agents/agent_sandbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "util/process.h"
#include "util/sandbox.h"
#include "util/text.h"

namespace forge {

namespace {

// The system's programs and what they need to find a server and to trust it. Nothing of /etc that is not for everyone.
const char* const kSystem[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
const char* const kEtc[] = {"/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/gai.conf",   "/etc/group",
                            "/etc/hosts",        "/etc/host.conf",       "/etc/ld.so.cache",     "/etc/ld.so.conf", "/etc/ld.so.conf.d",
                            "/etc/localtime",    "/etc/mime.types",      "/etc/nsswitch.conf",   "/etc/os-release", "/etc/passwd",
                            "/etc/pki",          "/etc/protocols",       "/etc/resolv.conf",     "/etc/services",   "/etc/ssl"};

bool beneath(const fs::path& inner, const fs::path& outer) {
  const auto [o, i] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return o == outer.end() || (std::next(o) == outer.end() && o->empty());
}

fs::path real(const fs::path& p) {
  std::error_code error;
  const fs::path r = fs::weakly_canonical(p, error);
  return error ? p : r;
}

bool in_system(const fs::path& p) {
  return std::any_of(std::begin(kSystem), std::end(kSystem), [&](const char* s) { return beneath(p, s); });
}

// What starting a program takes: the file, the packages around a script of Node, and the interpreter that its first line names.
struct Program {
  std::vector<fs::path> read;
  std::vector<std::string> folders;  // for PATH
};
void look_at(const fs::path& found, Program& p, int depth = 0) {
  const fs::path at = real(found);
  const auto see = [&](const fs::path& path, const fs::path& folder) {
    if (in_system(path)) return;
    p.read.push_back(path);
    p.folders.push_back(folder.string());
  };
  fs::path package;
  for (fs::path up = at.parent_path(); up.has_relative_path(); up = up.parent_path())
    if (up.filename() == "node_modules") package = up;
  see(package.empty() ? at : package, at.parent_path());
  std::ifstream file(at);
  std::string first;
  if (depth > 2 || file.get() != '#' || file.get() != '!' || !std::getline(file, first)) return;
  std::vector<std::string> words;
  for (const std::string& w : split(trim(first), ' '))
    if (!w.empty()) words.push_back(w);
  if (words.empty()) return;
  std::string interpreter = words[0];
  if (fs::path(interpreter).filename() == "env")
    for (std::size_t i = 1; i < words.size(); ++i)
      if (words[i][0] != '-') {
        interpreter = words[i];
        break;
      }
  if (const fs::path program = find_program(interpreter); !program.empty()) look_at(program, p, depth + 1);
}

struct Rules {  // own the texts that PathRule points at
  std::vector<std::string> texts;
  std::vector<PathAccess> access;
  std::vector<PathRule> rules;
  void add(const fs::path& p, PathAccess a) { texts.push_back(p.string()), access.push_back(a); }
  void finish() {
    for (std::size_t i = 0; i < texts.size(); ++i) rules.push_back({texts[i].c_str(), access[i]});
  }
};

Result<AgentCage> with_landlock(const AgentView& v, const Program& program, AgentCage cage) {
  auto rules = std::make_shared<Rules>();
  for (const char* p : kSystem) rules->add(p, PathAccess::read_execute);
  for (const char* p : kEtc) rules->add(p, PathAccess::read);
  for (const fs::path& p : program.read) rules->add(p, PathAccess::read_execute);
  for (const fs::path& p : v.read) rules->add(real(p), PathAccess::read_execute);
  rules->add(v.forge, PathAccess::read_execute);
  rules->add(v.forge.parent_path() / "lib", PathAccess::read_execute);
  for (const char* p : {"/proc", "/dev/urandom", "/dev/random", "/dev/zero", "/sys/devices/system/cpu"}) rules->add(p, PathAccess::read);
  rules->add("/dev/null", PathAccess::read_write);
  for (const fs::path& p : {v.workspace, v.socket_folder}) rules->add(p, PathAccess::read_write);
  for (const auto& [from, to] : v.config) {
    std::error_code error;
    fs::create_directories(to.parent_path(), error);
    fs::remove(to, error);  // a link of an earlier milestone; a folder that is not empty stays
    fs::create_symlink(from, to, error);
    rules->add(from, v.config_writable ? PathAccess::read_write : PathAccess::read_execute);
  }
  for (const fs::path& h : v.hidden)
    for (const std::string& shown : rules->texts)
      if (shown != v.workspace && shown != v.forge && beneath(real(h), shown))
        return fail(Code::unsupported, fmt::format("Landlock cannot hide {} inside {}", h.string(), shown), "install bubblewrap");
  rules->finish();
  cage.before_exec = [rules] {
    if (const int e = set_no_new_privs()) return e;
    return landlock_allow(rules->rules, true);
  };
  cage.words = "Landlock, network open";
  return cage;
}

AgentCage with_bubblewrap(const AgentView& v, const Program& program, AgentCage cage) {
  std::vector<std::string> a = {find_program("bwrap").string(),
                                "--unshare-pid",
                                "--unshare-ipc",
                                "--unshare-uts",
                                "--unshare-cgroup-try",
                                "--die-with-parent",
                                "--new-session",
                                "--cap-drop",
                                "ALL"};
  const auto bind = [&](const char* how, const fs::path& from, const fs::path& to) {
    a.insert(a.end(), {how, from.string(), to.string()});
  };
  std::vector<fs::path> shown;
  for (const char* p : kSystem) {
    std::error_code error;
    const fs::path link = fs::read_symlink(p, error);
    if (!error)
      a.insert(a.end(), {"--symlink", link.string(), p});
    else
      bind("--ro-bind-try", p, p), shown.emplace_back(p);
  }
  for (const char* p : kEtc) bind("--ro-bind-try", p, p);
  a.insert(a.end(), {"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"});
  for (const auto* list : {&program.read, &v.read})
    for (const fs::path& p : *list) bind("--ro-bind-try", real(p), p), shown.push_back(real(p));
  for (const fs::path& h : v.hidden) {  // over all that shows them, under what follows
    std::error_code error;
    const bool visible = std::any_of(shown.begin(), shown.end(), [&](const fs::path& s) { return beneath(real(h), s); });
    if (visible && fs::is_directory(h, error)) a.insert(a.end(), {"--tmpfs", real(h).string()});
  }
  bind("--ro-bind", v.forge, "/run/forge/forge");
  bind("--ro-bind-try", v.forge.parent_path() / "lib", "/run/forge/lib");
  bind("--bind", v.socket_folder, v.socket_folder);
  bind("--bind", v.workspace, v.workspace);
  for (const auto& [from, to] : v.config) bind(v.config_writable ? "--bind-try" : "--ro-bind-try", from, to);
  a.insert(a.end(), {"--chdir", v.workspace.string(), "--"});
  cage.prefix = std::move(a);
  cage.forge = "/run/forge/forge";
  cage.words = "bubblewrap, network open";
  return cage;
}

}  // namespace

Cage best_cage() {
  if (!find_program("bwrap").empty()) {
    ProcessOptions o;
    o.argv = {"bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--dev", "/dev", "--proc", "/proc", "true"};
    if (const char* path = std::getenv("PATH")) o.env = {std::string("PATH=") + path};
    o.timeout_s = 10;
    if (const auto r = run_process(o); r && r->exit_code == 0) return Cage::bubblewrap;
  }
  return probe_sandbox().landlock_abi > 0 ? Cage::landlock : Cage::none;
}

Result<AgentCage> make_cage(const AgentView& v, Cage kind) {
  Program program;
  look_at(v.program, program);
  AgentCage cage;
  // A link is kept where it leads on (a name that /etc/alternatives gives), else its target, which is what is in view.
  cage.program = (in_system(v.program) ? v.program : real(v.program)).string();
  cage.forge = v.forge.string();
  cage.path = program.folders;
  cage.path.insert(cage.path.end(), {"/usr/local/bin", "/usr/bin", "/bin"});
  for (const auto& [from, to] : v.config)
    for (const fs::path& h : v.hidden)
      if (beneath(real(h), real(from)))
        return fail(Code::bad_input, fmt::format("the agent's configuration {} holds {}", from.string(), h.string()),
                    "name the agent's own folder alone");
  switch (kind) {
    case Cage::bubblewrap:
      return with_bubblewrap(v, program, std::move(cage));
    case Cage::landlock:
      return with_landlock(v, program, std::move(cage));
    case Cage::none:
      break;
  }
  cage.words = "no sandbox, network open";
  for (const auto& [from, to] : v.config) {
    std::error_code error;
    fs::create_directories(to.parent_path(), error);
    fs::remove(to, error);
    fs::create_symlink(from, to, error);
  }
  return cage;
}

}  // namespace forge
