// SPDX-License-Identifier: Apache-2.0
// A listing becomes functions of lines; their loops are found as an x86 image's are (natural_loops.cc). A kernel that is fed by
// barriers spins on them inside its main loop: loops that only wait or take turns are taken out first, so that the loop around them
// is seen.
#include "build/sass.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "build/build.h"
#include "build/cubin.h"
#include "build/loops.h"
#include "util/process.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr double kSeconds = 60;
constexpr int kMatrixBits = 100 * 128, kWorkBits = 128;  // a matrix instruction is as hot as a hundred others

struct SassLine {
  std::uint64_t address = 0;
  std::string mnemonic, text;
  std::string label;                    // of a branch, as written
  std::optional<std::uint64_t> target;  // of a branch
  CodeLine::Flow flow = CodeLine::Flow::next;
};
struct SassFunction {
  std::string name;
  std::vector<SassLine> lines;
  std::map<std::string, std::uint64_t> labels;
};

bool starts(std::string_view s, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return s.starts_with(p); });
}
// The opcode itself, without modifiers.
bool is(std::string_view mnemonic, std::initializer_list<std::string_view> opcodes) {
  const std::string_view opcode = mnemonic.substr(0, mnemonic.find('.'));
  return std::find(opcodes.begin(), opcodes.end(), opcode) != opcodes.end();
}
bool is_matrix(std::string_view m) {
  return is(m, {"hgmma", "qgmma", "igmma", "bgmma", "hmma", "qmma", "imma", "bmma", "dmma"}) || starts(m, {"utc"});
}
bool is_sass_fma(std::string_view m) { return is(m, {"ffma", "ffma2", "hfma2", "dfma"}); }
bool is_arithmetic(std::string_view m) {
  return is_sass_fma(m) || is(m, {"fadd", "fadd2", "fmul", "fmul2", "hadd2", "hmul2", "dadd", "dmul", "mufu", "fmnmx", "hmnmx2"});
}
bool is_global(std::string_view m) { return is(m, {"ldg", "stg", "ld", "st", "ldgsts"}); }
bool is_load(std::string_view m) { return is(m, {"ldg", "lds", "ldsm", "ldl", "ld", "utmaldg", "ublkcp", "ldgsts", "ldtm"}); }
bool is_store(std::string_view m) {
  return is(m, {"stg", "sts", "stsm", "stl", "st", "utmastg", "utmaredg", "red", "redg", "atom", "atomg", "atoms", "sttm"});
}
bool is_spill(std::string_view m) { return is(m, {"stl", "ldl"}); }
bool is_work(std::string_view m) { return is_matrix(m) || is_arithmetic(m) || is_load(m) || is_store(m); }

CodeLine::Flow flow_of(std::string_view m, bool conditional) {
  using Flow = CodeLine::Flow;
  if (is(m, {"bra"})) return conditional || starts(m, {"bra.div", "bra.u", "bra.conv"}) ? Flow::conditional : Flow::jump;
  if (is(m, {"exit", "ret", "brx", "jmp", "jmx", "brxu", "jmxu", "kill"})) return conditional ? Flow::conditional : Flow::stop;
  return Flow::next;
}

std::optional<std::uint64_t> hex(std::string_view s) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, 16);
  if (error != std::errc() || end != s.data() + s.size() || s.empty()) return std::nullopt;
  return value;
}

// "        /*00b0*/               @P0 EXIT ;   /* 0x... */"; nothing for a line that is no instruction.
std::optional<SassLine> instruction(const std::string& line) {
  const std::size_t open = line.find_first_not_of(" \t");
  if (open == std::string::npos || line.compare(open, 2, "/*") != 0) return std::nullopt;
  const std::size_t close = line.find("*/", open + 2);
  if (close == std::string::npos) return std::nullopt;
  const auto address = hex(std::string_view(line).substr(open + 2, close - open - 2));
  const std::size_t end = line.find(';', close);
  if (!address || end == std::string::npos) return std::nullopt;
  SassLine out;
  out.address = *address;
  out.text = trim(line.substr(close + 2, end - close - 2));
  std::string_view rest = out.text;
  bool conditional = false;
  if (rest.starts_with("@")) {
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    conditional = true;
    rest.remove_prefix(std::min(rest.find_first_not_of(' ', space), rest.size()));
  }
  const std::size_t word = std::min(rest.find(' '), rest.size());
  for (const char c : rest.substr(0, word)) out.mnemonic += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (out.mnemonic.empty()) return std::nullopt;
  const std::string_view operands = rest.substr(word);
  if (is(out.mnemonic, {"bra"})) {
    if (const std::size_t tick = operands.find("`("); tick != std::string_view::npos) {
      out.label = operands.substr(tick + 2, operands.find(')', tick) - tick - 2);
      conditional |= trim(std::string(operands.substr(0, tick))).size() > 0;  // "BRA P1, `(...)"
    } else if (const std::size_t number = operands.find("0x"); number != std::string_view::npos) {
      std::string_view digits = operands.substr(number + 2);
      out.target = hex(digits.substr(0, digits.find_first_not_of("0123456789abcdefABCDEF")));
      conditional |= trim(std::string(operands.substr(0, number))).size() > 0;
    }
  }
  out.flow = flow_of(out.mnemonic, conditional);
  return out;
}

std::vector<SassFunction> parse(const std::string& listing) {
  std::vector<SassFunction> out;
  const auto begin = [&](std::string name) { out.push_back({.name = std::move(name), .lines = {}, .labels = {}}); };
  std::vector<std::string> pending;  // labels of the line to come
  for (const std::string& raw : split(listing, '\n')) {
    const std::string line = trim(raw);
    if (const std::size_t function = line.find("Function : "); function != std::string::npos) {  // cuobjdump
      begin(line.substr(function + 11));
    } else if (line.ends_with(":") && line.find(' ') == std::string::npos) {
      const std::string label = line.substr(0, line.size() - 1);
      if (label.starts_with(".L"))
        pending.push_back(label);
      else if (!label.starts_with("."))
        begin(label);
    } else if (auto i = instruction(raw)) {
      if (out.empty()) begin("code");
      for (std::string& label : pending) out.back().labels[std::move(label)] = i->address;
      pending.clear();
      out.back().lines.push_back(std::move(*i));
    }
  }
  for (SassFunction& f : out)
    for (SassLine& l : f.lines)
      if (const auto at = f.labels.find(l.label); !l.label.empty() && at != f.labels.end()) l.target = at->second;
  std::erase_if(out, [](const SassFunction& f) { return f.lines.empty(); });
  return out;
}

CodeRegion region_of(const SassFunction& f) {
  CodeRegion region{.symbol = f.name, .bytes = {}, .lines = {}};
  for (const SassLine& l : f.lines) {
    CodeLine c{.offset = l.address, .target = l.target.value_or(0), .length = 16};
    c.flow = l.flow;
    c.known_target = l.target.has_value() && l.flow != CodeLine::Flow::next;
    c.vector_bits = static_cast<std::uint16_t>(is_matrix(l.mnemonic) ? kMatrixBits : is_work(l.mnemonic) ? kWorkBits : 0);  // its heat
    region.lines.push_back(c);
  }
  // Addresses ascend in any listing of a disassembler; in others there is nothing to find.
  if (!std::is_sorted(region.lines.begin(), region.lines.end(), [](const CodeLine& a, const CodeLine& b) { return a.offset < b.offset; }))
    region.lines.clear();
  return region;
}

// What the compiler makes around one instruction that wants its operands in uniform registers: one lane is elected a turn.
bool is_turn_taking(const SassFunction& f, const CodeLoop& loop) {
  return loop.lines.size() <= 16 && loop.heat < 2 && std::any_of(loop.lines.begin(), loop.lines.end(), [&](std::uint32_t i) {
           return is(f.lines[i].mnemonic, {"vote", "voteu", "elect"});
         });
}

// Without its jumps back, so that the loop around it becomes an innermost one.
void take_out(CodeRegion& region, const CodeLoop& loop) {
  const std::uint64_t head = region.lines[loop.head].offset;
  for (const std::uint32_t i : loop.lines) {
    CodeLine& l = region.lines[i];
    if (!l.known_target || l.target != head) continue;
    l.flow = l.flow == CodeLine::Flow::conditional ? CodeLine::Flow::next : CodeLine::Flow::stop;
    l.known_target = false;
  }
}

// Innermost loops that do work; of a function with matrix instructions at least one that holds some, if any does.
std::vector<CodeLoop> working_loops(const SassFunction& f, CodeRegion& region) {
  const auto has_matrix = [&](std::uint32_t i) { return is_matrix(f.lines[i].mnemonic); };
  const bool matrix = std::any_of(f.lines.begin(), f.lines.end(), [](const SassLine& l) { return is_matrix(l.mnemonic); });
  std::vector<CodeLoop> out, inner;
  for (int round = 0; round < 12; ++round) {
    out.clear();
    bool changed = false;
    for (CodeLoop& loop : innermost_loops(region)) {
      if (loop.heat >= 1 && !is_turn_taking(f, loop)) {
        out.push_back(std::move(loop));
        continue;
      }
      take_out(region, loop);
      changed = true;
    }
    if (changed) continue;
    const bool found =
        std::any_of(out.begin(), out.end(), [&](const CodeLoop& l) { return std::any_of(l.lines.begin(), l.lines.end(), has_matrix); });
    if (!matrix || found || out.empty()) break;
    for (CodeLoop& loop : out) {
      take_out(region, loop);
      inner.push_back(std::move(loop));
    }
    out.clear();
  }
  out.insert(out.end(), std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
  return out;
}

int access_bits(const std::string& m) {
  if (!is_global(m)) return 0;
  int bits = 32;
  for (const std::string& part : split(m, '.')) {
    if (part == "256" || part == "128" || part == "64") bits = std::max(bits, std::atoi(part.c_str()));
    if (part == "u8" || part == "s8") bits = 8;
    if (part == "u16" || part == "s16") bits = 16;
  }
  return bits;
}

LoopView view(const SassFunction& f, const CodeLoop& loop) {
  LoopView v{.symbol = f.name,
             .offset = f.lines[loop.head].address - f.lines.front().address,
             .instructions = static_cast<int>(loop.lines.size())};
  const std::size_t count = loop.lines.size();
  for (std::size_t i = 0; i < count; ++i) {
    const SassLine& l = f.lines[loop.lines[i]];
    v.vector_instructions += is_matrix(l.mnemonic) || is_arithmetic(l.mnemonic);
    v.fma += is_sass_fma(l.mnemonic);
    v.loads += is_load(l.mnemonic);
    v.stores += is_store(l.mnemonic);
    v.spills += is_spill(l.mnemonic);
    // The loop's end matters as much as its start: leave out the middle of a long one.
    const std::size_t skip_from = kListingLines - 11, skip_to = count > kListingLines ? count - 10 : 0;
    if (count > kListingLines && i == skip_from) v.listing += fmt::format("        ... {} more\n", skip_to - skip_from);
    if (count <= kListingLines || i < skip_from || i >= skip_to) v.listing += fmt::format("{:6x}  {}\n", l.address, l.text);
  }
  return v;
}

InstructionMix mix_of(const std::vector<SassFunction>& functions) {
  InstructionMix mix;
  struct Found {
    const SassFunction* function;
    CodeLoop loop;
  };
  std::vector<Found> found;
  for (const SassFunction& f : functions) {
    for (const SassLine& l : f.lines) {
      if (l.mnemonic == "nop") continue;  // padding
      ++mix.instructions;
      ++mix.mnemonics[l.mnemonic];
      mix.widest_vector_bits = std::max(mix.widest_vector_bits, access_bits(l.mnemonic));
    }
    CodeRegion region = region_of(f);
    for (CodeLoop& loop : working_loops(f, region)) found.push_back({&f, std::move(loop)});
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.loop.heat > b.loop.heat; });
  for (std::size_t i = 0; i < std::min(found.size(), kHotLoops); ++i) {
    mix.loops.push_back(view(*found[i].function, found[i].loop));
    mix.spills += mix.loops.back().spills;
    for (const std::uint32_t k : found[i].loop.lines) ++mix.hot[found[i].function->lines[k].mnemonic];
  }
  return mix;
}

// A branch's displacement, in bytes from the next instruction: 48 bits from bit 34, eight below them at bit 16; words of four bytes.
std::int64_t displacement(std::uint64_t low, std::uint64_t high) {
  std::int64_t v = static_cast<std::int64_t>((low >> 34 | (high & 0x3ffff) << 30) << 16) >> 16;
  return (v * 256 + static_cast<std::int64_t>(low >> 16 & 0xff)) * 4;
}

}  // namespace

InstructionMix sass_mix(const std::string& listing) { return mix_of(parse(listing)); }

Result<InstructionMix> scan_cubin(const std::string& cubin) {
  FORGE_TRY_ASSIGN(const ElfObject object, read_cubin(cubin));
  std::vector<SassFunction> functions;
  std::int64_t unnamed = 0;
  for (const ElfSection& s : object.sections) {
    if (!s.allocated() || !s.executable() || !s.name.starts_with(".text.")) continue;
    SassFunction f{.name = std::string(s.name.substr(6)), .lines = {}, .labels = {}};
    for (std::size_t at = 0; at + 16 <= s.bytes.size(); at += 16) {
      std::uint64_t low = 0, high = 0;
      std::memcpy(&low, s.bytes.data() + at, 8);
      std::memcpy(&high, s.bytes.data() + at + 8, 8);
      const unsigned opcode = sass_opcode(s.bytes, at);
      const char* known = sass_opcode_name(opcode);
      SassLine l{.address = at, .mnemonic = known ? known : fmt::format("op_{:03x}", opcode), .text = {}, .label = {}, .target = {}};
      l.text = l.mnemonic;
      unnamed += !known;
      l.flow = flow_of(l.mnemonic, (low >> 12 & 15) != 7);
      if (is(l.mnemonic, {"bra"})) l.target = static_cast<std::uint64_t>(static_cast<std::int64_t>(at + 16) + displacement(low, high));
      f.lines.push_back(std::move(l));
    }
    functions.push_back(std::move(f));
  }
  InstructionMix mix = mix_of(functions);
  mix.undecoded = unnamed;
  mix.notes.push_back(
      "opcodes only, without modifiers, widths and operands: neither nvdisasm nor cuobjdump was found (pip install "
      "nvidia-cuda-nvdisasm, or the CUDA toolkit; FORGE_NVDISASM names it)");
  return mix;
}

SassTool find_sass_tool() {
  const auto is_cuobjdump = [](const fs::path& p) { return p.filename().string().starts_with("cuobjdump"); };
  const char* named = std::getenv("FORGE_NVDISASM");
  for (const char* candidate :
       {named ? named : "", "nvdisasm", "cuobjdump", "/usr/local/cuda/bin/nvdisasm", "/usr/local/cuda/bin/cuobjdump"})
    if (fs::path program = *candidate ? find_program(candidate) : fs::path(); !program.empty()) return {program, is_cuobjdump(program)};
  return {};
}

Result<InstructionMix> disassemble_cubin(const std::string& cubin) {
  const SassTool tool = find_sass_tool();
  if (tool.program.empty()) return scan_cubin(cubin);
  FORGE_TRY_ASSIGN(const TempDir folder, TempDir::make("forge-sass"));
  FORGE_TRY(write_file_atomic(folder.path() / "image.cubin", cubin));
  ProcessOptions o;
  o.argv = {tool.program.string(), tool.cuobjdump ? "-sass" : "-c", "image.cubin"};
  // cuobjdump calls nvdisasm.
  o.env = {"PATH=" + tool.program.parent_path().string() + ":/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"};
  o.cwd = folder.path();
  o.timeout_s = kSeconds;
  o.output_cap = std::size_t(256) << 20;
  const auto r = run_process(o);
  InstructionMix mix;
  if (r && !r->timed_out && !r->signal && r->exit_code == 0) mix = sass_mix(r->output);
  if (mix.instructions > 0) return mix;
  // The image is admitted already: a tool that fails on it is older than the compiler, or broken.
  FORGE_TRY_ASSIGN(mix, scan_cubin(cubin));
  mix.notes = {fmt::format("opcodes only, without modifiers, widths and operands: {} failed: {}", tool.program.string(),
                           r ? trim(r->output.substr(0, 200)) : r.error().text())};
  return mix;
}

Result<InstructionMix> disassemble_image(const Image& image, const TargetSpec& target) {
  return target.family == "cuda" ? disassemble_cubin(image.bytes) : disassemble_object(image.bytes);
}

}  // namespace forge
