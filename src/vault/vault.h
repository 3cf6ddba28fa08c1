// SPDX-License-Identifier: Apache-2.0
// Sealed kernels: FORGE_HOME/vault/<operator>/<target>/<id>/ with the package and record.json, written whole or not at all.
// Only the gate opens it for content; everybody may list.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/record.h"
#include "util/fs.h"

namespace forge {

class Vault {
 public:
  static Result<Vault> open(const fs::path& home);  // makes no folder: the first kernel that is sealed does
  // Returns what is in the vault then: a record is never replaced, so of a kernel that is sealed already that is the earlier one.
  Result<Generation> seal(const Generation&);
  Result<std::optional<Generation>> sealed(const std::string& operator_name, const std::string& target, const std::string& id) const;
  Status promote(const std::string& operator_name, const std::string& target, const std::string& id);
  // The promoted generation; none when nothing was promoted yet.
  Result<std::optional<Generation>> promoted(const std::string& operator_name, const std::string& target) const;
  Result<Generation> find(const std::string& id_prefix) const;                                                 // unique prefix
  Result<std::vector<Generation>> lineage(const std::string& operator_name, const std::string& target) const;  // gen0 first
  Result<std::vector<Generation>> all() const;

 private:
  explicit Vault(fs::path root) : m_root(std::move(root)) {}
  fs::path m_root;
};

}  // namespace forge
