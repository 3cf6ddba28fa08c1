// SPDX-License-Identifier: Apache-2.0
// Admission of a relocatable x86-64 object by its ELF alone. Rules, in the order they are checked; docs/formats/admission.md
// says them at length:
//   elf_format                       it can be read at all
//   constructor thread_local writable_state section_kind    what its sections are
//   ifunc common import missing_entry extra_export          what its symbols are
//   relocation                       what the loader would have to change
//   instruction isa undecodable split_instruction           what its code holds
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "build/build.h"
#include "build/elf_object.h"
#include "build/import_advice.h"
#include "build/instruction_rules.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr std::string_view kImports[] = {"memcpy", "memmove", "memset", "memcmp"};
constexpr std::uint64_t kMaxAlign = 4096;
constexpr std::size_t kMaxFindings = 8;
// The sweep keeps some 70 bytes for an instruction; no honest kernel comes near a megabyte of code.
constexpr std::size_t kMaxCodeBytes = std::size_t(4) << 20;

bool may_import(std::string_view name) { return std::find(std::begin(kImports), std::end(kImports), name) != std::end(kImports); }

class Admission {
 public:
  Admission(const ElfObject& object, const LaunchPlan& plan) : m_object(object), m_plan(plan) {
    for (const auto* list : {&plan.prepare, &plan.launches})
      for (const LaunchSpec& l : *list) m_entries.insert(l.entry);
  }

  void run() {
    // Constructors first: the variable that they build is state too, but they say why.
    for (const ElfSection& s : m_object.sections) check_constructors(s);
    for (std::size_t i = 1; i < m_object.sections.size() && !full(); ++i) check_section(i);
    for (std::size_t i = 1; i < m_object.symbols.size() && !full(); ++i) check_symbol(m_object.symbols[i]);
    for (const std::string& entry : m_entries) check_entry(entry);
    sweep();
    for (const ElfRelocations& group : m_object.relocations) check_relocations(group);
    check_branches();
    for (auto& [rule, detail] : m_code_findings) add(rule, detail);
  }

  const std::vector<AdmissionFailure>& findings() const { return m_findings; }

 private:
  // Enough said: the search for names in messages is linear, and the object may be made to have millions of faults.
  bool full() const { return m_findings.size() > kMaxFindings || m_code_findings.size() > kMaxFindings; }
  void add(std::string rule, std::string detail) { m_findings.push_back({std::move(rule), std::move(detail)}); }

  const ElfSection& section_of(const ElfSymbol& s) const { return m_object.sections[s.section]; }
  bool in_section(const ElfSymbol& s) const { return s.section != SHN_UNDEF && s.section < SHN_LORESERVE; }

  // "`counter`": the first named variable of a section, for messages; else the section's own name.
  std::string variable_in(std::size_t section) const {
    for (const ElfSymbol& s : m_object.symbols)
      if (s.section == section && (s.type == STT_OBJECT || s.type == STT_TLS) && !s.name.empty())
        return fmt::format("`{}` in {}", s.name, m_object.sections[section].name);
    return fmt::format("section {}", m_object.sections[section].name);
  }

  // "`gemm`+0x1c": the function that holds an offset.
  std::string place(std::size_t section, std::uint64_t offset) const {
    const ElfSymbol* best = nullptr;
    for (const ElfSymbol& s : m_object.symbols)
      if (s.section == section && s.type == STT_FUNC && s.value <= offset && (!best || s.value > best->value)) best = &s;
    if (!best) return fmt::format("{}+{:#x}", m_object.sections[section].name, offset);
    return fmt::format("`{}`+{:#x}", best->name, offset - best->value);
  }

  void check_constructors(const ElfSection& s) {
    const std::string_view n = s.name;
    const bool runs_at_load = s.type == SHT_INIT_ARRAY || s.type == SHT_FINI_ARRAY || s.type == SHT_PREINIT_ARRAY || n == ".init" ||
                              n == ".fini" || n.starts_with(".ctors") || n.starts_with(".dtors") || n.starts_with(".init_array") ||
                              n.starts_with(".fini_array");
    if (s.size > 0 && runs_at_load)
      add("constructor", fmt::format("{} holds code to run at load or exit; nothing runs but the plan's entries: make the variable `static "
                                     "constexpr`, so that it needs no construction",
                                     n));
  }

  void check_section(std::size_t i) {
    const ElfSection& s = m_object.sections[i];
    if (s.size == 0) return;
    const std::string_view n = s.name;
    if (!s.allocated()) return;
    if (s.flags & SHF_TLS)
      return add("thread_local",
                 fmt::format("{} is thread-local; use the block's scratch (`smem` in launch.toml), or a local variable", variable_in(i)));
    if (s.type == SHT_NOBITS)
      return add("writable_state",
                 fmt::format("{} is state that would outlive a call; use a workspace (launch.toml) or a local variable", variable_in(i)));
    if (s.writable() && s.executable()) return add("writable_state", fmt::format("section {} is writable and executable", n));
    if (s.writable() && !n.starts_with(".data.rel.ro"))
      return add(
          "writable_state",
          fmt::format("{} can be written, so it would outlive a call; make it `const`, or use a workspace (launch.toml)", variable_in(i)));
    if (s.type != SHT_PROGBITS && s.type != SHT_X86_64_UNWIND)
      return add("section_kind", fmt::format("section {} has type {:#x}; only plain code and read-only data are placed", n, s.type));
    if (s.flags & SHF_COMPRESSED) return add("section_kind", fmt::format("section {} is compressed", n));
    if (s.align > kMaxAlign) return add("section_kind", fmt::format("section {} wants alignment {}; at most {}", n, s.align, kMaxAlign));
  }

  void check_symbol(const ElfSymbol& s) {
    const std::string_view n = s.name;
    if (s.type == STT_GNU_IFUNC)
      return add("ifunc", fmt::format("`{}` is chosen by code at load (ifunc, target_clones); write one version for the target, and `when` "
                                      "in launch.toml to choose by shape",
                                      n));
    if (s.binding != STB_LOCAL && s.binding != STB_GLOBAL && s.binding != STB_WEAK)
      return add("ifunc", fmt::format("`{}` has binding {}, which a loader would unify across images", n, s.binding));
    if (s.section == SHN_UNDEF) {
      if (n.empty() || may_import(n)) return;
      if (n == "_GLOBAL_OFFSET_TABLE_") return;  // only comes with relocations through it, which are refused with better words
      if (s.type == STT_TLS)
        return add("thread_local", fmt::format("`{}` is thread-local and defined elsewhere; a kernel has no thread-local data", n));
      return add("import", fmt::format("`{}` is not defined in the kernel; {}", n, import_advice(n)));
    }
    if (s.type == STT_TLS && in_section(s) && section_of(s).size == 0) return add("thread_local", fmt::format("`{}` is thread-local", n));
    if (s.section == SHN_COMMON || s.type == STT_COMMON)
      return add("common",
                 fmt::format("`{}` is a common variable, which is writable state; make it `const`, or use a workspace (launch.toml)", n));
    const bool absolute_file_name = s.section == SHN_ABS && s.type == STT_FILE && s.binding == STB_LOCAL;
    if (!in_section(s) && !absolute_file_name)
      return add("import", fmt::format("`{}` stands at a fixed address ({:#x}), outside the kernel", n, s.value));
    const bool exported = s.binding != STB_LOCAL && (s.visibility == STV_DEFAULT || s.visibility == STV_PROTECTED);
    if (exported && !m_entries.contains(std::string(n)))
      add("extra_export",
          fmt::format("`{}` is exported but no launch of the plan names it; make it `static`, or add the launch to launch.toml", n));
  }

  void check_entry(const std::string& entry) {
    std::string near;
    int found = 0;
    for (const ElfSymbol& s : m_object.symbols) {
      if (s.name == entry && s.section != SHN_UNDEF && in_section(s)) {
        if (s.type == STT_FUNC && s.binding == STB_GLOBAL && section_of(s).executable() && section_of(s).allocated())
          ++found;
        else
          near = fmt::format("; `{}` is there, but not as an external function", entry);
      } else if (s.type == STT_FUNC && s.name.starts_with("_Z") &&
                 s.name.find(fmt::format("{}{}", entry.size(), entry)) != std::string_view::npos) {
        near = fmt::format("; `{}` is there under its C++ name", entry);
      }
    }
    if (found == 1) return;
    add("missing_entry", fmt::format("launch.toml names the entry `{0}`, which the image lacks{1}; write `extern \"C\" void {0}(const "
                                     "forge_args*, const forge_block*)`",
                                     entry, near));
  }

  void sweep() {
    const bool allow_evex = m_plan.target.find("avx2") == std::string::npos;
    std::size_t code_bytes = 0;
    for (const ElfSection& s : m_object.sections)
      if (s.allocated() && s.executable()) code_bytes += s.bytes.size();
    if (code_bytes > kMaxCodeBytes)
      return add("code_size", fmt::format("{} bytes of code; at most {}. Unroll less", code_bytes, kMaxCodeBytes));
    for (std::size_t i = 1; i < m_object.sections.size(); ++i) {
      const ElfSection& s = m_object.sections[i];
      if (!s.allocated() || !s.executable() || s.bytes.empty()) continue;
      Sweep swept = sweep_instructions(s.bytes, allow_evex);
      for (const InstructionFinding& f : swept.findings)
        m_code_findings.emplace_back(f.rule, fmt::format("{}: {}", place(i, f.offset), f.what));
      m_swept.emplace(i, std::move(swept));
    }
    for (const std::string& entry : m_entries)
      for (const ElfSymbol& s : m_object.symbols)
        if (s.name == entry && in_section(s)) check_landing(s.section, s.value, "the entry", s.section, s.value);
  }

  // Code is entered at instructions that the sweep has seen, not in the middle of one.
  void check_landing(std::size_t section, std::uint64_t offset, const char* what, std::size_t from_section, std::uint64_t from_offset) {
    const auto swept = m_swept.find(section);
    if (swept == m_swept.end() || full() || swept->second.at(offset)) return;
    const std::string from = fmt::format("{} at {}", what, place(from_section, from_offset));
    if (offset >= m_object.sections[section].size)
      m_code_findings.emplace_back("split_instruction", fmt::format("{} leads out of section {}", from, m_object.sections[section].name));
    else
      m_code_findings.emplace_back(
          "split_instruction",
          fmt::format("{} leads into the middle of an instruction at {}, which hides what runs", from, place(section, offset)));
  }

  void check_branches() {
    for (const auto& [section, swept] : m_swept) {
      const auto changed = m_relocated.find(section);
      for (const SweptInstruction& x : swept.instructions) {
        if (!x.has_target) continue;
        if (changed != m_relocated.end() && changed->second.contains(x.offset)) continue;  // its target is the relocation's
        check_landing(section, x.target, "the jump", section, x.offset);
      }
    }
  }

  void check_relocations(const ElfRelocations& group) {
    const ElfSection& target = m_object.sections[group.target];
    if (!target.allocated()) return;  // debug data, never loaded
    if (!group.has_addends) return add("relocation", fmt::format("section {} has relocations without addends (SHT_REL)", target.name));
    for (const ElfRelocation& r : group.entries) {
      if (full()) return;
      check_relocation(group.target, r);
    }
  }

  void check_relocation(std::size_t section, const ElfRelocation& r) {
    const ElfSection& s = m_object.sections[section];
    const ElfSymbol& to = m_object.symbols[r.symbol];
    const auto where = [&] { return place(section, r.offset); };
    const bool relative = r.type == R_X86_64_PC32 || r.type == R_X86_64_PLT32;
    if (!relative && !(r.type == R_X86_64_64 && !s.executable()))
      return add("relocation", fmt::format("{}: relocation type {} against `{}` ({}) cannot be placed; {}", where(), r.type, to.name,
                                           relocation_name(r.type), relocation_advice(r.type)));
    const std::uint64_t width = relative ? 4 : 8;
    if (r.offset > s.size || width > s.size - r.offset)
      return add("relocation", fmt::format("{} lies outside section {}", where(), s.name));
    if (to.section == SHN_UNDEF) {
      if (!relative || !s.executable())
        return add("relocation", fmt::format("{}: the address of `{}` is taken; call it directly", where(), to.name));
    } else if (!in_section(to) || !section_of(to).allocated()) {
      return add("relocation", fmt::format("{} refers to `{}`, which is not loaded", where(), to.name));
    }
    if (s.executable())
      check_code_relocation(section, r, to);
    else if (r.type == R_X86_64_64 && in_section(to))
      check_landing(to.section, to.value + static_cast<std::uint64_t>(r.addend), "the pointer", section, r.offset);
  }

  // A relocation in code may change an instruction's displacement or immediate and nothing else: the sweep read the bytes
  // before the loader writes them.
  void check_code_relocation(std::size_t section, const ElfRelocation& r, const ElfSymbol& to) {
    const auto swept = m_swept.find(section);
    const SweptInstruction* x = swept == m_swept.end() ? nullptr : swept->second.covering(r.offset);
    const std::uint64_t field = x ? r.offset - x->offset : 0;
    if (!x || field == 0 || (field != x->displacement_at && field != x->immediate_at))
      return add("relocation", fmt::format("{}: a relocation would rewrite an instruction's opcode", place(section, r.offset)));
    m_relocated[section].insert(x->offset);
    if (to.section == SHN_UNDEF) return;
    const std::uint64_t after_field = x->length - field;
    check_landing(to.section, to.value + static_cast<std::uint64_t>(r.addend) + after_field, "the reference", section, r.offset);
  }

  const ElfObject& m_object;
  const LaunchPlan& m_plan;
  std::set<std::string> m_entries;
  std::map<std::size_t, Sweep> m_swept;                        // by section
  std::map<std::size_t, std::set<std::uint64_t>> m_relocated;  // offsets of instructions with a relocated field
  std::vector<AdmissionFailure> m_findings;
  std::vector<std::pair<std::string, std::string>> m_code_findings;  // said after the others
};

}  // namespace

tl::expected<void, AdmissionFailure> admit_cpu_object(const std::string& bytes, const LaunchPlan& plan) {
  const auto object = read_elf_object(bytes);
  if (!object) return tl::unexpected(AdmissionFailure{"elf_format", object.error().message});
  Admission admission(*object, plan);
  admission.run();
  const auto& findings = admission.findings();
  if (findings.empty()) return {};
  AdmissionFailure first = findings.front();
  for (std::size_t i = 1; i < findings.size() && i < kMaxFindings; ++i)
    first.detail += fmt::format("\nalso {}: {}", findings[i].rule, findings[i].detail);
  if (findings.size() > kMaxFindings) first.detail += fmt::format("\nand {} more", findings.size() - kMaxFindings);
  return tl::unexpected(std::move(first));
}

}  // namespace forge
