// SPDX-License-Identifier: Apache-2.0
// Instruction mix of an image or of sampled code. Hot loops are guessed from the code alone: the innermost loops that hold the
// most vector work. Counts are static: instructions, not executions.
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "build/build.h"
#include "build/elf_object.h"
#include "build/loops.h"
#include "build/x86_decoder.h"

namespace forge {

namespace {

const char* mnemonic_of(const CodeLine& l) {
  const char* text = ZydisMnemonicGetString(static_cast<ZydisMnemonic>(l.mnemonic));
  return text ? text : "?";
}

void count(const CodeLine& l, std::map<std::string, std::int64_t>& mnemonics, std::map<std::string, std::int64_t>& operands) {
  const std::string mnemonic = mnemonic_of(l);
  ++mnemonics[mnemonic];
  if (l.xmm) ++operands[mnemonic + " xmm"];
  if (l.ymm) ++operands[mnemonic + " ymm"];
  if (l.zmm) ++operands[mnemonic + " zmm"];
  if (l.mem) ++operands[mnemonic + " mem"];
}

std::string listing(const X86Decoder& decoder, const CodeRegion& region, const std::vector<std::uint32_t>& lines) {
  std::string out;
  X86Instruction x;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // The loop's end matters as much as its start: leave out the middle of a long one.
    if (lines.size() > kListingLines && i == kListingLines - 11) {
      const std::size_t skipped = lines.size() - kListingLines + 1;
      out += fmt::format("        ... {} more\n", skipped);
      i += skipped;
    }
    const CodeLine& l = region.lines[lines[i]];
    if (decoder.decode(region.bytes.substr(l.offset), x))
      out += fmt::format("{:6x}  {}\n", region.address + l.offset, decoder.text(x, region.address + l.offset));
  }
  return out;
}

LoopView view(const X86Decoder& decoder, const CodeRegion& region, const CodeLoop& loop) {
  LoopView v{.symbol = region.symbol, .offset = region.lines[loop.head].offset, .instructions = static_cast<int>(loop.lines.size())};
  for (const std::uint32_t i : loop.lines) {
    const CodeLine& l = region.lines[i];
    v.vector_instructions += l.is_vector();
    v.fma += l.fma;
    v.loads += l.load;
    v.stores += l.store;
    v.spills += l.stack_store;
  }
  v.listing = listing(decoder, region, loop.lines);
  return v;
}

std::vector<std::uint32_t> all_lines(const CodeRegion& region) {
  std::vector<std::uint32_t> lines(region.lines.size());
  std::iota(lines.begin(), lines.end(), 0u);
  return lines;
}

struct Found {
  const CodeRegion* region;
  CodeLoop loop;
};

// Of decoded regions. whole_regions: where no loop is seen, take each region whole; a sample around a hot place rarely holds a
// long loop's both ends.
InstructionMix mix_of(const X86Decoder& decoder, const std::vector<CodeRegion>& regions, bool whole_regions) {
  InstructionMix mix;
  std::vector<Found> found;
  for (const CodeRegion& region : regions) {
    mix.instructions += static_cast<std::int64_t>(region.lines.size());
    mix.undecoded += region.undecoded;
    for (const CodeLine& l : region.lines) {
      count(l, mix.mnemonics, mix.operands);
      mix.widest_vector_bits = std::max<int>(mix.widest_vector_bits, l.vector_bits);
    }
    for (CodeLoop& loop : innermost_loops(region)) found.push_back({&region, std::move(loop)});
  }
  const bool vector_loop = std::any_of(found.begin(), found.end(), [](const Found& f) { return f.loop.heat >= 1; });
  if (whole_regions && !vector_loop)
    for (const CodeRegion& region : regions)
      if (!region.lines.empty())
        found.push_back({&region, {.head = 0, .lines = all_lines(region), .heat = heat(region, all_lines(region))}});
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.loop.heat > b.loop.heat; });
  for (std::size_t i = 0; i < found.size() && i < kHotLoops; ++i) {
    if (i > 0 && found[i].loop.heat < 1 && found[0].loop.heat >= 1) break;  // scalar tails beside vector loops
    mix.loops.push_back(view(decoder, *found[i].region, found[i].loop));
    mix.spills += mix.loops.back().spills;
    for (const std::uint32_t k : found[i].loop.lines) count(found[i].region->lines[k], mix.hot, mix.hot_operands);
  }
  return mix;
}

// A region for each function, up to the next one; what lies before the first goes by the section's name.
void add_functions(const ElfObject& object, std::size_t section, std::vector<CodeRegion>& regions) {
  const ElfSection& s = object.sections[section];
  std::vector<std::pair<std::uint64_t, std::string_view>> starts = {{0, s.name}};
  for (const ElfSymbol& symbol : object.symbols)
    if (symbol.section == section && symbol.type == STT_FUNC && symbol.value < s.bytes.size())
      starts.emplace_back(symbol.value, symbol.name);
  std::stable_sort(starts.begin(), starts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::uint64_t end = i + 1 < starts.size() ? starts[i + 1].first : s.bytes.size();
    if (end == starts[i].first) continue;  // an alias, or a function at the very start
    regions.push_back(
        {.symbol = std::string(starts[i].second), .bytes = s.bytes.substr(starts[i].first, end - starts[i].first), .lines = {}});
  }
}

}  // namespace

Result<InstructionMix> disassemble_object(const std::string& bytes) {
  FORGE_TRY_ASSIGN(const ElfObject object, read_elf_object(bytes));
  std::vector<CodeRegion> regions;
  for (std::size_t i = 1; i < object.sections.size(); ++i)
    if (object.sections[i].allocated() && object.sections[i].executable()) add_functions(object, i, regions);
  const X86Decoder decoder;
  for (CodeRegion& region : regions) decode_region(decoder, region);
  return mix_of(decoder, regions, false);
}

InstructionMix disassemble_code(const std::vector<std::pair<std::uint64_t, std::string>>& code, const std::string& label,
                                const std::vector<std::uint64_t>& entries) {
  // Samples overlap: join what touches, so that nothing counts twice and a loop may span two of them.
  std::vector<std::pair<std::uint64_t, std::string>> joined = code;
  std::sort(joined.begin(), joined.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < joined.size(); ++i) {
    auto& [address, bytes] = joined[kept];
    const std::uint64_t past = joined[i].first - address;
    if (past > bytes.size()) {
      joined[++kept] = std::move(joined[i]);
      continue;
    }
    const std::size_t known = bytes.size() - past;
    if (joined[i].second.size() > known) bytes += joined[i].second.substr(known);
  }
  if (!joined.empty()) joined.resize(kept + 1);
  const X86Decoder decoder;
  std::vector<CodeRegion> regions;
  for (const auto& [address, bytes] : joined) {
    regions.push_back({.symbol = fmt::format("{}@{:#x}", label, address), .address = address, .bytes = bytes, .lines = {}});
    std::vector<std::uint64_t> offsets;
    for (const std::uint64_t entry : entries)
      if (entry - address < bytes.size()) offsets.push_back(entry - address);
    for (const auto& sample : code)
      if (sample.first - address < bytes.size()) offsets.push_back(sample.first - address);
    decode_reachable(decoder, regions.back(), offsets);
  }
  return mix_of(decoder, regions, true);
}

}  // namespace forge
