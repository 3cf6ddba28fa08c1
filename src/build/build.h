// SPDX-License-Identifier: Apache-2.0
// From package to image: the compiler in a sandbox, then admission on the binary, then what the binary shows.
// Foreign source is never trusted: no network, only the toolchain's files in view, limits on time and memory.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/evidence.h"
#include "core/operator.h"
#include "core/package.h"
#include "core/target.h"
#include "core/verdict.h"
#include "util/fs.h"

namespace forge {

// A package folder: launch.toml and kernel.cpp or kernel.cu. Other files are refused (named).
Result<KernelPackage> read_package_folder(const fs::path&);
Status write_package_folder(const KernelPackage&, const fs::path&);

struct BuildFailure {
  Reason reason = Reason::build_failed;
  std::string detail, log;
  std::optional<Error> ours;  // this machine's fault (no space, stopped by the user), not the package's: no verdict comes of it
};

// Compilers sit at the world's edge.
class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual std::string identity() const = 0;                                              // path and version; part of the cache key
  virtual std::vector<std::string> flags(const TargetSpec& t) const { return t.flags; }  // all that it passes; likewise
  // Compiles kernel source with the generated forge_args.h beside it. Returns the object's bytes.
  virtual tl::expected<Image, BuildFailure> compile(const KernelPackage&, const std::string& args_header, const TargetSpec&) = 0;
};
// g++ or clang++ for cpu targets, whichever is found first in PATH; unsupported names the package to install.
Result<std::unique_ptr<Compiler>> find_cpu_compiler();

// How the compiler's view of the file system is narrowed. `best`: Landlock, else bubblewrap, else a mount
// namespace of our own, else none, and then BuildInfo.sandbox says so. The others are for tests of the fall-backs.
enum class CompilerView { best, landlock, bubblewrap, namespaces, none };
struct CompileLimits {
  double seconds = 60;
  std::size_t memory_bytes = std::size_t(2) << 30;
  std::size_t object_bytes = std::size_t(32) << 20;  // as much as the loader places
  CompilerView view = CompilerView::best;
};
Result<std::unique_ptr<Compiler>> make_cpu_compiler(const fs::path& program, const CompileLimits& = {});

// nvcc for cuda targets: $FORGE_NVCC, PATH, /usr/local/cuda/bin.
Result<std::unique_ptr<Compiler>> find_cuda_compiler();
Result<std::unique_ptr<Compiler>> make_cuda_compiler(const fs::path& program, const CompileLimits& = {});
// By the target's family.
Result<std::unique_ptr<Compiler>> find_compiler(const TargetSpec&);
// What there is of nvcc, a disassembler and ncu, one line each: "/usr/local/cuda/bin/ncu (Version ...)", "missing: ncu (...)".
std::vector<std::string> cuda_build_findings();

class FakeCompiler : public Compiler {  // returns what the test put in
 public:
  tl::expected<Image, BuildFailure> next = tl::unexpected(BuildFailure{});
  int calls = 0;
  std::string identity() const override { return "fake 1"; }
  tl::expected<Image, BuildFailure> compile(const KernelPackage&, const std::string&, const TargetSpec&) override {
    ++calls;
    return next;
  }
};

// Admission of a relocatable x86-64 object (launch-plan.md section 5): every rule that is broken, first one first.
struct AdmissionFailure {
  std::string rule, detail;
};
tl::expected<void, AdmissionFailure> admit_cpu_object(const std::string& object, const LaunchPlan&);
// Admission of a cubin, by its ELF and its 16-byte instructions alone. args_bytes: size of forge_args.
tl::expected<void, AdmissionFailure> admit_cubin(const std::string& cubin, const LaunchPlan&, std::size_t args_bytes, const TargetSpec&);
Result<std::vector<EntryResources>> cubin_resources(const std::string& cubin);

// parse plan -> check -> header -> compile -> admit. Cached by content under cache_dir (empty: no cache).
class Builder {
 public:
  Builder(Compiler& compiler, fs::path cache_dir) : m_compiler(compiler), m_cache(std::move(cache_dir)) {}
  tl::expected<Image, BuildFailure> build(const KernelPackage&, const Definition&, const TargetSpec&);

 private:
  Compiler& m_compiler;
  fs::path m_cache;
};

// x86 by Zydis. From an object: all executable sections. From raw code: bytes at an address, for JIT code.
Result<InstructionMix> disassemble_object(const std::string& object);
// SASS by nvdisasm or cuobjdump when one is found ($FORGE_NVDISASM, PATH, /usr/local/cuda/bin); mnemonics are lower-case opcodes
// with their modifiers ("hgmma.64x256x16.f32"). Without one, opcodes alone ("hgmma"), and a note in the mix says so.
Result<InstructionMix> disassemble_cubin(const std::string& cubin);
// By the target's family.
Result<InstructionMix> disassemble_image(const Image&, const TargetSpec&);
// Sampled code: each region starts at an instruction, and `entries` are addresses of further ones, such as all that were sampled.
// What control flow does not lead to from there is data or was not seen to run, and is not counted.
InstructionMix disassemble_code(const std::vector<std::pair<std::uint64_t, std::string>>& regions, const std::string& label,
                                const std::vector<std::uint64_t>& entries = {});
// SASS that a profiler shows with its counts: a library's, of which there is no image. `hot` holds the instructions that were executed
// at least half as often as the most executed one; no loops, no listing.
struct CountedLine {
  std::uint64_t address = 0;
  std::string text;     // "@P0 BRA 0x1d0"
  double executed = 0;  // by warps
};
struct CountedKernel {
  std::string name;
  std::vector<CountedLine> lines;
};
InstructionMix counted_mix(const std::vector<CountedKernel>&);
// Nsight Compute's command line: $FORGE_NCU, then ncu in PATH, in /usr/local/cuda/bin, in /opt/nvidia. Empty: not found.
fs::path find_ncu();
SignatureResult check_signature(const Signature&, const InstructionMix&);

}  // namespace forge
