// SPDX-License-Identifier: Apache-2.0
#include "core/package.h"

#include <fmt/format.h>

#include "util/hash.h"

namespace forge {

// Each part is preceded by its length, so that no two packages share a text. `origin` is no part of the identity.
std::string package_hash(const KernelPackage& p) {
  const std::string plan_name = "launch.toml";
  std::string all = "forge package 1\n";
  for (const std::string* part : {&p.source_name, &p.source, &plan_name, &p.plan_text}) all += fmt::format("{}:{}\n", part->size(), *part);
  return sha256_hex(all);
}

}  // namespace forge
