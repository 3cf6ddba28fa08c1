// SPDX-License-Identifier: Apache-2.0
// Admission of a cubin and what its entries need, by its ELF and its 16-byte instructions alone (launch-plan.md section 5).
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "build/build.h"
#include "build/elf_object.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr std::uint8_t kEntryMark = 0x10;  // st_other of a __global__ function
// .nv.info attributes: format byte 4 (a size follows), then the attribute.
constexpr std::uint8_t kMaxThreads = 0x05, kExterns = 0x0f, kRequiredThreads = 0x10, kFrameSize = 0x11, kParameterInfo = 0x17,
                       kRegisterCount = 0x2f, kClusterSize = 0x3d;
constexpr unsigned kCallAbsolute = 0x343, kCallIndirect = 0x344;  // opcode: the low 12 bits of an instruction

struct Attribute {
  std::uint8_t id = 0;
  std::vector<std::uint32_t> words;
};
// Format 1 has no value, 2 and 3 have it in the two bytes of the size.
std::vector<Attribute> attributes(std::string_view bytes) {
  std::vector<Attribute> out;
  for (std::size_t at = 0; at + 4 <= bytes.size();) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[at + i]); };
    const unsigned format = byte(0), size = byte(2) | byte(3) << 8u;
    Attribute a{.id = byte(1), .words = {}};
    at += 4;
    if (format == 4) {
      if (size > bytes.size() - at) break;
      a.words.resize(size / 4);
      std::memcpy(a.words.data(), bytes.data() + at, a.words.size() * 4);
      at += size;
    } else {
      a.words = {size};
    }
    out.push_back(std::move(a));
  }
  return out;
}

const ElfSection* section_of(const ElfObject& o, const std::string& name) {
  const auto it = std::find_if(o.sections.begin(), o.sections.end(), [&](const ElfSection& s) { return s.name == name; });
  return it == o.sections.end() ? nullptr : &*it;
}

std::set<std::string> entries_in(const ElfObject& o) {
  std::set<std::string> out;
  for (const ElfSymbol& s : o.symbols)
    if (s.type == STT_FUNC && (s.other & kEntryMark)) out.emplace(s.name);
  return out;
}
std::set<std::string> entries_of(const LaunchPlan& plan) {
  std::set<std::string> out;
  for (const auto* list : {&plan.launches, &plan.prepare})
    for (const LaunchSpec& l : *list) out.insert(l.entry);
  return out;
}

std::string advice(std::string_view section) {
  if (section.starts_with(".nv.global"))
    return "; device variables keep state between calls: use workspace, shared memory or __constant__ (tables that are indexed at run time "
           "land here too: declare them __constant__)";
  if (section == ".nv.constant4")
    return "; addresses of device variables lie there, which keep state between calls: use workspace, shared memory or __constant__ (sinf, "
           "cosf and the like carry such tables: use __sinf, __cosf)";
  if (section.starts_with(".nv.uft") || section.starts_with(".nv.udt")) return "; functions are called indirectly";
  return "";
}

using Admitted = tl::expected<void, AdmissionFailure>;
tl::unexpected<AdmissionFailure> refuse(std::string rule, std::string detail) {
  return tl::unexpected(AdmissionFailure{std::move(rule), std::move(detail)});
}

Admitted admit_sections(const ElfObject& o, const std::set<std::string>& entries) {
  for (const ElfSection& s : o.sections) {
    if (!s.allocated() || s.size == 0) continue;
    bool known = s.name == ".nv.constant3" || s.name == ".nv.shared.reserved.0";
    for (const std::string& e : entries)
      for (const char* prefix : {".text.", ".nv.constant0.", ".nv.constant2.", ".nv.shared."}) known |= s.name == prefix + e;
    if (!known) return refuse("section", fmt::format("section {} is not allowed{}", s.name, advice(s.name)));
  }
  for (const ElfSection& s : o.sections)
    if ((s.type == SHT_RELA || s.type == SHT_REL) && s.size > 0 && s.name.find(".debug") == std::string_view::npos)
      return refuse("relocation", fmt::format("{} is not empty: the image is not fully linked", s.name));
  return {};
}

Admitted admit_symbols(const ElfObject& o, const std::set<std::string>& wanted) {
  for (const ElfSymbol& s : o.symbols)
    if (s.section == SHN_UNDEF && !s.name.empty() && s.name != ".nv.reservedSmem.offset0")
      return refuse("undefined", fmt::format("'{}' is not defined in the image: printf, malloc, assert and device-side launches are not "
                                             "available",
                                             s.name));
  const auto there = entries_in(o);
  for (const std::string& e : wanted)
    if (!there.count(e)) return refuse("missing_entry", fmt::format("the plan launches '{}', which the image does not define", e));
  for (const std::string& e : there)
    if (!wanted.count(e)) return refuse("extra_entry", fmt::format("the image defines '{}', which the plan does not launch", e));
  return {};
}

Admitted admit_entry(const ElfObject& o, const std::string& entry, std::size_t args_bytes, const LaunchPlan& plan) {
  const ElfSection* info = section_of(o, ".nv.info." + entry);
  if (!info) return refuse("info", "the image says nothing of " + entry);
  int parameters = 0;
  for (const Attribute& a : attributes(info->bytes)) {
    if (a.id == kExterns && !a.words.empty()) return refuse("externs", entry + " uses external functions");
    if (a.id == kParameterInfo && a.words.size() >= 3) {
      ++parameters;
      const std::uint32_t size = a.words.back() >> 18;
      if (size != args_bytes)
        return refuse("parameters",
                      fmt::format("{} takes {} bytes of parameters, forge_args has {}: it must be `extern \"C\" __global__ void "
                                  "{}(const __grid_constant__ forge_args)`",
                                  entry, size, args_bytes, entry));
    }
    for (const LaunchSpec& l : plan.launches) {
      if (l.entry != entry) continue;
      const int threads = l.block.value_or(0);
      if (a.id == kMaxThreads && !a.words.empty() && a.words[0] < unsigned(threads))
        return refuse("block", fmt::format("{} is launched with {} threads, its __launch_bounds__ say {}", entry, threads, a.words[0]));
      if (a.id == kRequiredThreads && !a.words.empty() && a.words[0] != unsigned(threads))
        return refuse("block", fmt::format("{} is launched with {} threads, and requires {}", entry, threads, a.words[0]));
      if (a.id == kClusterSize && !a.words.empty() && a.words[0] != unsigned(l.cluster))
        return refuse("cluster", fmt::format("{} is launched in clusters of {}, and declares {}", entry, l.cluster, a.words[0]));
    }
  }
  if (parameters != 1) return refuse("parameters", fmt::format("{} takes {} parameters instead of one forge_args", entry, parameters));
  const ElfSection* text = section_of(o, ".text." + entry);
  if (!text || text->size % 16) return refuse("code", entry + " has no code, or not a whole number of instructions");
  for (std::size_t at = 0; at + 16 <= text->bytes.size(); at += 16) {
    std::uint16_t low = 0;
    std::memcpy(&low, text->bytes.data() + at, 2);
    if (const unsigned opcode = low & 0xfff; opcode == kCallAbsolute || opcode == kCallIndirect)
      return refuse("call", fmt::format("{}+{:#x}: an absolute or indirect call", entry, at));
  }
  return {};
}

}  // namespace

tl::expected<void, AdmissionFailure> admit_cubin(const std::string& cubin, const LaunchPlan& plan, std::size_t args_bytes,
                                                 const TargetSpec& target) {
  const auto object = read_cubin(cubin);
  if (!object) return refuse("elf", object.error().message);
  const std::string sm = fmt::format("sm_{}", object->flags >> 8 & 255);
  if (!target.name.starts_with("cuda:" + sm))
    return refuse("architecture", fmt::format("the image is for {}, the target is {}", sm, target.name));
  const auto entries = entries_of(plan);
  if (auto ok = admit_symbols(*object, entries); !ok) return ok;
  if (auto ok = admit_sections(*object, entries); !ok) return ok;
  for (const std::string& e : entries)
    if (auto ok = admit_entry(*object, e, args_bytes, plan); !ok) return ok;
  return {};
}

Result<std::vector<EntryResources>> cubin_resources(const std::string& cubin) {
  FORGE_TRY_ASSIGN(const ElfObject o, read_cubin(cubin));
  std::vector<EntryResources> out;
  for (const std::string& e : entries_in(o)) {
    EntryResources r{.entry = e};
    if (const ElfSection* s = section_of(o, ".nv.shared." + e)) r.static_shared = static_cast<std::int64_t>(s->size);
    if (const ElfSection* s = section_of(o, ".nv.info." + e))
      for (const Attribute& a : attributes(s->bytes)) {
        if ((a.id == kMaxThreads || a.id == kRequiredThreads) && !a.words.empty()) r.max_threads = static_cast<int>(a.words[0]);
        if (a.id == kClusterSize && !a.words.empty()) r.cluster = static_cast<int>(a.words[0]);
      }
    if (const ElfSection* s = section_of(o, ".nv.info"))
      for (const Attribute& a : attributes(s->bytes)) {
        if (a.words.size() < 2 || a.words[0] >= o.symbols.size() || o.symbols[a.words[0]].name != e) continue;
        if (a.id == kRegisterCount) r.registers = static_cast<int>(a.words[1]);
        if (a.id == kFrameSize) r.frame = a.words[1];
      }
    out.push_back(r);
  }
  return out;
}

}  // namespace forge
