// SPDX-License-Identifier: Apache-2.0
// The view is narrow on purpose. Headers: the compiler's, libstdc++'s and libc's own, not all of /usr/include, where a library's
// whole source may lie (Eigen and the like). Libraries: those that the compiler's programs load, one by one, so that `.incbin`
// cannot paste OpenBLAS into a kernel.
#include "build/toolchain.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "util/process.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr const char* kLibcFolders[] = {"asm", "asm-generic", "bits", "gnu", "linux", "sys", "c++"};
constexpr const char* kLibcHeaders[] = {
    "alloca.h", "assert.h",   "complex.h", "ctype.h",       "endian.h", "errno.h",  "fcntl.h",  "features.h", "features-time64.h",
    "fenv.h",   "inttypes.h", "limits.h",  "locale.h",      "malloc.h", "math.h",   "memory.h", "nl_types.h", "pthread.h",
    "sched.h",  "setjmp.h",   "signal.h",  "stdc-predef.h", "stdint.h", "stdio.h",  "stdlib.h", "string.h",   "strings.h",
    "time.h",   "uchar.h",    "unistd.h",  "wchar.h",       "wctype.h", "xlocale.h"};

Result<std::string> ask(const std::vector<std::string>& argv, std::vector<std::string> extra_env = {}) {
  ProcessOptions o;
  o.argv = argv;
  o.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"};
  for (auto& e : extra_env) o.env.push_back(std::move(e));
  o.timeout_s = 20;
  FORGE_TRY_ASSIGN(const ProcessResult r, run_process(o));
  if (r.exit_code != 0)
    return fail(Code::unsupported, argv[0] + " " + join({argv.begin() + 1, argv.end()}, " ") + " failed: " + trim(r.output),
                "reinstall the compiler");
  return r.output;
}

std::string real(const fs::path& p) {
  std::error_code error;
  const fs::path r = fs::canonical(p, error);
  return error ? std::string() : r.string();
}

void add(std::vector<std::string>& list, const std::string& path) {
  if (!path.empty() && std::find(list.begin(), list.end(), path) == list.end()) list.push_back(path);
}

// The folder of a path resolved, its last part kept: the name under which the dynamic loader looks for a library.
std::string as_named(const fs::path& p) {
  const std::string folder = real(p.parent_path());
  return folder.empty() ? std::string() : folder + "/" + p.filename().string();
}

// What the dynamic loader would map, as it says itself; the program does not run.
void add_libraries(Toolchain& t, const std::string& program) {
  const auto said = ask({program}, {"LD_TRACE_LOADED_OBJECTS=1"});
  bool any = false;
  for (const std::string& line : said ? split(*said, '\n') : std::vector<std::string>()) {
    const std::size_t slash = line.find('/');
    const std::size_t end = line.find(" (", slash == std::string::npos ? 0 : slash);
    if (slash == std::string::npos || end == std::string::npos) continue;
    const std::string path = line.substr(slash, end - slash);
    add(t.execute, as_named(path));
    add(t.execute, path.starts_with("/lib64/") ? path : std::string());  // the loader itself, named in every program's header
    any = true;
  }
  if (!any) {  // a static program answers nothing; a foreign libc may not know the variable
    t.notes.push_back("the libraries of " + program + " could not be listed; /usr/lib is in view");
    add(t.execute, "/usr/lib");
    add(t.execute, "/lib");
    add(t.execute, "/lib64");
  }
}

void add_program(Toolchain& t, const fs::path& path) {
  if (path.empty() || !fs::exists(path)) return;
  add(t.execute, as_named(path));
  const std::string target = real(path);
  add(t.execute, target);
  add_libraries(t, target);
}

// A distribution or an administrator may put a script in PATH that runs the compiler proper from elsewhere, where a sandbox cannot
// follow. Such a script is asked what it runs: `option` has the compiler print `mark` and a path.
Result<std::string> printed_path(const fs::path& script, const std::vector<std::string>& options, std::string_view mark) {
  std::vector<std::string> argv = {script.string()};
  argv.insert(argv.end(), options.begin(), options.end());
  FORGE_TRY_ASSIGN(const std::string said, ask(argv));
  for (const std::string& line : split(said, '\n'))
    if (line.starts_with(mark)) return real(trim(line.substr(mark.size())));
  return std::string();
}

bool is_script(const fs::path& program) {
  std::ifstream file(program);
  return file.get() == '#' && file.get() == '!';
}

Result<fs::path> behind_script(const fs::path& program) {
  if (!is_script(program)) return program;
  FORGE_TRY_ASSIGN(const std::string gcc, printed_path(program, {"-E", "-v", "-x", "c++", "/dev/null"}, "COLLECT_GCC="));
  if (!gcc.empty()) return fs::path(gcc);
  FORGE_TRY_ASSIGN(const std::string clang, printed_path(program, {"-v"}, "InstalledDir: "));
  return clang.empty() ? program : fs::path(clang) / "clang++";
}

// The top folder of the toolkit.
Result<fs::path> toolkit_of(const fs::path& nvcc) {
  if (!is_script(nvcc)) return fs::path(real(nvcc)).parent_path().parent_path();
  FORGE_TRY_ASSIGN(const std::string top, printed_path(nvcc, {"-dryrun", "-x", "cu", "-c", "/dev/null", "-o", "/dev/null"}, "#$ TOP="));
  return top.empty() ? fs::path(real(nvcc)).parent_path().parent_path() : fs::path(top);
}

Status add_gcc(Toolchain& t) {
  const std::string gcc = t.program.string();
  FORGE_TRY_ASSIGN(const std::string cc1plus, ask({gcc, "-print-prog-name=cc1plus"}));
  FORGE_TRY_ASSIGN(const std::string as, ask({gcc, "-print-prog-name=as"}));
  FORGE_TRY_ASSIGN(const std::string include, ask({gcc, "-print-file-name=include"}));
  add_program(t, trim(cc1plus));
  add_program(t, find_program(trim(as)));
  add(t.execute, real(fs::path(trim(cc1plus)).parent_path()));  // plugins and wrappers beside cc1plus
  add(t.read, real(fs::path(trim(include)).parent_path()));
  return {};
}

Status add_clang(Toolchain& t) {
  FORGE_TRY_ASSIGN(const std::string resources, ask({t.program.string(), "-print-resource-dir"}));
  add(t.read, real(trim(resources)));
  add(t.read, "/usr/lib/gcc");  // it looks there for the libstdc++ to use
  return {};
}

// Not those of the libraries beside it, which a kernel may not call anyway.
bool is_toolkit_header(const std::string& name) {
  constexpr const char* kLibraries[] = {"cublas", "cudnn", "cufft", "cusparse", "cusolver", "curand", "cutensor", "nccl", "npp", "nvblas"};
  return std::none_of(std::begin(kLibraries), std::end(kLibraries), [&](const char* start) { return name.starts_with(start); });
}

}  // namespace

Result<Toolchain> probe_toolchain(const fs::path& found) {
  Toolchain t;
  FORGE_TRY_ASSIGN(const fs::path program, behind_script(found));
  t.program = program;
  FORGE_TRY_ASSIGN(const std::string version, ask({program.string(), "--version"}));
  t.version = trim(split(version, '\n').front());
  t.clang = version.find("clang") != std::string::npos;
  add_program(t, program);
  if (t.clang)
    FORGE_TRY(add_clang(t));
  else
    FORGE_TRY(add_gcc(t));
  // "search starts here" lists every header folder, the multiarch ones too; nothing is compiled.
  const auto verbose = ask({program.string(), "-E", "-v", "-x", "c++", "/dev/null"});
  for (const std::string& line : verbose ? split(*verbose, '\n') : std::vector<std::string>()) {
    const std::string folder = line.starts_with(" /") ? real(trim(line)) : std::string();
    if (!folder.empty() && folder != "/usr/include" && folder != "/usr/local/include" && fs::is_directory(folder)) add(t.read, folder);
  }
  for (const char* name : kLibcFolders) add(t.read, real(fs::path("/usr/include") / name));
  for (const char* name : kLibcHeaders) add(t.read, real(fs::path("/usr/include") / name));
  add(t.read, "/etc/ld.so.cache");
  add(t.read, "/dev/null");
  return t;
}

Result<Toolchain> probe_cuda_toolchain(const fs::path& nvcc) {
  FORGE_TRY_ASSIGN(const fs::path top, toolkit_of(nvcc));
  const fs::path program = top / "bin/nvcc";
  for (const char* part : {"bin/nvcc", "bin/ptxas", "bin/cudafe++", "bin/fatbinary", "nvvm/bin/cicc", "nvvm/libdevice"})
    if (std::error_code error; !fs::exists(top / part, error))
      return fail(Code::unsupported, fmt::format("{} is no whole CUDA toolkit: there is no {}", top.string(), (top / part).string()),
                  "install the CUDA toolkit (12.8 or later), and let FORGE_NVCC name the nvcc in its own bin folder");
  const fs::path host = find_program("gcc");  // preprocesses; given with -ccbin, so it is the one whose files are in view
  if (host.empty())
    return fail(Code::unsupported, "nvcc needs gcc to preprocess, and there is none in PATH", "install it: apt-get install g++");
  FORGE_TRY_ASSIGN(Toolchain t, probe_toolchain(host));
  if (t.clang) return fail(Code::unsupported, host.string() + " is clang, and nvcc needs gcc to preprocess", "apt-get install g++");
  t.host = real(host);
  const std::string host_version = t.version;
  t.program = program;
  t.version.clear();
  FORGE_TRY_ASSIGN(const std::string version, ask({program.string(), "--version"}));
  for (const std::string& line : split(version, '\n'))
    if (const std::size_t at = line.find("release"); at != std::string::npos) t.version = trim(line.substr(at));
  t.version += "; " + host_version;
  for (const char* part : {"bin/nvcc", "bin/ptxas", "bin/cudafe++", "bin/fatbinary", "nvvm/bin/cicc"}) add_program(t, top / part);
  for (const char* shell : {"/bin/sh", "/usr/bin/rm"}) add_program(t, shell);  // nvcc runs its parts through a shell
  add(t.read, real(top / "bin/nvcc.profile"));
  add(t.read, real(top / "nvvm/libdevice"));
  // The toolkit's own headers one by one: CUB, Thrust and the math libraries' stay out of sight.
  std::error_code error;
  const fs::path include = real(top / "include");
  for (const auto& entry : fs::directory_iterator(include, error))
    if (entry.is_regular_file(error) && is_toolkit_header(entry.path().filename().string())) add(t.read, entry.path().string());
  for (const char* folder : {"crt", "cooperative_groups", "cccl/cuda", "cccl/nv", "cuda", "nv"}) add(t.read, real(include / folder));
  return t;
}

}  // namespace forge
