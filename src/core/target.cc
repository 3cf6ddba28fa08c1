// SPDX-License-Identifier: Apache-2.0
#include "core/target.h"

#include <fmt/format.h>

#include "util/text.h"

namespace forge {
namespace {

const std::vector<TargetSpec>& table() {
  static const std::vector<TargetSpec> kTable = {
      {.name = "cpu:x86-64-avx2", .family = "cpu", .vector_bits = 256, .flags = {"-march=x86-64-v3"}},
      {.name = "cpu:x86-64-avx512", .family = "cpu", .vector_bits = 512, .flags = {"-march=x86-64-v4"}},
      {.name = "cuda:sm_90a",
       .family = "cuda",
       .flags = {"-gencode=arch=compute_90a,code=sm_90a"},
       .shared_bytes = 227 << 10},  // CUDA programming guide, compute capabilities
      {.name = "cuda:sm_100a", .family = "cuda", .flags = {"-gencode=arch=compute_100a,code=sm_100a"}, .shared_bytes = 227 << 10},
  };
  return kTable;
}

}  // namespace

std::vector<std::string> known_targets() {
  std::vector<std::string> names;
  for (const TargetSpec& t : table()) names.push_back(t.name);
  return names;
}

Result<TargetSpec> find_target(const std::string& name) {
  for (const TargetSpec& t : table())
    if (t.name == name || (name == "cuda" && t.name == "cuda:sm_90a")) return t;
  return fail(Code::bad_input, fmt::format("unknown target '{}'", name),
              fmt::format("known targets: {}; cuda stands for cuda:sm_90a", join(known_targets(), ", ")));
}

}  // namespace forge
