// SPDX-License-Identifier: Apache-2.0
// The brief: all that a stranger needs to write the kernel of one milestone, and nothing that the design keeps from a coding agent.
#include <fmt/format.h>

#include <set>

#include "agents/tools.h"
#include "core/json_io.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr std::size_t kReferenceText = 1500;  // bytes of the definition's Python
constexpr std::size_t kEntryText = 700;       // bytes of a cited entry's mechanism

std::string shape_text(const TensorSpec& t) {
  std::string dims;
  for (const auto& axis : t.shape) dims += (dims.empty() ? "" : ", ") + axis;
  return t.scalar ? "a scalar" : "[" + dims + "]";
}

std::string axes_text(const std::map<std::string, std::int64_t>& axes) {
  std::string text;
  for (const auto& [axis, value] : axes) text += (text.empty() ? "" : ", ") + fmt::format("{} = {}", axis, value);
  return text.empty() ? "(no variable axis)" : text;
}

void add_operator(std::string& out, const Workbench& bench) {
  const Definition& d = bench.definition();
  out += fmt::format("## The operator: {}\n\n{}\n\n", d.name, d.description);
  for (const Axis& a : d.axes)
    out += a.constant ? fmt::format("- axis `{}` = {} (a constant)\n", a.name, a.value)
                      : fmt::format("- axis `{}`: varies from call to call\n", a.name);
  for (const auto& t : d.inputs) out += fmt::format("- input `{}`: {} {}\n", t.name, name(t.dtype), shape_text(t));
  for (const auto& t : d.outputs) out += fmt::format("- output `{}`: {} {}\n", t.name, name(t.dtype), shape_text(t));
  for (const auto& c : d.constraints) out += "- constraint: " + c + "\n";
  out += "\nTensors are packed, row-major, outermost axis first; inputs and outputs do not overlap.\n";
  if (!d.reference.empty()) out += "\nIts meaning, in Python:\n\n```python\n" + utf8_head(d.reference, kReferenceText) + "\n```\n";
}

void add_milestone(std::string& out, const Workbench& bench) {
  const Milestone& m = bench.milestone();
  out +=
      "## Decisions to implement\n\nThey are the architect's: implement them, do not change them. A local one may take any value of its "
      "range.\n\n";
  std::set<std::string> said;  // the same evidence may stand behind every decision
  for (const Decision& d : m.decisions) {
    out += fmt::format("- **{} {} = {}**{}", d.id, d.name, d.choice, d.structural ? "" : " (local");
    if (!d.structural) out += (d.range.empty() ? "" : ": " + join(d.range, ", ")) + ")";
    if (!d.expected_effect.empty()) out += " - " + utf8_head(d.expected_effect, 200);
    out += "\n";
    for (std::size_t i = 0; i < d.evidence.size() && i < 2; ++i)
      if (said.insert(d.evidence[i].text).second)
        out += fmt::format("  {}: {}\n", d.evidence[i].observed ? "observed" : "supposed", utf8_head(d.evidence[i].text, 240));
    for (std::size_t i = 0; i < d.rejected.size() && i < 3; ++i)
      out += fmt::format("  not {}: {}\n", d.rejected[i].value, utf8_head(d.rejected[i].why, 160));
  }
  if (m.decisions.empty()) out += "None: how it is built is up to you.\n";
  const auto before = bench.branch_decisions();
  if (!before.empty()) {
    out += "\nBuilt on what the branch has, which chose:";
    for (const auto& [decision, value] : before) out += fmt::format(" {}={}", decision, value);
    out += "\n";
  }
  out += "\n## Accepted when\n\n- correct on every shape, hidden ones included\n";
  for (const auto& t : m.acceptance.mechanism.all)
    out +=
        fmt::format("- the image holds `{}`{} in {}: at least {}{}\n", t.mnemonic, t.operand.empty() ? "" : " with an operand " + t.operand,
                    t.scope == Scope::hot_loop ? "its hottest loops" : "its code", t.min, t.max ? fmt::format(", at most {}", *t.max) : "");
  if (const auto& p = m.acceptance.performance)
    out += fmt::format("- faster: T({}) / T >= {:.3f}, both timed in one job (noise floor {:.2f} %)\n", name(p->against), 1 + p->min_gain,
                       bench.noise_floor() * 100);
  else
    out += "- no speed is demanded; it is measured all the same\n";
}

void add_shapes(std::string& out, const Workbench& bench) {
  const TaskFile& t = bench.task_file();
  const auto at = t.timed_on.find(bench.machine().target.family);
  out += fmt::format("## Shapes\n\n- timed: {}\n", axes_text((at == t.timed_on.end() ? t.timed : at->second).axes));
  for (const Workload& w : t.workloads) out += fmt::format("- checked: {}\n", axes_text(w.axes));
  out +=
      "- checked too: shapes that are drawn anew and not shown. One build serves every shape; content is fresh in every call.\n\n## "
      "Tolerance\n\n";
  for (const JudgeRule& j : t.judges) {
    out += fmt::format("- `{}`: ", j.output);
    switch (j.kind) {
      case JudgeKind::scaled:
        out += fmt::format("|out - exact| <= {:.3g} + {:.3g} |exact| + {:.3g} s, s being the sum of the magnitudes that were added",
                           j.absolute, j.relative, j.tolerance);
        break;
      case JudgeKind::relative:
        out += fmt::format("|out - exact| <= {:.3g} + {:.3g} |exact|", j.absolute, j.tolerance);
        break;
      case JudgeKind::exact:
        out += "bit-equal to the exact result, rounded once";
        break;
      case JudgeKind::indexes:
        out += fmt::format("indices into `{}` whose elements are `{}`; none twice in a row", j.of, j.values);
        break;
    }
    out += "; exact is computed in double precision. NaN and Inf must stand where they stand in the exact result\n";
  }
}

constexpr const char* kPlanRules =
    "`launch.toml` says how the harness launches the kernel; a kernel has no host code. Keys: `format`, `target`, `requires` (list of "
    "conditions on axes), `[[let]]` name, value (integers; fields of forge_args), `[[workspace]]` name, bytes, init (poison, zero, clean), "
    "`[[launch]]` entry, grid, when, smem. Values are integers or strings with expressions: axes, lets, `sm_count`, "
    "`+ - * / %`, comparisons, `&& || ! ?:`, `min max ceil_div align_up`; in `grid` also `resident`. Launches run in order, with a barrier "
    "between.\n";
constexpr const char* kCpuRules =
    "One entry call is one block: `b->index` of `b->count`, run by `b->worker` of `b->workers` pinned threads; blocks do not communicate. "
    "`smem` is a worker's scratch in bytes (`b->scratch`, page-aligned, undefined at the start). The stack has 1 MiB. Tensors and "
    "workspaces are 64-byte aligned or better.\n\n"
    "Refused: writable or thread-local data, constructors, imports (no libc, no libm, no C++ run time; memcpy, memmove, memset, memcmp "
    "exist), "
    "functions of default visibility that no launch names (make helpers `static`), system calls, clocks, cpuid. Constant tables, "
    "templates, vector extensions, "
    "`immintrin.h` and inline assembly are fine.\n";
constexpr const char* kCudaRules =
    "An entry is `extern \"C\" __global__ void E(const __grid_constant__ forge_args a)`. A launch has `block` (threads), `smem` (dynamic "
    "shared bytes, to 227 KiB), "
    "`cluster`, `cooperative`, `pdl`; `[[map]]` gives TMA tensor maps (name, tensor, dims, strides, box, swizzle), fields `map_<name>` of "
    "forge_args.\n\n"
    "Refused: `__device__`, `__managed__` and static variables, printf, malloc, assert, calls through pointers, functions that no launch "
    "names. The toolkit's own headers and "
    "libcu++ (`<cuda/ptx>`, `<cuda/barrier>`) may be used; CUB, Thrust and CUTLASS are not there.\n";

void add_interface(std::string& out, const Workbench& bench) {
  const bool cuda = bench.machine().target.family == "cuda";
  out += fmt::format(
      "## The kernel\n\nTwo files: `{}` and `launch.toml`. The source includes `forge_args.h`, which is generated from the definition and "
      "the plan.\n\n",
      cuda ? "kernel.cu" : "kernel.cpp");
  for (const auto& [file, content] : starter_of(bench)) {
    const bool header = file == "forge_args.h", kernel = !header && file != "launch.toml";
    if (kernel && bench.branch_best()) continue;  // it is the agent's own work, and long
    std::string text = content;
    if (header) text = text.substr(0, text.find("static_assert"));  // the layout's checks say nothing new
    out += fmt::format(
        "{}:\n\n```{}\n{}```\n\n",
        header ? "forge_args.h, but for its checks" : file + (bench.branch_best() ? " of the branch's best" : ", to begin with"),
        file == "launch.toml" ? "toml" : "cpp", text);
  }
  out += kPlanRules;
  out += "\n";
  out += cuda ? kCudaRules : kCpuRules;
}

// An ablation: without it the reference stays sealed.
void add_reference(std::string& out, const Workbench& bench) {
  const auto shown = bench.shown_reference();
  if (!shown) return;
  out +=
      fmt::format("## The reference, which this run shows you\n\n```cpp\n{}\n```\n\n```toml\n{}\n```\n\n", shown->source, shown->plan_text);
}

void add_machine(std::string& out, const Workbench& bench) {
  const Machine& m = bench.machine();
  out += fmt::format("## The machine\n\n{}: {}, {} {}. Compiled with `{} {}`.\n\n", m.target.name, m.model, m.cores,
                     m.target.family == "cuda" ? "host cores" : "workers",
                     m.target.family == "cuda" ? "nvcc -std=c++17 -O3" : "g++ -std=c++20 -O3 -ffreestanding -ffp-contract=fast",
                     join(m.target.flags, " "));
  for (const auto& [property, value] : m.properties) out += fmt::format("{} = {}; ", property, value);
  const Ceilings& c = m.ceilings;
  if (c.gflops > 0) out += fmt::format("f32 FMA {:.0f} GFLOP/s; ", c.gflops);
  if (c.matrix_gflops > 0) out += fmt::format("f16 matrix units {:.0f} GFLOP/s; ", c.matrix_gflops);
  if (c.read_gbs > 0) out += fmt::format("reads {:.1f} GB/s, copies {:.1f} GB/s (both directions counted); ", c.read_gbs, c.copy_gbs);
  out += "caches are cold at the start of a call.\n";
}

void add_knowledge(std::string& out, const Workbench& bench) {
  std::set<std::string> cited;
  for (const Decision& d : bench.milestone().decisions) cited.insert(d.cites.begin(), d.cites.end());
  if (cited.empty()) return;
  out += "## Entries that the decisions cite\n\n";
  for (const auto& id : cited)
    for (const Entry& e : bench.search(id)) {
      if (e.id != id) continue;
      out += fmt::format("- **{}** ({}): {}\n", e.id, e.title, utf8_head(trim(e.mechanism), kEntryText));
      for (const auto& l : e.limitations) out += "  limitation: " + l + "\n";
    }
}

}  // namespace

std::string brief_of(const Workbench& bench) {
  const Milestone& m = bench.milestone();
  const BudgetLeft left = bench.left();
  std::string out = fmt::format(
      "# {} {}\n\nWrite the kernel of this milestone. It is done when a hand-in is accepted; hand-ins that are left: {}. Trying out with "
      "`build`, `check` and `time` is no hand-in. When it cannot be done, give up and say why.\n\n",
      m.id, m.title, left.hand_ins);
  add_milestone(out, bench);
  out += "\n";
  add_operator(out, bench);
  out += "\n";
  add_interface(out, bench);
  add_reference(out, bench);
  out += "\n";
  add_shapes(out, bench);
  out += "\n";
  add_machine(out, bench);
  out += "\n";
  add_knowledge(out, bench);
  return out;
}

}  // namespace forge
