// SPDX-License-Identifier: Apache-2.0
// Compiles foreign source with g++, clang++ or nvcc. The compiler sees its own files and a fresh folder, has no network, and is
// limited in time, memory and output. What this machine cannot enforce goes into BuildInfo.sandbox.
#include <errno.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "build/build.h"
#include "build/compiler_log.h"
#include "build/private_view.h"
#include "build/toolchain.h"
#include "util/hash.h"
#include "util/process.h"
#include "util/sandbox.h"
#include "util/text.h"

namespace forge {

namespace {

// launch-plan.md section 3, then: fused multiply-add may be formed, no errno from <math.h>, and the same bytes every time.
const std::vector<std::string> kCompilerFlags = {"-std=c++20",
                                                 "-O3",
                                                 "-ffreestanding",
                                                 "-fpie",
                                                 "-fvisibility=hidden",
                                                 "-fno-exceptions",
                                                 "-fno-rtti",
                                                 "-fno-threadsafe-statics",
                                                 "-fno-stack-protector",
                                                 "-fno-asynchronous-unwind-tables",
                                                 "-fcf-protection=none",
                                                 "-fno-jump-tables",
                                                 "-ffp-contract=fast",
                                                 "-fno-math-errno",
                                                 "-fno-ident",
                                                 "-Wall",
                                                 "-Wno-psabi",
                                                 "-pipe",
                                                 "-c"};

// For cubins: code for one architecture, no separate compilation, and what ptxas says of registers and spills in the log.
const std::vector<std::string> kCudaFlags = {"-cubin", "-std=c++17", "-O3", "-Xptxas", "-v", "-Wno-deprecated-gpu-targets"};

// Its optimiser takes longer than a host compiler's over a large unrolled kernel.
constexpr CompileLimits kCudaLimits{.seconds = 120, .memory_bytes = std::size_t(6) << 30};

// What differs between the families.
struct Recipe {
  std::string family, source, output;
  std::vector<std::string> flags;
  std::string path;  // folders that the driver program looks for its parts in
};

constexpr int kFilterFd = 9;              // where bubblewrap finds its seccomp filter
constexpr SyscallRule kClone3[] = {435};  // its flags are out of a filter's sight; with ENOSYS libc falls back on clone

int limit_resources(const CompileLimits& limits) {
  if (int e = limit(RLIMIT_CPU, static_cast<std::uint64_t>(limits.seconds) + 1)) return e;
  return limit(RLIMIT_NPROC, 4096);  // counted over the user, so generous; it only stops a fork bomb
}

// An anonymous file with the filter's bytes, at a number that the program to come knows.
int pass_filter(const std::string& filter) {
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "filter", 0u));
  if (fd < 0) return errno;
  if (write(fd, filter.data(), filter.size()) != static_cast<ssize_t>(filter.size())) return EIO;
  if (lseek(fd, 0, SEEK_SET) != 0 || dup2(fd, kFilterFd) < 0) return errno;
  return 0;
}

std::vector<std::string> bubblewrap_arguments(const fs::path& program, const Toolchain& t, const std::string& folder) {
  std::vector<std::string> a = {
      program.string(), "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--seccomp", std::to_string(kFilterFd), "--dev", "/dev"};
  for (const char* link : {"/bin", "/lib", "/lib64"}) {
    std::error_code error;
    const fs::path to = fs::read_symlink(link, error);
    if (!error) a.insert(a.end(), {"--symlink", to.string(), link});
  }
  std::vector<std::string> view = t.execute;
  view.insert(view.end(), t.read.begin(), t.read.end());
  // Folders first: a file bound before the folder around it would be hidden by it.
  std::stable_sort(view.begin(), view.end(), [](const std::string& x, const std::string& y) { return x.size() < y.size(); });
  for (const std::string& p : view) {
    std::error_code error;
    if (p.starts_with("/dev/") || !fs::exists(p, error)) continue;
    const bool beneath_link = fs::is_symlink("/" + split(p, '/')[1], error);
    if (beneath_link) continue;  // /lib64/ld.so: reached through the link made above
    a.insert(a.end(), {"--ro-bind", p, p});
  }
  a.insert(a.end(), {"--bind", folder, folder, "--chdir", folder});
  return a;
}

class SandboxedCompiler : public Compiler {
 public:
  SandboxedCompiler(Toolchain toolchain, Recipe recipe, CompileLimits limits)
      : m_toolchain(std::move(toolchain)), m_recipe(std::move(recipe)), m_limits(limits), m_support(probe_sandbox()) {
    m_view = m_limits.view;
    m_bubblewrap = find_program("bwrap");
    if (m_view == CompilerView::best) m_view = best_view();
  }

  std::string identity() const override { return fmt::format("{} ({})", m_toolchain.program.string(), m_toolchain.version); }

  std::vector<std::string> flags(const TargetSpec& target) const override {
    std::vector<std::string> f = m_recipe.flags;
    if (m_toolchain.clang) f.push_back("-Wno-unknown-warning-option");
    if (!m_toolchain.host.empty()) f.insert(f.end(), {"-ccbin", m_toolchain.host.string()});
    f.insert(f.end(), target.flags.begin(), target.flags.end());
    return f;
  }

  tl::expected<Image, BuildFailure> compile(const KernelPackage& package, const std::string& args_header,
                                            const TargetSpec& target) override {
    const auto broken = [](const Error& e) { return tl::unexpected(BuildFailure{Reason::build_failed, e.text(), {}, e}); };
    if (target.family != m_recipe.family)
      return tl::unexpected(
          BuildFailure{Reason::build_failed,
                       fmt::format("{} builds for {} targets, not {}", m_toolchain.program.string(), m_recipe.family, target.name),
                       {}});
    if (package.source_name != m_recipe.source)
      return tl::unexpected(
          BuildFailure{Reason::plan_invalid,
                       fmt::format("the source of a {} package is {}, not {}", m_recipe.family, m_recipe.source, package.source_name),
                       {}});
    auto folder = TempDir::make("forge-build");
    if (!folder) return broken(folder.error());
    const fs::path at = fs::canonical(folder->path());
    for (const auto& [name, text] : {std::pair{m_recipe.source, &package.source}, std::pair{std::string("forge_args.h"), &args_header}})
      if (auto ok = write_file_atomic(at / name, *text); !ok) return broken(ok.error());

    Image image;
    image.build.compiler = identity();
    image.build.flags = flags(target);
    image.build.sandbox = sandbox();
    auto run = run_compiler(at, image.build.flags);
    // By whom it was killed is not said: once more before it counts as the source's fault, unless that takes long.
    if (run && was_killed(*run) && run->seconds < m_limits.seconds / 2) run = run_compiler(at, image.build.flags);
    if (!run) return broken(run.error());
    if (const auto full = disk_filled(*run, at, m_limits)) return broken(*full);
    image.build.seconds = run->seconds;
    image.build.log = clean_log(run->output, at.string());
    if (auto failure = explain_failure(*run, image.build.log, m_limits)) {
      if (renames_lines(package.source)) failure->detail += " (the source has #line directives: file and line are its own words)";
      return tl::unexpected(std::move(*failure));
    }
    auto object = read_file(at / m_recipe.output);
    if (!object)
      return tl::unexpected(BuildFailure{Reason::build_failed, "the compiler made no object: " + object.error().text(), image.build.log});
    image.bytes = std::move(*object);
    image.sha256 = sha256_hex(image.bytes);
    return image;
  }

 private:
  CompilerView best_view() const {
    if (m_support.landlock_abi > 0) return CompilerView::landlock;
    if (!m_bubblewrap.empty()) return CompilerView::bubblewrap;
    return can_enter_private_view() ? CompilerView::namespaces : CompilerView::none;
  }

  std::vector<std::string> sandbox() const {
    std::vector<std::string> out;
    for (const std::string& line : describe(m_support))
      if (m_view == CompilerView::landlock || line.find("landlock") == std::string::npos || line.starts_with("missing"))
        out.push_back(line);
    if (m_view == CompilerView::landlock)
      out.push_back(fmt::format("view: {} toolchain paths and the build folder", m_toolchain.execute.size() + m_toolchain.read.size()));
    if (m_view == CompilerView::bubblewrap) out.push_back("bubblewrap: own mounts and namespaces, toolchain paths and the build folder");
    if (m_view == CompilerView::namespaces) out.push_back("mount namespace: toolchain paths and the build folder; own network and IPC");
    if (m_view == CompilerView::none)
      out.push_back("missing: a narrowed view of the file system (no Landlock, no bubblewrap, no namespaces: install bubblewrap)");
    out.push_back(fmt::format("limits: {:g} s, {} MiB memory, {} MiB object", m_limits.seconds, m_limits.memory_bytes >> 20,
                              m_limits.object_bytes >> 20));
    out.insert(out.end(), m_toolchain.notes.begin(), m_toolchain.notes.end());
    return out;
  }

  Result<ProcessResult> run_compiler(const fs::path& folder, const std::vector<std::string>& compiler_flags) const {
    const std::string writable = folder.string();
    ProcessOptions o;
    const std::string filter = seccomp_deny_program(harmful_syscalls(), EPERM);
    if (m_view == CompilerView::bubblewrap) o.argv = bubblewrap_arguments(m_bubblewrap, m_toolchain, writable);
    o.argv.push_back(m_toolchain.program.string());
    o.argv.insert(o.argv.end(), compiler_flags.begin(), compiler_flags.end());
    o.argv.insert(o.argv.end(), {"-o", m_recipe.output, m_recipe.source});
    // SOURCE_DATE_EPOCH: __DATE__ and __TIME__ must not make two images of one source.
    o.env = {"PATH=" + m_recipe.path, "LC_ALL=C", "TMPDIR=" + writable, "HOME=" + writable, "SOURCE_DATE_EPOCH=0"};
    o.cwd = folder;
    o.timeout_s = m_limits.seconds;
    o.memory_bytes = m_limits.memory_bytes;
    o.file_bytes = m_limits.object_bytes;
    o.output_cap = 256 << 10;

    std::vector<PathRule> rules;
    for (const std::string& p : m_toolchain.execute) rules.push_back({p.c_str(), PathAccess::read_execute});
    for (const std::string& p : m_toolchain.read) rules.push_back({p.c_str(), PathAccess::read});
    rules.push_back({writable.c_str(), PathAccess::read_write});
    PrivateView view;
    if (m_view == CompilerView::namespaces) {
      std::vector<std::string> paths = m_toolchain.execute;
      paths.insert(paths.end(), m_toolchain.read.begin(), m_toolchain.read.end());
      FORGE_TRY_ASSIGN(view, plan_private_view(paths, folder));
    }
    o.before_exec = [&]() -> int {
      if (int e = limit_resources(m_limits)) return e;
      if (m_view == CompilerView::bubblewrap) return m_support.seccomp ? pass_filter(filter) : 0;
      if (m_view == CompilerView::namespaces)
        if (int e = enter_private_view(view)) return e;
      if (int e = set_no_new_privs()) return e;
      if (m_view == CompilerView::landlock)
        if (int e = landlock_allow(rules)) return e;
      if (!m_support.seccomp) return 0;
      if (int e = seccomp_deny(kClone3, ENOSYS)) return e;
      return seccomp_deny(harmful_syscalls(), EPERM);
    };
    return run_process(o);
  }

  Toolchain m_toolchain;
  Recipe m_recipe;
  CompileLimits m_limits;
  SandboxSupport m_support;
  CompilerView m_view = CompilerView::best;
  fs::path m_bubblewrap;
};

}  // namespace

Result<std::unique_ptr<Compiler>> make_cpu_compiler(const fs::path& program, const CompileLimits& limits) {
  FORGE_TRY_ASSIGN(Toolchain toolchain, probe_toolchain(program));
  const Recipe recipe{"cpu", "kernel.cpp", "kernel.o", kCompilerFlags, "/usr/local/bin:/usr/bin:/bin"};
  return std::make_unique<SandboxedCompiler>(std::move(toolchain), recipe, limits);
}

Result<std::unique_ptr<Compiler>> make_cuda_compiler(const fs::path& program, const CompileLimits& limits) {
  FORGE_TRY_ASSIGN(Toolchain toolchain, probe_cuda_toolchain(program));
  const Recipe recipe{"cuda", "kernel.cu", "kernel.cubin", kCudaFlags, "/usr/local/bin:/usr/bin:/bin"};
  return std::make_unique<SandboxedCompiler>(std::move(toolchain), recipe, limits);
}

Result<std::unique_ptr<Compiler>> find_cuda_compiler() {
  const char* named = std::getenv("FORGE_NVCC");
  if (named && *named && find_program(named).empty())
    return fail(Code::not_found, fmt::format("FORGE_NVCC names {}, which is no program", named), "set it to the toolkit's bin/nvcc");
  for (const char* candidate : {named ? named : "", "nvcc", "/usr/local/cuda/bin/nvcc"})
    if (const fs::path program = *candidate ? find_program(candidate) : fs::path(); !program.empty())
      return make_cuda_compiler(program, kCudaLimits);
  return fail(Code::unsupported, "nvcc was found neither in $FORGE_NVCC, nor in PATH, nor in /usr/local/cuda/bin",
              "install the CUDA toolkit (12.8 or later), or set FORGE_NVCC");
}

Result<std::unique_ptr<Compiler>> find_compiler(const TargetSpec& target) {
  return target.family == "cuda" ? find_cuda_compiler() : find_cpu_compiler();
}

Result<std::unique_ptr<Compiler>> find_cpu_compiler() {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':')) {
    for (const char* name : {"g++", "clang++"}) {
      if (folder.empty()) continue;
      const fs::path program = find_program((fs::path(folder) / name).string());
      std::error_code error;
      // ccache poses as a compiler; it would want its own cache inside the sandbox.
      if (program.empty() || fs::canonical(program, error).filename() == "ccache") continue;
      return make_cpu_compiler(program);
    }
  }
  return fail(Code::unsupported, "no C++ compiler (g++ or clang++) was found in PATH", "install one: apt-get install g++");
}

}  // namespace forge
