// SPDX-License-Identifier: Apache-2.0
// A reader for relocatable x86-64 objects and cubins that trusts nothing: they come from foreign source, so every offset, index
// and name is checked before it is followed. The views point into the bytes given, which must outlive them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.h"

namespace forge {

struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint64_t flags = 0, size = 0, align = 0, entry_size = 0;
  std::uint32_t link = 0, info = 0;
  std::string_view bytes;  // empty for NOBITS
  bool allocated() const;
  bool writable() const;
  bool executable() const;
};

struct ElfSymbol {
  std::string_view name;
  std::uint8_t type = 0, binding = 0, visibility = 0, other = 0;  // other: st_other whole
  std::uint16_t section = 0;                                      // as in the file: 0 undefined, 0xfff1 absolute, 0xfff2 common
  std::uint64_t value = 0, size = 0;
};

struct ElfRelocation {
  std::uint64_t offset = 0;
  std::uint32_t type = 0, symbol = 0;
  std::int64_t addend = 0;
};

struct ElfRelocations {
  std::uint32_t target = 0;  // index of the section that they change
  bool has_addends = true;   // false: SHT_REL, kept empty
  std::vector<ElfRelocation> entries;
};

struct ElfObject {
  std::uint32_t flags = 0;  // e_flags
  std::uint8_t abi_version = 0;
  std::vector<ElfSection> sections;  // index as in the file
  std::vector<ElfSymbol> symbols;    // index as in the file
  std::vector<ElfRelocations> relocations;
};

// Checks that it is a little-endian ELF64 x86-64 ET_REL file with one symbol table at most.
Result<ElfObject> read_elf_object(std::string_view bytes);
// The same for a linked cubin (machine 190, ET_EXEC). Relocations are not read: a cubin must have none.
Result<ElfObject> read_cubin(std::string_view bytes);

}  // namespace forge
