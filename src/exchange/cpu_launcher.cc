// SPDX-License-Identifier: Apache-2.0
// The launcher of a CPU kernel: <name>.h, <name>.cc, kernel.cpp, forge_args.h, README.md.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/version.h"
#include "exchange/cpp_expr.h"
#include "exchange/cpu_team.h"
#include "exchange/launcher_text.h"
#include "util/text.h"

namespace forge {
namespace {

// What the builder passes for speed and for the same numbers: docs/formats/admission.md says what else it passes.
constexpr const char* kKernelFlags =
    "-std=c++20 -O3 -ffreestanding -fvisibility=hidden -fno-exceptions -fno-rtti -ffp-contract=fast -fno-math-errno -Wno-psabi";

std::vector<std::string> entries_of(const LaunchPlan& plan) {
  std::vector<std::string> entries;
  for (const LaunchSpec& l : plan.launches)
    if (std::find(entries.begin(), entries.end(), l.entry) == entries.end()) entries.push_back(l.entry);
  return entries;
}

// The builder's header, then each entry's name in the object, so that several exported kernels fit into one program.
std::string args_header(const LauncherParts& p) {
  std::string out = make_args_header(p.plan, p.request.definition, p.request.target);
  out += "\n// In the object an entry has the kernel's name before its own, so that several exported kernels fit into one program.\n";
  for (const std::string& entry : entries_of(p.plan))
    out += fmt::format("extern \"C\" void {0}(const forge_args*, const forge_block*) __asm__(\"forge_export_{1}_{0}\");\n", entry, p.name);
  return out;
}

std::string header(const LauncherParts& p) {
  return generated_by(p) + fmt::format(R"(// How to call it: README.md. A Launcher serves one call at a time.
#pragma once
#include <cstdint>
#include <memory>

namespace forge_export {{
namespace {0} {{

{1}
enum class Outcome {{
  done,
  unsupported,   // a shape outside the kernel's domain, or a processor that lacks what the kernel was made for
  bad_argument,  // a null or misaligned pointer, an axis out of range
  out_of_memory,
}};

class Launcher {{
 public:
  explicit Launcher(int workers = 0);  // threads, the caller among them; 0: one a processor. Throws std::system_error
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  Outcome run(const Arguments&);  // returns when the outputs are written
  const char* why() const;        // what was wrong with the last call; empty after `done`
  int workers() const;

 private:
  struct State;
  std::unique_ptr<State> m_state;
}};

}}  // namespace {0}
}}  // namespace forge_export
)",
                                       p.name, arguments_struct(p));
}

// Features by the names of __builtin_cpu_supports.
std::string missing_feature(const TargetSpec& target) {
  std::vector<const char*> needed = {"avx2", "fma", "bmi", "bmi2"};
  if (target.vector_bits >= 512)
    for (const char* f : {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) needed.push_back(f);
  std::string out = "const char* missing_feature() {\n";
  for (const char* f : needed) out += fmt::format("  if (!__builtin_cpu_supports(\"{0}\")) return \"this processor lacks {0}\";\n", f);
  return out + "  return nullptr;\n}\n";
}

constexpr const char* kState = R"(
struct Launcher::State {
  explicit State(int workers) : team(workers) {}

  Outcome say(Outcome outcome, const char* what) {
    why = what;
    return outcome;
  }
  bool fits(const forge_math& e, std::int64_t value, std::int64_t low, std::int64_t high, const char* field) {
    if (!e.wrong && value >= low && value <= high) return true;
    std::snprintf(text, sizeof text, "%s: %s", field, e.wrong ? e.wrong : "out of range");
    why = text;
    return false;
  }
  // A tensor without elements may be null. Vector instructions of the kernel may insist on 64 bytes.
  bool tensor(const forge_math& e, const void* data, std::int64_t elements, const char* field) {
    const char* wrong = e.wrong                                              ? e.wrong
                        : !data && elements != 0                             ? "is null"
                        : reinterpret_cast<std::uintptr_t>(data) % 64 != 0 ? "is not aligned to 64 bytes"
                                                                             : nullptr;
    if (!wrong) return true;
    std::snprintf(text, sizeof text, "%s: %s", field, wrong);
    why = text;
    return false;
  }
  // Kept from call to call; a new one is clear, because the kernel may count on finding it as it left it.
  bool reserve(int index, std::int64_t bytes) {
    Workspace& w = workspaces[index];
    if (static_cast<std::size_t>(bytes) <= w.bytes) return true;
    w.bytes = 0;
    w.data = allocate(static_cast<std::size_t>(bytes), 1024);
    if (!w.data) return false;
    std::memset(w.data.get(), 0, static_cast<std::size_t>(bytes));
    w.bytes = static_cast<std::size_t>(bytes);
    return true;
  }
  void zero(int index, std::int64_t bytes) {
    Range r{static_cast<unsigned char*>(workspaces[index].data.get()), static_cast<std::size_t>(bytes)};
    if (bytes > 0) team.launch(&clear, reinterpret_cast<const forge_args*>(&r), bytes < 65536 ? 1 : team.workers());
  }

  struct Workspace {
    Block data;
    std::size_t bytes = 0;
  };
  Team team;
  Workspace workspaces[k_workspaces + 1];
  char text[256] = {};
  const char* why = "";
};

Launcher::Launcher(int workers) {
  const unsigned here = std::thread::hardware_concurrency();
  m_state = std::make_unique<State>(workers > 0 ? workers : here > 0 ? static_cast<int>(here) : 1);
}
Launcher::~Launcher() = default;
const char* Launcher::why() const { return m_state->why; }
int Launcher::workers() const { return m_state->team.workers(); }
)";

std::string fill_args(const LauncherParts& p) {
  std::string out = "  forge_args a{};\n";
  for (const ArgField& f : p.layout.fields) {
    if (f.kind == ArgField::Kind::workspace)
      out += fmt::format("  a.{} = bytes_{} > 0 ? m.workspaces[{}].data.get() : nullptr;\n", f.name, f.index, f.index);
    else if (f.kind == ArgField::Kind::axis || f.kind == ArgField::Kind::let)
      out += fmt::format("  a.{0} = static_cast<int>(v_{0});\n", f.name);
    else
      out += fmt::format("  a.{0} = c.{0};\n", f.name);
  }
  return out;
}

// Everything is worked out before anything is launched.
std::string plan_launches(const LauncherParts& p) {
  std::string out =
      "  struct Planned {\n    Entry entry;\n    std::int64_t grid;\n  };\n"
      "  Planned planned[" +
      std::to_string(p.plan.launches.size()) + "];\n  int count = 0;\n  std::int64_t scratch = 0;\n";
  for (std::size_t i = 0; i < p.plan.launches.size(); i++) {
    const LaunchSpec& l = p.plan.launches[i];
    const std::string n = std::to_string(i), at = "launch[" + n + "]";
    out += fmt::format("  const std::int64_t when_{} = {};\n", i, l.when.empty() ? "1" : cpp_expression(l.when));
    out += range_check("when_" + n, "INT64_MIN", "INT64_MAX", at + ".when");
    out += fmt::format("  if (when_{} != 0) {{\n", i);
    out += fmt::format("    const std::int64_t bytes = {};\n  ", cpp_expression(l.smem));
    out += range_check("bytes", "0", "1 << 30", at + ".smem");
    out += fmt::format("    const std::int64_t grid = {};\n  ", cpp_expression(l.grid));
    out += range_check("grid", "0", "INT32_MAX", at + ".grid");
    out += fmt::format(
        "    if (grid > 0) {{\n      scratch = e.most(scratch, bytes);\n      planned[count++] = {{&::{}, grid}};\n    }}\n  }}\n",
        l.entry);
  }
  return out;
}

std::string run_body(const LauncherParts& p) {
  std::string out =
      "\nOutcome Launcher::run(const Arguments& c) {\n  State& m = *m_state;\n  m.why = \"\";\n"
      "  if (const char* lacks = missing_feature()) return m.say(Outcome::unsupported, lacks);\n  forge_math e;\n"
      "  [[maybe_unused]] const std::int64_t v_sm_count = m.team.workers(), v_resident = m.team.workers();\n";
  out += checked_names(p) + workspace_sizes(p) + plan_launches(p);
  out += "\n  if (!m.team.reserve_scratch(static_cast<std::size_t>(scratch))) return m.say(Outcome::out_of_memory, \"scratch\");\n";
  for (std::size_t i = 0; i < p.plan.workspaces.size(); i++)
    out += fmt::format("  if (!m.reserve({0}, bytes_{0})) return m.say(Outcome::out_of_memory, {1});\n", i,
                       cpp_string("workspace " + p.plan.workspaces[i].name));
  out += fill_args(p);
  for (std::size_t i = 0; i < p.plan.workspaces.size(); i++)
    if (p.plan.workspaces[i].init == WorkspaceInit::zero) out += fmt::format("  m.zero({0}, bytes_{0});\n", i);
  out += "  for (int i = 0; i < count; i++) m.team.launch(planned[i].entry, &a, planned[i].grid);\n  return Outcome::done;\n}\n";
  return out;
}

std::string source(const LauncherParts& p) {
  std::string out =
      generated_by(p) + fmt::format(R"(// Does what launch.toml says, with threads of its own. C++17 and later, GCC or Clang, x86-64.
#include "{}.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "forge_args.h"

namespace forge_export {{
namespace {} {{
namespace {{

constexpr int k_workspaces = {};

)",
                                    p.name, p.name, p.plan.workspaces.size());
  out += kPlanMath;
  out += kCpuTeam;
  out += "\n" + missing_feature(p.request.target) + "\n}  // namespace\n";
  out += kState;
  out += run_body(p);
  out += fmt::format("\n}}  // namespace {}\n}}  // namespace forge_export\n", p.name);
  return out;
}

std::string readme(const LauncherParts& p) {
  std::string first;  // a call, with the fields that it needs
  for (const ArgField& f : p.layout.fields)
    if (f.kind == ArgField::Kind::tensor || f.kind == ArgField::Kind::scalar || f.kind == ArgField::Kind::axis)
      first += fmt::format("a.{} = ...;\n", f.name);
  return fmt::format(R"(# {0}

{1}

Generated by forge {2} from {3}, for {4}. The folder needs nothing of forge.

| file | what it is |
|---|---|
| `{0}.h`, `{0}.cc` | the launcher: does what the launch plan says |
| `kernel.cpp` | the kernel, byte by byte |
| `forge_args.h` | the kernel's argument struct |

## Build

The kernel's flags are those of the judge's that matter for speed and results; the launcher may have any. Add `-fPIC` to both for a
shared library.

```sh
g++ {5} {6} -c kernel.cpp -o kernel.o
g++ -std=c++20 -O2 -pthread -c {0}.cc -o {0}.o
```

## Call

```cpp
#include "{0}.h"

namespace k = forge_export::{0};
k::Launcher launcher;  // keep it: it holds threads and workspaces
k::Arguments a;
{7}if (launcher.run(a) != k::Outcome::done) std::fprintf(stderr, "%s\n", launcher.why());
```

{8}
Tensors are row-major, packed and aligned to 64 bytes; 16- and 8-bit floats are bit patterns. Inputs and outputs must not overlap.
A launcher serves one call at a time; several launchers may run at once. Threads are not pinned: bind the process (`taskset`, `numactl`)
where times matter. Several exported kernels fit into one program, unless
beside their entries two of them have functions of one name that are neither static nor inline.
)",
                     p.name, p.request.definition.description, forge_version(), p.request.origin, p.request.target.name, kKernelFlags,
                     join(p.request.target.flags, " "), first, arguments_table(p));
}

}  // namespace

Result<std::vector<ExportedFile>> cpu_launcher(const LauncherParts& p) {
  return std::vector<ExportedFile>{{p.name + ".h", header(p)},
                                   {p.name + ".cc", source(p)},
                                   {"kernel.cpp", p.request.package.source},
                                   {"forge_args.h", args_header(p)},
                                   {"README.md", readme(p)}};
}

}  // namespace forge
