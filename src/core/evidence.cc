// SPDX-License-Identifier: Apache-2.0
// Evidence: names and JSON. Layout: docs/formats/record.md.
#include "core/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "core/json_reader.h"

namespace forge {

const char* name(Scope scope) { return scope == Scope::hot_loop ? "hot_loop" : "image"; }

Json to_json_value(const Signature& s) {
  Json terms = Json::array();
  for (const SignatureTerm& t : s.all) {
    Json j{{"mnemonic", t.mnemonic}, {"operand", t.operand}, {"scope", name(t.scope)}, {"min", t.min}};
    if (t.max) j["max"] = *t.max;
    terms.push_back(std::move(j));
  }
  return terms;
}

Signature get_signature(JsonReader& parent, const std::string& key) {
  Signature signature;
  for (JsonReader& r : parent.objects(key)) {
    SignatureTerm t;
    r.need("mnemonic", t.mnemonic);
    r.maybe("operand", t.operand);
    if (r.has("scope")) r.need_choice("scope", t.scope, {Scope::image, Scope::hot_loop});
    r.maybe("min", t.min);
    if (r.has("max")) r.need("max", t.max.emplace());
    if (r.ok())
      for (const SignatureProblem& p : problems_of(t)) r.add_error(p.key, p.message, p.fix);
    signature.all.push_back(std::move(t));
  }
  return signature;
}

std::vector<SignatureProblem> problems_of(const SignatureTerm& t) {
  std::vector<SignatureProblem> out;
  if (t.mnemonic.empty() ||
      std::any_of(t.mnemonic.begin(), t.mnemonic.end(), [](unsigned char c) { return std::isupper(c) || std::isspace(c); }))
    out.push_back({"mnemonic", "a mnemonic is one lower-case word, '*' and '?' allowed", ""});
  static const std::set<std::string> kOperands = {"", "zmm", "ymm", "xmm", "mem"};
  if (!kOperands.count(t.operand))
    out.push_back({"operand", fmt::format("'{}' is not one of zmm, ymm, xmm, mem", t.operand), "leave it out for any operand"});
  if (t.min < 0) out.push_back({"min", "must not be negative", ""});
  if (t.max && *t.max < t.min) out.push_back({"max", "must not be below min (1 unless given)", ""});
  if (t.min == 0 && !t.max) out.push_back({"min", "a term with min = 0 and no max always holds", "give max"});
  return out;
}

Json to_json_value(const SignatureResult& r) { return Json{{"ok", r.ok}, {"found", r.found}}; }

SignatureResult get_signature_result(JsonReader r) {
  SignatureResult out;
  r.need("ok", out.ok);
  r.need("found", out.found);
  return out;
}

Json to_json_value(const InstructionMix& m) {
  Json loops = Json::array();
  for (const LoopView& l : m.loops)
    loops.push_back({{"symbol", l.symbol},
                     {"offset", l.offset},
                     {"instructions", l.instructions},
                     {"vector_instructions", l.vector_instructions},
                     {"fma", l.fma},
                     {"loads", l.loads},
                     {"stores", l.stores},
                     {"spills", l.spills},
                     {"listing", l.listing}});
  Json out{{"mnemonics", m.mnemonics},
           {"hot", m.hot},
           {"operands", m.operands},
           {"hot_operands", m.hot_operands},
           {"widest_vector_bits", m.widest_vector_bits},
           {"spills", m.spills},
           {"loops", std::move(loops)},
           {"instructions", m.instructions},
           {"undecoded", m.undecoded}};
  if (!m.notes.empty()) out["notes"] = m.notes;
  return out;
}

InstructionMix get_instruction_mix(JsonReader r) {
  InstructionMix m;
  r.need("mnemonics", m.mnemonics);
  r.need("hot", m.hot);
  r.maybe("operands", m.operands);
  r.maybe("hot_operands", m.hot_operands);
  r.need("widest_vector_bits", m.widest_vector_bits);
  r.need("spills", m.spills);
  r.need("instructions", m.instructions);
  r.need("undecoded", m.undecoded);
  r.maybe("notes", m.notes);
  for (JsonReader& l : r.need_objects("loops")) {
    LoopView v;
    l.need("symbol", v.symbol);
    l.need("offset", v.offset);
    l.need("instructions", v.instructions);
    l.need("vector_instructions", v.vector_instructions);
    l.need("fma", v.fma);
    l.need("loads", v.loads);
    l.need("stores", v.stores);
    l.need("spills", v.spills);
    l.need("listing", v.listing);
    m.loops.push_back(std::move(v));
  }
  return m;
}

Json to_json_value(const Evidence& e) {
  Json metrics = Json::object();
  for (const auto& [key, value] : e.metrics) metrics[key] = number(value);
  Json symbols = Json::array();
  for (const auto& [symbol, share] : e.hot_symbols) symbols.push_back({{"symbol", symbol}, {"share", number(share)}});
  return Json{{"subject", e.subject},
              {"metrics", std::move(metrics)},
              {"mix", to_json_value(e.mix)},
              {"notes", e.notes},
              {"hot_symbols", std::move(symbols)}};
}

Evidence get_evidence(JsonReader r) {
  Evidence e;
  r.need("subject", e.subject);
  r.need("metrics", e.metrics);
  e.mix = get_instruction_mix(r.need_object("mix"));
  r.need("notes", e.notes);
  for (JsonReader& s : r.need_objects("hot_symbols")) {
    auto& row = e.hot_symbols.emplace_back();
    s.need("symbol", row.first);
    s.need("share", row.second);
  }
  return e;
}

Result<Evidence> read_evidence(const Json& json, const std::string& where) { return read_with(get_evidence, json, where); }

}  // namespace forge
