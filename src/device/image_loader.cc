// SPDX-License-Identifier: Apache-2.0
// Places a relocatable object. The builder has admitted it, but a loader that trusts its input is a hole, so every offset is
// checked again here. Layout of one slot: guard | RX: code, then import stubs | guard | RO: constants | guard.
#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "device/cpu.h"
#include "device/image_memory.h"
#include "device/pages.h"

namespace forge {
namespace {

constexpr std::size_t k_slot = std::size_t(256) << 20;    // address room for one image
constexpr std::size_t k_largest = std::size_t(32) << 20;  // bytes of one segment
constexpr std::size_t k_image_guard = std::size_t(1) << 20;
constexpr std::size_t k_stub = 16;  // jmp *0(%rip); .quad target

struct Import {
  const char* name;
  void* address;
};
const Import k_imports[] = {
    {"memcpy", reinterpret_cast<void*>(&forge_image_memcpy)},
    {"memmove", reinterpret_cast<void*>(&forge_image_memmove)},
    {"memset", reinterpret_cast<void*>(&forge_image_memset)},
    {"memcmp", reinterpret_cast<void*>(&forge_image_memcmp)},
};

tl::unexpected<Error> refuse(const std::string& why) { return fail(Code::bad_input, "object: " + why); }

// Where a section ends up.
struct Placed {
  bool executable = false;
  std::size_t offset = 0, size = 0;
};

struct Loader {
  const std::string& object;
  std::vector<Elf64_Shdr> sections;
  std::vector<Elf64_Sym> symbols;
  std::string strings, section_names;
  std::map<std::size_t, Placed> placed;      // by section index
  std::size_t code_size = 0, data_size = 0;  // bytes used of each segment, stubs included in code
  std::size_t stubs_at = 0;
  std::byte* code = nullptr;
  std::byte* data = nullptr;

  template <class T>
  std::optional<T> read_at(std::uint64_t offset) const {
    if (offset > object.size() || object.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, object.data() + offset, sizeof value);
    return value;
  }
  std::optional<std::string> content(const Elf64_Shdr& s) const {
    if (s.sh_offset > object.size() || object.size() - s.sh_offset < s.sh_size) return std::nullopt;
    return object.substr(s.sh_offset, s.sh_size);
  }
  static std::string text_at(const std::string& table, std::size_t offset) {
    if (offset >= table.size()) return "";
    return std::string(table.data() + offset, strnlen(table.data() + offset, table.size() - offset));
  }

  Status read_tables() {
    const auto header = read_at<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return refuse("not an ELF file");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != EM_X86_64)
      return refuse("not a 64-bit x86 object");
    if (header->e_type != ET_REL) return refuse("not relocatable (compile with -c)");
    if (header->e_shentsize != sizeof(Elf64_Shdr)) return refuse("section headers of an unknown size");
    for (std::size_t i = 0; i < header->e_shnum; ++i) {
      const auto s = read_at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!s) return refuse("section header outside the file");
      sections.push_back(*s);
    }
    if (header->e_shstrndx >= sections.size()) return refuse("no section names");
    const auto names = content(sections[header->e_shstrndx]);
    if (!names) return refuse("section names outside the file");
    section_names = *names;
    for (const auto& s : sections) {
      if (s.sh_type != SHT_SYMTAB) continue;
      const auto table = content(s);
      if (!table || s.sh_entsize != sizeof(Elf64_Sym) || s.sh_link >= sections.size()) return refuse("broken symbol table");
      const auto names_of_symbols = content(sections[s.sh_link]);
      if (!names_of_symbols) return refuse("symbol names outside the file");
      strings = *names_of_symbols;
      symbols.resize(table->size() / sizeof(Elf64_Sym));
      if (!symbols.empty()) std::memcpy(symbols.data(), table->data(), symbols.size() * sizeof(Elf64_Sym));
      break;
    }
    return {};
  }

  Status lay_out() {
    for (std::size_t i = 0; i < sections.size(); ++i) {
      const Elf64_Shdr& s = sections[i];
      const std::string name = text_at(section_names, s.sh_name);
      if (!(s.sh_flags & SHF_ALLOC) || s.sh_size == 0) continue;
      if (s.sh_type == SHT_NOTE) continue;
      if (s.sh_flags & SHF_TLS) return refuse(fmt::format("section {}: thread-local data", name));
      if (s.sh_type != SHT_PROGBITS && s.sh_type != SHT_X86_64_UNWIND)
        return refuse(fmt::format("section {}: state or constructors", name));
      if ((s.sh_flags & SHF_WRITE) && name.rfind(".data.rel.ro", 0) != 0) return refuse(fmt::format("section {}: writable", name));
      if (!content(s)) return refuse(fmt::format("section {} outside the file", name));
      const std::size_t alignment = std::max<std::size_t>(s.sh_addralign, 1);
      if (alignment > k_page || (alignment & (alignment - 1)) != 0) return refuse(fmt::format("section {}: alignment {}", name, alignment));
      if (s.sh_size > k_largest) return refuse(fmt::format("section {}: {} bytes are too many", name, s.sh_size));
      Placed p;
      p.executable = (s.sh_flags & SHF_EXECINSTR) != 0;
      std::size_t& used = p.executable ? code_size : data_size;
      p.offset = align_up(used, alignment);
      p.size = s.sh_size;
      used = p.offset + p.size;
      if (used > k_largest) return refuse("more than 32 MiB of code or constants");
      placed[i] = p;
    }
    stubs_at = align_up(code_size, 64);
    code_size = stubs_at + std::size(k_imports) * k_stub;
    return {};
  }

  std::byte* address_of(const Placed& p) const { return (p.executable ? code : data) + p.offset; }

  Result<std::uint64_t> symbol_address(std::uint32_t index) const {
    if (index >= symbols.size()) return refuse("relocation against no symbol");
    const Elf64_Sym& s = symbols[index];
    const std::string name = text_at(strings, s.st_name);
    const unsigned type = ELF64_ST_TYPE(s.st_info);
    if (type == STT_TLS || type == STT_GNU_IFUNC) return refuse(fmt::format("symbol {}: thread-local or indirect", name));
    if (s.st_shndx == SHN_UNDEF) {
      for (std::size_t i = 0; i < std::size(k_imports); ++i)
        if (name == k_imports[i].name) return reinterpret_cast<std::uint64_t>(code + stubs_at + i * k_stub);
      return refuse(fmt::format("symbol {} is undefined, and a kernel has no libraries", name));
    }
    const auto at = placed.find(s.st_shndx);
    if (at == placed.end()) return refuse(fmt::format("symbol {} lies in no loaded section", name));
    if (s.st_value > at->second.size) return refuse(fmt::format("symbol {} outside its section", name));
    return reinterpret_cast<std::uint64_t>(address_of(at->second)) + s.st_value;
  }

  Status relocate() {
    for (const auto& s : sections) {
      if (s.sh_type == SHT_REL && s.sh_size && placed.count(s.sh_info)) return refuse("relocations without addends");
      if (s.sh_type != SHT_RELA || !placed.count(s.sh_info)) continue;
      const auto table = content(s);
      if (!table || s.sh_entsize != sizeof(Elf64_Rela)) return refuse("broken relocation table");
      const Placed& target = placed.at(s.sh_info);
      for (std::size_t i = 0; i + sizeof(Elf64_Rela) <= table->size(); i += sizeof(Elf64_Rela)) {
        Elf64_Rela r;
        std::memcpy(&r, table->data() + i, sizeof r);
        FORGE_TRY(apply(r, target));
      }
    }
    return {};
  }

  Status apply(const Elf64_Rela& r, const Placed& target) const {
    const auto type = ELF64_R_TYPE(r.r_info);
    const std::size_t width = type == R_X86_64_64 ? 8 : 4;
    if (type != R_X86_64_64 && type != R_X86_64_PC32 && type != R_X86_64_PLT32)
      return refuse(fmt::format("relocation type {} (only 64, PC32 and PLT32 are loaded)", type));
    if (type == R_X86_64_64 && target.executable) return refuse("an absolute address in code");
    if (r.r_offset > target.size || target.size - r.r_offset < width) return refuse("relocation outside its section");
    FORGE_TRY_ASSIGN(const std::uint64_t symbol, symbol_address(ELF64_R_SYM(r.r_info)));
    std::byte* where = address_of(target) + r.r_offset;
    const std::uint64_t value = symbol + static_cast<std::uint64_t>(r.r_addend);
    if (type == R_X86_64_64) {
      std::memcpy(where, &value, 8);
      return {};
    }
    const auto relative = static_cast<std::int64_t>(value - reinterpret_cast<std::uint64_t>(where));
    if (relative < std::numeric_limits<std::int32_t>::min() || relative > std::numeric_limits<std::int32_t>::max())
      return refuse("relocation out of reach");
    const auto narrow = static_cast<std::int32_t>(relative);
    std::memcpy(where, &narrow, 4);
    return {};
  }

  void write_sections_and_stubs() {
    for (const auto& [index, p] : placed) std::memcpy(address_of(p), object.data() + sections[index].sh_offset, p.size);
    for (std::size_t i = 0; i < std::size(k_imports); ++i) {
      const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
      std::memcpy(code + stubs_at + i * k_stub, jump, sizeof jump);
      std::memcpy(code + stubs_at + i * k_stub + sizeof jump, &k_imports[i].address, 8);
    }
  }
};

// Reserves `bytes` in a free slot of the image region; MAP_FAILED when there is none.
void* reserve_slot(std::size_t bytes) {
  constexpr std::uint64_t k_slots = (k_image_region_end - k_image_region_begin) / k_slot;
  static std::atomic<std::uint64_t> next{0};
  for (std::uint64_t tries = 0; tries < k_slots; ++tries) {
    const std::uint64_t address = k_image_region_begin + next.fetch_add(1) % k_slots * k_slot;
    void* p =
        mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p != MAP_FAILED || errno != EEXIST) return p;
  }
  return MAP_FAILED;
}

}  // namespace

struct LoadedImage::Impl {
  void* slot = nullptr;
  std::size_t slot_bytes = 0, code_bytes = 0;
  std::map<std::string, EntryPoint> entries;
  ~Impl() {
    if (slot) munmap(slot, slot_bytes);
  }
};

LoadedImage::LoadedImage(LoadedImage&&) noexcept = default;
LoadedImage& LoadedImage::operator=(LoadedImage&&) noexcept = default;
LoadedImage::~LoadedImage() = default;

Result<LoadedImage> LoadedImage::load(const std::string& object, const std::vector<std::string>& entries) {
  Loader loader{.object = object};
  FORGE_TRY(loader.read_tables());
  FORGE_TRY(loader.lay_out());

  const std::size_t code_bytes = align_up(loader.code_size, k_page);
  const std::size_t data_bytes = align_up(std::max<std::size_t>(loader.data_size, 1), k_page);
  LoadedImage image;
  image.m_impl = std::make_unique<Impl>();
  const std::size_t slot_bytes = code_bytes + data_bytes + 3 * k_image_guard;
  static_assert(2 * k_largest + 3 * k_image_guard + 2 * k_page <= k_slot);
  void* whole = reserve_slot(slot_bytes);
  if (whole == MAP_FAILED) return fail_errno("reserving room for an image", "", errno);
  image.m_impl->slot = whole;
  image.m_impl->slot_bytes = slot_bytes;
  image.m_impl->code_bytes = loader.code_size;
  loader.code = static_cast<std::byte*>(whole) + k_image_guard;
  loader.data = loader.code + code_bytes + k_image_guard;
  if (mprotect(loader.code, code_bytes, PROT_READ | PROT_WRITE) != 0 || mprotect(loader.data, data_bytes, PROT_READ | PROT_WRITE) != 0)
    return fail_errno("memory for an image", "", errno);
  std::memset(loader.code, 0xcc, code_bytes);  // int3: a jump astray traps
  loader.write_sections_and_stubs();
  FORGE_TRY(loader.relocate());
  if (mprotect(loader.code, code_bytes, PROT_READ | PROT_EXEC) != 0 || mprotect(loader.data, data_bytes, PROT_READ) != 0)
    return fail_errno("dropping write permission of an image", "", errno);

  for (const auto& name : entries) {
    for (std::uint32_t i = 1; i < loader.symbols.size(); ++i) {
      const Elf64_Sym& s = loader.symbols[i];
      if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || ELF64_ST_BIND(s.st_info) == STB_LOCAL || s.st_shndx == SHN_UNDEF) continue;
      if (Loader::text_at(loader.strings, s.st_name) != name) continue;
      const auto at = loader.placed.find(s.st_shndx);
      if (at == loader.placed.end() || !at->second.executable || s.st_value >= at->second.size)
        return refuse(fmt::format("entry {} is not in loaded code", name));
      image.m_impl->entries[name] = reinterpret_cast<EntryPoint>(loader.address_of(at->second) + s.st_value);
    }
    if (!image.m_impl->entries.count(name)) return refuse(fmt::format("entry {} is missing", name));
  }
  return image;
}

EntryPoint LoadedImage::entry(const std::string& name) const {
  const auto at = m_impl->entries.find(name);
  return at == m_impl->entries.end() ? nullptr : at->second;
}

std::size_t LoadedImage::code_bytes() const { return m_impl->code_bytes; }

}  // namespace forge
