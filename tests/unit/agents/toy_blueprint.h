// SPDX-License-Identifier: Apache-2.0
// A blueprint small enough to know its best kernel by heart, and the time that each of its kernels takes.
#pragma once
#include <map>
#include <string>

#include "core/blueprint.h"

namespace forge {

inline Signature one_instruction(const std::string& mnemonic) {
  Signature s;
  s.all.push_back({.mnemonic = mnemonic, .operand = "", .scope = Scope::image, .min = 1, .max = {}});
  return s;
}

// Best: tile=8, pass=one, store=nontemporal (which pass=two forbids), unroll=2.
inline Blueprint toy_blueprint() {
  const auto option = [](const std::string& value) {
    return BlueprintOption{.value = value, .text = "the way called " + value, .when = {}, .signature = {}};
  };
  Blueprint b;
  b.operator_name = "toy";
  b.targets = {"cpu:x86-64-avx2"};
  b.source_template = "tile={{tile}} pass={{pass}} store={{store}} unroll={{unroll}}";
  b.plan_template = "format = 1";
  b.source_name = "kernel.cpp";
  b.plan_name = "launch.toml";
  BlueprintDecision tile{.name = "tile",
                         .structural = true,
                         .milestone = 0,
                         .limiter = "compute",
                         .default_value = "4",
                         .options = {option("4"), option("8"), option("16")},
                         .depends_on = {}};
  tile.options[2].when = *parse_expr("vector_bits == 512");
  BlueprintDecision pass{.name = "pass",
                         .structural = true,
                         .milestone = 0,
                         .limiter = "memory",
                         .default_value = "two",
                         .options = {option("two"), option("one")},
                         .depends_on = {}};
  BlueprintDecision store{.name = "store",
                          .structural = true,
                          .milestone = 1,
                          .limiter = "memory",
                          .default_value = "regular",
                          .options = {option("regular"), option("nontemporal")},
                          .depends_on = {"pass"}};
  store.options[1].signature = one_instruction("vmovntps");
  BlueprintDecision unroll{.name = "unroll",
                           .structural = false,
                           .milestone = 2,
                           .limiter = "latency",
                           .default_value = "1",
                           .options = {option("1"), option("2"), option("4")},
                           .depends_on = {"tile"}};
  b.decisions = {tile, pass, store, unroll};
  b.constraints = {{*parse_expr("!(pass_is_two && store_is_nontemporal)"), "the second pass reads what a streaming store sent to memory"}};
  return b;
}

inline double toy_ms(const std::string& source) {
  double ms = 1;
  const std::map<std::string, double> factors{
      {"tile=8", 0.9}, {"pass=one", 0.96}, {"store=nontemporal", 0.8}, {"unroll=2", 0.97}, {"unroll=4", 1.05}};
  for (const auto& [text, factor] : factors)
    if (source.find(text + " ") != std::string::npos || source.ends_with(text)) ms *= factor;
  return ms;
}

}  // namespace forge
