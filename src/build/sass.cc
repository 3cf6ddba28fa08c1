// SPDX-License-Identifier: Apache-2.0
// SASS as nvdisasm prints it, as an instruction mix. Mnemonics are lower-case opcodes with their modifiers. A loop is what lies
// between a label and a jump back to it, when no other such span lies within.
#include "build/sass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "build/build.h"
#include "util/process.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr std::size_t kHotLoops = 4, kListing = 60;
constexpr double kSeconds = 30;

struct SassLine {
  std::string mnemonic, text;
  std::string target;  // of a jump, a label
};
struct SassFunction {
  std::string name;
  std::vector<SassLine> lines;
  std::map<std::string, std::size_t> labels;  // index of the line behind it
};

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

bool starts(const std::string& s, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const char* p) { return s.starts_with(p); });
}
bool is_matrix(const std::string& m) { return starts(m, {"hgmma", "qgmma", "igmma", "hmma", "imma", "dmma"}); }
bool is_fma(const std::string& m) { return starts(m, {"ffma", "hfma2", "dfma"}); }
bool is_load(const std::string& m) { return starts(m, {"ldg", "lds", "ldsm", "ldl", "ld.", "utmaldg", "ublkcp", "ldgsts"}); }
bool is_store(const std::string& m) { return starts(m, {"stg", "sts", "stsm", "stl", "st.", "utmastg", "red", "utmared"}); }
bool is_spill(const std::string& m) { return starts(m, {"stl", "ldl"}); }

// "        /*00b0*/               @P0 EXIT ;" -> mnemonic "exit"; nothing for a line that is no instruction.
std::optional<SassLine> instruction(const std::string& line) {
  const std::size_t open = line.find("/*"), close = line.find("*/");
  if (open == std::string::npos || close == std::string::npos || line.find_first_not_of(' ') != open) return std::nullopt;
  std::string rest = trim(line.substr(close + 2));
  if (const std::size_t end = rest.find(';'); end != std::string::npos) rest = trim(rest.substr(0, end));
  if (rest.empty()) return std::nullopt;
  SassLine out{.mnemonic = {}, .text = rest, .target = {}};
  std::istringstream words(rest);
  std::string word;
  words >> word;
  if (word.starts_with("@")) words >> word;
  out.mnemonic = lower(word);
  if (const std::size_t label = rest.find("`("); out.mnemonic.starts_with("bra") && label != std::string::npos)
    out.target = rest.substr(label + 2, rest.find(')', label) - label - 2);
  return out;
}

std::vector<SassFunction> parse(const std::string& text) {
  std::vector<SassFunction> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".text.") && line.ends_with(":")) {
      out.push_back({.name = line.substr(6, line.size() - 7), .lines = {}, .labels = {}});
    } else if (!out.empty() && line.starts_with(".L_") && line.ends_with(":")) {
      out.back().labels[line.substr(0, line.size() - 1)] = out.back().lines.size();
    } else if (auto i = out.empty() ? std::nullopt : instruction(line); i && i->mnemonic != "nop") {
      out.back().lines.push_back(std::move(*i));
    }
  }
  return out;
}

struct Span {
  const SassFunction* function;
  std::size_t begin, end;  // lines [begin, end]
  double heat = 0;
};

std::vector<Span> innermost(const SassFunction& f) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i < f.lines.size(); ++i) {
    const auto label = f.labels.find(f.lines[i].target);
    if (label != f.labels.end() && label->second <= i && label->second < i) spans.push_back({&f, label->second, i});
  }
  std::vector<Span> out;
  for (const Span& s : spans) {
    const bool holds_another = std::any_of(spans.begin(), spans.end(), [&](const Span& o) {
      return (o.begin > s.begin || o.end < s.end) && o.begin >= s.begin && o.end <= s.end;
    });
    if (!holds_another) out.push_back(s);
  }
  for (Span& s : out)
    for (std::size_t i = s.begin; i <= s.end; ++i) {
      const std::string& m = f.lines[i].mnemonic;
      s.heat += is_matrix(m) ? 100 : is_fma(m) || is_load(m) || is_store(m) ? 1 : 0.1;
    }
  return out;
}

LoopView view(const Span& s) {
  LoopView v{.symbol = s.function->name, .offset = s.begin * 16};
  for (std::size_t i = s.begin; i <= s.end; ++i) {
    const SassLine& l = s.function->lines[i];
    ++v.instructions;
    v.vector_instructions += is_matrix(l.mnemonic) || is_fma(l.mnemonic);
    v.fma += is_fma(l.mnemonic);
    v.loads += is_load(l.mnemonic);
    v.stores += is_store(l.mnemonic);
    v.spills += is_spill(l.mnemonic);
    if (i - s.begin < kListing) v.listing += l.text + "\n";
  }
  return v;
}

int access_bits(const std::string& m) {
  if (!starts(m, {"ldg", "stg", "lds", "sts", "ld.", "st."})) return 0;
  for (const int bits : {256, 128, 64})
    if (m.find("." + std::to_string(bits)) != std::string::npos) return bits;
  return 32;
}

}  // namespace

InstructionMix sass_mix(const std::string& nvdisasm_text) {
  const auto functions = parse(nvdisasm_text);
  InstructionMix mix;
  std::vector<Span> loops;
  for (const SassFunction& f : functions) {
    for (const SassLine& l : f.lines) {
      ++mix.instructions;
      ++mix.mnemonics[l.mnemonic];
      mix.widest_vector_bits = std::max(mix.widest_vector_bits, access_bits(l.mnemonic));
    }
    for (const Span& s : innermost(f)) loops.push_back(s);
  }
  std::stable_sort(loops.begin(), loops.end(), [](const Span& a, const Span& b) { return a.heat > b.heat; });
  for (std::size_t i = 0; i < std::min(loops.size(), kHotLoops); ++i) {
    mix.loops.push_back(view(loops[i]));
    mix.spills += mix.loops.back().spills;
    for (std::size_t k = loops[i].begin; k <= loops[i].end; ++k) ++mix.hot[loops[i].function->lines[k].mnemonic];
  }
  return mix;
}

fs::path find_nvdisasm() {
  const char* named = std::getenv("FORGE_NVDISASM");
  for (const char* candidate : {named ? named : "", "nvdisasm", "/usr/local/cuda/bin/nvdisasm"})
    if (fs::path program = *candidate ? find_program(candidate) : fs::path(); !program.empty()) return program;
  return {};
}

Result<InstructionMix> disassemble_cubin(const std::string& cubin) {
  const fs::path program = find_nvdisasm();
  if (program.empty())
    return fail(Code::unsupported, "nvdisasm was found neither in $FORGE_NVDISASM, nor in PATH, nor in /usr/local/cuda/bin",
                "install the CUDA toolkit's nvdisasm, or the wheel nvidia-cuda-nvdisasm, and set FORGE_NVDISASM");
  FORGE_TRY_ASSIGN(const TempDir folder, TempDir::make("forge-sass"));
  FORGE_TRY(write_file_atomic(folder.path() / "image.cubin", cubin));
  ProcessOptions o;
  o.argv = {program.string(), "-c", "image.cubin"};
  o.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"};
  o.cwd = folder.path();
  o.timeout_s = kSeconds;
  o.output_cap = std::size_t(64) << 20;
  FORGE_TRY_ASSIGN(const ProcessResult r, run_process(o));
  if (r.timed_out || r.signal || r.exit_code != 0)
    return fail(Code::crashed, program.string() + " failed: " + trim(r.output.substr(0, 400)));
  return sass_mix(r.output);
}

Result<InstructionMix> disassemble_image(const Image& image, const TargetSpec& target) {
  return target.family == "cuda" ? disassemble_cubin(image.bytes) : disassemble_object(image.bytes);
}

}  // namespace forge
