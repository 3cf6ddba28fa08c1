// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "build/build.h"
#include "util/text.h"

namespace forge {

namespace {

std::int64_t count(const SignatureTerm& term, const InstructionMix& mix) {
  const bool hot = term.scope == Scope::hot_loop;
  // With an operand class the keys read "vfmadd231ps zmm".
  const auto& counts = term.operand.empty() ? (hot ? mix.hot : mix.mnemonics) : (hot ? mix.hot_operands : mix.operands);
  const std::string pattern = term.operand.empty() ? term.mnemonic : term.mnemonic + " " + term.operand;
  std::int64_t sum = 0;
  for (const auto& [key, n] : counts)
    if (glob_match(pattern, key)) sum += n;
  return sum;
}

}  // namespace

SignatureResult check_signature(const Signature& signature, const InstructionMix& mix) {
  SignatureResult out{.ok = true, .found = {}};
  for (const SignatureTerm& term : signature.all) {
    const std::int64_t n = count(term, mix);
    const bool ok = n >= term.min && (!term.max || n <= *term.max);
    const std::string what = term.operand.empty() ? term.mnemonic : fmt::format("{} ({})", term.mnemonic, term.operand);
    const std::string bound = term.max ? fmt::format("min {}, max {}", term.min, *term.max) : fmt::format("min {}", term.min);
    out.found.push_back(
        fmt::format("{} in {}: {} ({}){}", what, term.scope == Scope::hot_loop ? "hot loops" : "image", n, bound, ok ? "" : " - missed"));
    out.ok &= ok;
  }
  if (!out.ok) out.found.insert(out.found.end(), mix.notes.begin(), mix.notes.end());
  return out;
}

}  // namespace forge
