// SPDX-License-Identifier: Apache-2.0
// Admission of a cubin and what its entries need, by its ELF and its 16-byte instructions alone. Rules, in the order they are
// checked; docs/formats/admission.md says them at length:
//   elf_format architecture                                          it can be read, and is for the target
//   import missing_entry extra_export                                what its symbols are
//   writable_state address_table relocation section_kind             what its sections are
//   code_size parameters block cluster instruction                   what its entries are
#include "build/cubin.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "build/build.h"
#include "build/elf_object.h"
#include "build/import_advice.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr std::uint8_t kEntryMark = 0x10;             // st_other of a __global__ function
constexpr std::uint8_t kTexture = 10, kSurface = 11;  // symbol types
// .nv.info attributes: a format, the attribute, then by format nothing, a value in two bytes, or a size and bytes.
constexpr std::uint8_t kHasBytes = 4;
constexpr std::uint8_t kMaxThreads = 0x05, kExterns = 0x0f, kRequiredThreads = 0x10, kFrameSize = 0x11, kParameterInfo = 0x17,
                       kRegisterCount = 0x2f, kClusterSize = 0x3d;
constexpr std::int64_t kReservedShared = 1024;  // bytes that the system has at the start of a block's shared memory, from sm_90 on
constexpr std::size_t kMaxCubinFindings = 8;
constexpr std::size_t kMaxCubinCodeBytes = std::size_t(16) << 20;

struct Attribute {
  std::uint8_t id = 0;
  std::vector<std::uint32_t> words;
};

std::vector<Attribute> attributes(std::string_view bytes) {
  std::vector<Attribute> out;
  for (std::size_t at = 0; at + 4 <= bytes.size();) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[at + i]); };
    const unsigned format = byte(0), size = byte(2) | byte(3) << 8u;
    Attribute a{.id = byte(1), .words = {}};
    at += 4;
    if (format == kHasBytes) {
      if (size > bytes.size() - at) break;
      a.words.resize(size / 4);
      if (!a.words.empty()) std::memcpy(a.words.data(), bytes.data() + at, a.words.size() * 4);
      at += size;
    } else {
      a.words = {size};
    }
    out.push_back(std::move(a));
  }
  return out;
}

// x * y * z of the three words, as far as they stand there.
std::uint64_t volume(const Attribute& a) {
  std::uint64_t v = 1;
  for (std::size_t i = 0; i < std::min<std::size_t>(a.words.size(), 3); ++i) v *= std::max(1u, a.words[i]) & 0xffffu;
  return v;
}

const ElfSection* section_of(const ElfObject& o, const std::string& name) {
  const auto it = std::find_if(o.sections.begin(), o.sections.end(), [&](const ElfSection& s) { return s.name == name; });
  return it == o.sections.end() ? nullptr : &*it;
}

bool is_entry(const ElfSymbol& s) { return s.type == STT_FUNC && (s.other & kEntryMark); }

std::string shown(std::string_view name) { return name.size() > 80 ? std::string(name.substr(0, 77)) + "..." : std::string(name); }

// Opcodes of the low 12 bits; the text says what nvdisasm prints for them.
const char* forbidden_instruction(unsigned opcode) {
  switch (opcode) {
    case 0x343:
    case 0x943:
    case 0xb43:
      return "CALL.ABS, a call to an address";
    case 0x344:
      return "CALL.REL by a register, an indirect call (function pointer or virtual function)";
    case 0x94a:
    case 0xb4a:
    case 0x94c:
      return "JMP, a jump to an address";
    default:
      return nullptr;
  }
}

class CubinAdmission {
 public:
  CubinAdmission(const ElfObject& object, const LaunchPlan& plan, std::size_t args_bytes, const TargetSpec& target)
      : m_object(object), m_plan(plan), m_args_bytes(args_bytes), m_target(target) {
    for (const auto* list : {&plan.prepare, &plan.launches})
      for (const LaunchSpec& l : *list) m_entries.insert(l.entry);
    m_known = {".nv.constant3", ".nv.shared.reserved.0"};
    for (const std::string& e : m_entries)
      for (const char* prefix : {".text.", ".nv.constant0.", ".nv.constant2.", ".nv.shared."}) m_known.insert(prefix + e);
  }

  void run() {
    check_architecture();
    for (const std::string& e : m_entries) check_entry_symbol(e);  // first: a launch that names what is not there is the plan's fault
    for (const ElfSymbol& s : m_object.symbols) check_symbol(s);
    check_states();
    for (const ElfSection& s : m_object.sections) check_section(s);
    for (const std::string& e : m_entries) check_entry(e);
  }
  const std::vector<AdmissionFailure>& findings() const { return m_findings; }

 private:
  void add(std::string rule, std::string detail) {
    if (m_findings.size() <= kMaxCubinFindings) m_findings.push_back({std::move(rule), std::move(detail)});
  }

  void check_architecture() {
    const std::string wanted = m_target.name.substr(m_target.name.find(':') + 1);  // "sm_90a"
    const std::string sm = fmt::format("sm_{}", cubin_sm(m_object));
    if (wanted != sm && wanted != sm + "a") return add("architecture", fmt::format("the image is for {}, the target is {}", sm, wanted));
    // sm_90 and sm_90a have equal flags: only what ptxas was told tells them apart.
    const ElfSection* note = section_of(m_object, ".note.nv.tkinfo");
    const std::size_t told = note ? note->bytes.find("-arch sm_") : std::string_view::npos;
    if (told == std::string_view::npos) return;
    std::string arch(note->bytes.substr(told + 6, 16));
    arch = arch.substr(0, arch.find_first_of(std::string_view(" \0", 2)));
    if (arch != wanted) add("architecture", fmt::format("the image was assembled for {}, the target is {}", arch, wanted));
  }

  void check_symbol(const ElfSymbol& s) {
    if (s.type == kTexture || s.type == kSurface)
      return add("import", fmt::format("'{}' is a texture or surface: read the tensor", shown(s.name)));
    if (s.section == SHN_COMMON) return add("writable_state", fmt::format("'{}' is a common variable", shown(s.name)));
    if (s.section == SHN_UNDEF && !s.name.empty() && !(s.binding == STB_WEAK && s.name.starts_with(".nv.reservedSmem.")))
      add("import", fmt::format("'{}' is not defined in the image; {}", shown(s.name), device_import_advice(s.name)));
    if (is_entry(s) && !m_entries.contains(std::string(s.name)))
      add("extra_export", fmt::format("'{}' is a kernel that no launch of the plan names; remove it, or add the launch", shown(s.name)));
  }

  void check_entry_symbol(const std::string& entry) {
    int found = 0;
    std::string near;
    for (const ElfSymbol& s : m_object.symbols) {
      if (!is_entry(s)) continue;
      if (s.name == entry && s.section != SHN_UNDEF && s.section < m_object.sections.size() &&
          m_object.sections[s.section].name == ".text." + entry && s.value == 0)
        ++found;
      else if (s.name.starts_with(fmt::format("_Z{}{}", entry.size(), entry)))
        near = fmt::format("; `{}` is there under its C++ name", entry);
    }
    if (found == 1) return;
    add("missing_entry",
        fmt::format("launch.toml names the entry `{0}`, which the image lacks{1}; write `extern \"C\" __global__ void {0}(const "
                    "__grid_constant__ forge_args p)`",
                    entry, near));
  }

  // Variables first: they say more than their sections' names.
  void check_states() {
    std::map<std::string_view, int> counted;
    for (const ElfSymbol& s : m_object.symbols) {
      if (s.type != STT_OBJECT || s.section == SHN_UNDEF || s.section >= m_object.sections.size()) continue;
      const ElfSection& in = m_object.sections[s.section];
      if (!in.name.starts_with(".nv.global")) continue;
      if (++counted[in.name] > 1) continue;
      m_said.insert(in.name);
      add("writable_state", fmt::format("'{}' in {} {}", shown(s.name), in.name, device_variable_advice(s.name)));
    }
  }

  void check_section(const ElfSection& s) {
    const std::string name(s.name);
    const bool relocations = s.type == SHT_RELA || s.type == SHT_REL;
    if (relocations) {
      if (s.size > 0 && !name.starts_with(".rela.debug") && !name.starts_with(".rel.debug") && m_findings.empty())
        add("relocation",
            fmt::format("{} is not empty: the driver would have to place addresses in it; the address of a variable or function "
                        "is kept in a table",
                        shown(name)));
      return;
    }
    if (s.size == 0) return;
    if (!s.allocated()) {
      if (name.starts_with(".nv.uft") || name.starts_with(".nv.udt"))
        add("address_table", name + " holds functions that are called indirectly");
      return;
    }
    if (m_known.contains(name)) {
      if (!m_seen.insert(name).second) add("section_kind", fmt::format("there are two sections {}", shown(name)));
      return;
    }
    if (m_said.contains(s.name)) return;
    // From Blackwell on the image also holds its code in a form that the driver may finalise; these mirror the sections above.
    if (m_target.name != "cuda:sm_90a" && (name.starts_with(".nv.merc.nv.constant.") || name.starts_with(".nv.merc.nv.shared."))) return;
    if (name.starts_with(".nv.global")) return add("writable_state", fmt::format("{} {}", name, device_variable_advice("")));
    if (name == ".nv.constant4")
      return add(
          "address_table",
          ".nv.constant4 holds addresses of variables or functions: use __sinf and __cosf for sinf and cosf; index a __constant__ array "
          "by name instead of through a pointer; call functions directly");
    if (name.starts_with(".text.")) return add("section_kind", fmt::format("{} is code of no entry of the plan", shown(name)));
    add("section_kind", fmt::format("section {} is no code, constant bank or shared memory of an entry", shown(name)));
  }

  void check_entry(const std::string& entry) {
    const ElfSection* info = section_of(m_object, ".nv.info." + entry);
    const ElfSection* text = section_of(m_object, ".text." + entry);
    if (!info || !text) {
      if (m_findings.empty()) add("parameters", fmt::format("the image says nothing of `{}`", entry));
      return;
    }
    int parameters = 0;
    for (const Attribute& a : attributes(info->bytes)) {
      if (a.id == kExterns && !a.words.empty() && m_findings.empty())
        add("import", fmt::format("`{}` uses external functions; {}", entry, device_import_advice("")));
      if (a.id == kParameterInfo && a.words.size() >= 3) {
        const std::uint32_t size = a.words.back() >> 18;
        if (++parameters == 1 && size != m_args_bytes)
          add("parameters", fmt::format("`{0}` takes {1} bytes, and forge_args has {2}; write `extern \"C\" __global__ void {0}(const "
                                        "__grid_constant__ forge_args p)`",
                                        entry, size, m_args_bytes));
      }
      for (const auto* list : {&m_plan.prepare, &m_plan.launches})
        for (const LaunchSpec& l : *list)
          if (l.entry == entry) check_launch(l, a);
    }
    if (parameters != 1)
      add("parameters",
          fmt::format("`{0}` takes {1} parameters instead of one; write `extern \"C\" __global__ void {0}(const __grid_constant__ "
                      "forge_args p)`",
                      entry, parameters));
    check_code(entry, *text);
  }

  void check_launch(const LaunchSpec& l, const Attribute& a) {
    if (a.words.empty()) return;
    const auto threads = static_cast<std::uint64_t>(l.block.value_or(0));
    if (a.id == kMaxThreads && volume(a) < threads)
      add("block", fmt::format("`{0}` is launched with {1} threads, and its __launch_bounds__ say {2}; write __launch_bounds__({1})",
                               l.entry, threads, volume(a)));
    if (a.id == kRequiredThreads && volume(a) != threads)
      add("block", fmt::format("`{}` is launched with {} threads, and requires {}", l.entry, threads, volume(a)));
    if (a.id == kClusterSize && volume(a) != static_cast<std::uint64_t>(l.cluster))
      add("cluster", fmt::format("`{}` is launched in clusters of {}, and its __cluster_dims__ say {}", l.entry, l.cluster, volume(a)));
  }

  void check_code(const std::string& entry, const ElfSection& text) {
    if (text.bytes.empty() || text.bytes.size() % 16)
      return add("section_kind", fmt::format("{} is empty, or no whole number of instructions", text.name));
    if (text.bytes.size() > kMaxCubinCodeBytes)
      return add("code_size",
                 fmt::format("`{}` has {} bytes of code; at most {}. Unroll less", entry, text.bytes.size(), kMaxCubinCodeBytes));
    for (std::size_t at = 0; at < text.bytes.size(); at += 16)
      if (const char* what = forbidden_instruction(sass_opcode(text.bytes, at)))
        return add("instruction", fmt::format("`{}`+{:#x}: {}; call functions by name", entry, at, what));
  }

  const ElfObject& m_object;
  const LaunchPlan& m_plan;
  std::size_t m_args_bytes;
  const TargetSpec& m_target;
  std::set<std::string> m_entries, m_known, m_seen;
  std::set<std::string_view> m_said;  // sections whose variable is named in a finding
  std::vector<AdmissionFailure> m_findings;
};

}  // namespace

int cubin_sm(const ElfObject& o) { return static_cast<int>(o.abi_version >= 8 ? o.flags >> 8 & 255 : o.flags & 255); }

unsigned sass_opcode(std::string_view code, std::size_t at) {
  return static_cast<unsigned char>(code[at]) | (static_cast<unsigned char>(code[at + 1]) & 0xfu) << 8;
}

tl::expected<void, AdmissionFailure> admit_cubin(const std::string& cubin, const LaunchPlan& plan, std::size_t args_bytes,
                                                 const TargetSpec& target) {
  const auto object = read_cubin(cubin);
  if (!object) return tl::unexpected(AdmissionFailure{"elf_format", object.error().message});
  CubinAdmission admission(*object, plan, args_bytes, target);
  admission.run();
  const auto& findings = admission.findings();
  if (findings.empty()) return {};
  AdmissionFailure first = findings.front();
  for (std::size_t i = 1; i < findings.size() && i < kMaxCubinFindings; ++i)
    first.detail += fmt::format("\nalso {}: {}", findings[i].rule, findings[i].detail);
  if (findings.size() > kMaxCubinFindings) first.detail += "\nand more";
  return tl::unexpected(std::move(first));
}

Result<std::vector<EntryResources>> cubin_resources(const std::string& cubin) {
  FORGE_TRY_ASSIGN(const ElfObject o, read_cubin(cubin));
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> by_symbol;  // registers, frame
  for (const ElfSection& s : o.sections)
    if (s.name == ".nv.info")
      for (const Attribute& a : attributes(s.bytes)) {
        if (a.words.size() < 2) continue;
        if (a.id == kRegisterCount) by_symbol[a.words[0]].first = a.words[1];
        if (a.id == kFrameSize) by_symbol[a.words[0]].second = a.words[1];
      }
  std::vector<EntryResources> out;
  for (std::size_t i = 0; i < o.symbols.size(); ++i) {
    if (!is_entry(o.symbols[i])) continue;
    EntryResources r{.entry = std::string(o.symbols[i].name)};
    if (const auto found = by_symbol.find(static_cast<std::uint32_t>(i)); found != by_symbol.end()) {
      r.registers = static_cast<int>(found->second.first & 0xffff);
      r.frame = found->second.second;
    }
    if (const ElfSection* s = section_of(o, ".nv.shared." + r.entry))
      r.static_shared = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::min<std::uint64_t>(s->size, 1u << 30)) - kReservedShared);
    if (const ElfSection* s = section_of(o, ".nv.info." + r.entry))
      for (const Attribute& a : attributes(s->bytes)) {
        if ((a.id == kMaxThreads || a.id == kRequiredThreads) && !a.words.empty())
          r.max_threads = static_cast<int>(std::min<std::uint64_t>(volume(a), 1024));
        if (a.id == kClusterSize && !a.words.empty()) r.cluster = static_cast<int>(std::min<std::uint64_t>(volume(a), 1024));
      }
    out.push_back(std::move(r));
  }
  std::sort(out.begin(), out.end(), [](const EntryResources& a, const EntryResources& b) { return a.entry < b.entry; });
  return out;
}

}  // namespace forge
