// SPDX-License-Identifier: Apache-2.0
#include "build/elf_object.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>

namespace forge {

namespace {

constexpr std::size_t kMaxSections = 20000;  // template-heavy sources make hundreds

tl::unexpected<Error> malformed(const std::string& what) { return fail(Code::bad_input, "malformed object: " + what); }

// A bounded copy, as the file need not be aligned.
template <class T>
std::optional<T> load(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::optional<std::string_view> slice(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.substr(offset, size);
}

std::optional<std::string_view> string_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const std::string_view rest = table.substr(offset);
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

constexpr int kMachineCuda = 190;

Result<Elf64_Ehdr> read_header(std::string_view bytes, bool cubin) {
  const auto header = load<Elf64_Ehdr>(bytes, 0);
  if (!header) return malformed("shorter than an ELF header");
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return malformed("no ELF magic");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_ident[EI_VERSION] != EV_CURRENT)
    return malformed("not a 64-bit little-endian ELF file");
  if (header->e_shentsize != sizeof(Elf64_Shdr)) return malformed("unexpected size of a section header");
  if (cubin) {
    if (header->e_machine != kMachineCuda) return malformed(fmt::format("machine {} is not an NVIDIA GPU", header->e_machine));
    if (header->e_type != ET_EXEC)
      return malformed(fmt::format("type {} is not a linked cubin (ET_EXEC): separate compilation?", header->e_type));
    return *header;
  }
  if (header->e_machine != EM_X86_64) return malformed(fmt::format("machine {} is not x86-64", header->e_machine));
  if (header->e_type != ET_REL) return malformed(fmt::format("type {} is not a relocatable object (ET_REL)", header->e_type));
  if (header->e_phnum != 0) return malformed("program headers in a relocatable object");
  return *header;
}

Result<std::vector<ElfSection>> read_sections(std::string_view bytes, const Elf64_Ehdr& header) {
  std::uint64_t count = header.e_shnum;
  std::uint64_t names_index = header.e_shstrndx;
  if (count == 0 || names_index == SHN_XINDEX) {  // more than 65,279 sections keep their number in section 0
    return malformed(header.e_shoff == 0 ? "no section table" : "extended section numbering");
  }
  if (count > kMaxSections) return malformed(fmt::format("{} sections (at most {})", count, kMaxSections));
  if (names_index >= count) return malformed("the section names are outside the section table");
  const auto table = slice(bytes, header.e_shoff, count * sizeof(Elf64_Shdr));
  if (!table) return malformed("the section table runs past the end");
  const auto raw = [&](std::uint64_t i) { return *load<Elf64_Shdr>(*table, i * sizeof(Elf64_Shdr)); };
  const Elf64_Shdr names_header = raw(names_index);
  const auto names = slice(bytes, names_header.sh_offset, names_header.sh_size);
  if (names_header.sh_type != SHT_STRTAB || !names) return malformed("the section names are not a string table");
  std::vector<ElfSection> out;
  out.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Elf64_Shdr h = raw(i);
    ElfSection s{.name = {},
                 .type = h.sh_type,
                 .flags = h.sh_flags,
                 .size = h.sh_size,
                 .align = h.sh_addralign,
                 .entry_size = h.sh_entsize,
                 .link = h.sh_link,
                 .info = h.sh_info,
                 .bytes = {}};
    const auto name = string_at(*names, h.sh_name);
    if (!name) return malformed(fmt::format("section {} has no name", i));
    s.name = *name;
    if (h.sh_type != SHT_NOBITS && h.sh_type != SHT_NULL) {
      const auto content = slice(bytes, h.sh_offset, h.sh_size);
      if (!content) return malformed(fmt::format("section {} ({}) runs past the end", i, s.name));
      s.bytes = *content;
    }
    if (h.sh_addralign & (h.sh_addralign - 1) && h.sh_addralign != 0)
      return malformed(fmt::format("section {} ({}): alignment {} is no power of two", i, s.name, h.sh_addralign));
    out.push_back(s);
  }
  return out;
}

Result<std::vector<ElfSymbol>> read_symbols(const std::vector<ElfSection>& sections, std::size_t& table_index) {
  std::vector<ElfSymbol> out;
  table_index = 0;
  for (std::size_t i = 1; i < sections.size(); ++i) {
    const ElfSection& s = sections[i];
    if (s.type == SHT_DYNSYM || s.type == SHT_DYNAMIC) return malformed("dynamic linking data in a relocatable object");
    if (s.type == SHT_SYMTAB_SHNDX) return malformed("extended section numbering");
    if (s.type != SHT_SYMTAB) continue;
    if (table_index) return malformed("two symbol tables");
    table_index = i;
    if (s.entry_size != sizeof(Elf64_Sym) || s.bytes.size() % sizeof(Elf64_Sym)) return malformed("unexpected size of a symbol");
    if (s.link >= sections.size() || sections[s.link].type != SHT_STRTAB) return malformed("the symbol names are not a string table");
    const std::size_t count = s.bytes.size() / sizeof(Elf64_Sym);
    out.reserve(count);
    for (std::size_t k = 0; k < count; ++k) {
      const Elf64_Sym raw = *load<Elf64_Sym>(s.bytes, k * sizeof(Elf64_Sym));
      ElfSymbol symbol{.name = {},
                       .type = static_cast<std::uint8_t>(ELF64_ST_TYPE(raw.st_info)),
                       .binding = static_cast<std::uint8_t>(ELF64_ST_BIND(raw.st_info)),
                       .visibility = static_cast<std::uint8_t>(ELF64_ST_VISIBILITY(raw.st_other)),
                       .other = raw.st_other,
                       .section = raw.st_shndx,
                       .value = raw.st_value,
                       .size = raw.st_size};
      const auto name = string_at(sections[s.link].bytes, raw.st_name);
      if (!name) return malformed(fmt::format("symbol {} has no name", k));
      symbol.name = *name;
      if (raw.st_shndx < SHN_LORESERVE && raw.st_shndx >= sections.size())
        return malformed(fmt::format("symbol {} ({}) is in section {}, of {}", k, symbol.name, raw.st_shndx, sections.size()));
      if (raw.st_shndx != SHN_UNDEF && raw.st_shndx < SHN_LORESERVE && symbol.type != STT_TLS) {
        const std::uint64_t room = sections[raw.st_shndx].size;
        if (symbol.value > room || symbol.size > room - symbol.value)
          return malformed(fmt::format("symbol {} ({}) runs past the end of its section", k, symbol.name));
      }
      out.push_back(symbol);
    }
  }
  return out;
}

Result<std::vector<ElfRelocations>> read_relocations(const ElfObject& object, std::size_t symbol_table) {
  std::vector<ElfRelocations> out;
  for (std::size_t i = 1; i < object.sections.size(); ++i) {
    const ElfSection& s = object.sections[i];
    if (s.type != SHT_RELA && s.type != SHT_REL) continue;
    if (s.info == 0 || s.info >= object.sections.size())
      return malformed(fmt::format("{} changes section {}, which does not exist", s.name, s.info));
    if (s.link != symbol_table || symbol_table == 0) return malformed(fmt::format("{} uses another symbol table", s.name));
    ElfRelocations group{.target = s.info, .has_addends = s.type == SHT_RELA, .entries = {}};
    if (group.has_addends) {
      if (s.entry_size != sizeof(Elf64_Rela) || s.bytes.size() % sizeof(Elf64_Rela))
        return malformed(fmt::format("{}: unexpected size of a relocation", s.name));
      const std::size_t count = s.bytes.size() / sizeof(Elf64_Rela);
      group.entries.reserve(count);
      for (std::size_t k = 0; k < count; ++k) {
        const Elf64_Rela raw = *load<Elf64_Rela>(s.bytes, k * sizeof(Elf64_Rela));
        ElfRelocation r{.offset = raw.r_offset,
                        .type = static_cast<std::uint32_t>(ELF64_R_TYPE(raw.r_info)),
                        .symbol = static_cast<std::uint32_t>(ELF64_R_SYM(raw.r_info)),
                        .addend = raw.r_addend};
        if (r.symbol >= object.symbols.size())
          return malformed(fmt::format("{}: relocation {} names symbol {}, of {}", s.name, k, r.symbol, object.symbols.size()));
        group.entries.push_back(r);
      }
    }
    out.push_back(std::move(group));
  }
  return out;
}

}  // namespace

bool ElfSection::allocated() const { return flags & SHF_ALLOC; }
bool ElfSection::writable() const { return flags & SHF_WRITE; }
bool ElfSection::executable() const { return flags & SHF_EXECINSTR; }

Result<ElfObject> read_elf_object(std::string_view bytes) {
  ElfObject object;
  FORGE_TRY_ASSIGN(const Elf64_Ehdr header, read_header(bytes, false));
  FORGE_TRY_ASSIGN(object.sections, read_sections(bytes, header));
  std::size_t symbol_table = 0;
  FORGE_TRY_ASSIGN(object.symbols, read_symbols(object.sections, symbol_table));
  FORGE_TRY_ASSIGN(object.relocations, read_relocations(object, symbol_table));
  return object;
}

Result<ElfObject> read_cubin(std::string_view bytes) {
  ElfObject object;
  FORGE_TRY_ASSIGN(const Elf64_Ehdr header, read_header(bytes, true));
  object.flags = header.e_flags;
  object.abi_version = header.e_ident[EI_ABIVERSION];
  FORGE_TRY_ASSIGN(object.sections, read_sections(bytes, header));
  std::size_t symbol_table = 0;
  FORGE_TRY_ASSIGN(object.symbols, read_symbols(object.sections, symbol_table));
  return object;
}

}  // namespace forge
