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

// A record that cannot be read, or a word of promotion that names none: where it stands, and what is wrong with it.
struct DamagedRecord {
  std::string operator_name, target, id;  // by the folders' names; the id of a damaged promotion is empty
  Error error;
};
struct SealedKernels {
  std::vector<Generation> kernels;  // by operator, target, number, date, id
  std::vector<DamagedRecord> damaged;
};

class Vault {
 public:
  static Result<Vault> open(const fs::path& home);  // makes no folder: the first kernel that is sealed does
  // Returns what is in the vault then: a record is never replaced, so of a kernel that is sealed already that is the earlier one.
  Result<Generation> seal(const Generation&);
  Result<std::optional<Generation>> sealed(const std::string& operator_name, const std::string& target, const std::string& id) const;
  Status promote(const std::string& operator_name, const std::string& target, const std::string& id);
  // The promoted generation; none when nothing was promoted yet.
  Result<std::optional<Generation>> promoted(const std::string& operator_name, const std::string& target) const;
  Result<std::string> promoted_id(const std::string& operator_name, const std::string& target) const;  // empty: none yet
  Result<Generation> find(const std::string& id_prefix) const;                                         // unique prefix
  Result<SealedKernels> all() const;                                                                   // one damaged record hides no other

 private:
  explicit Vault(fs::path root) : m_root(std::move(root)) {}
  fs::path m_root;
};

// Of all kernels the chain of one operator and target that ends at the promoted one, by parent, gen0 first; without a promoted one
// everything that was sealed for them.
std::vector<Generation> lineage(const std::vector<Generation>& kernels, const std::string& operator_name, const std::string& target,
                                const std::string& promoted_id);

}  // namespace forge
