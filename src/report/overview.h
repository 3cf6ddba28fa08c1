// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: what is beyond one run, as sections and as JSON: all runs, lineages, and who used which entry.
#pragma once
#include <functional>

#include "core/json_io.h"
#include "knowledge/knowledge.h"
#include "report/page.h"
#include "store/store.h"
#include "vault/vault.h"

namespace forge {

// Every sealed kernel, by operator and target: the chain of generations, then what was sealed beside it.
struct ShownGeneration {
  Generation generation;
  bool promoted = false, in_line = false;
};
struct ShownVault {
  std::vector<ShownGeneration> kernels;
  std::vector<DamagedRecord> damaged;
};
Result<ShownVault> shown_vault(const Vault&);

struct Overview {
  std::string title;
  Json facts;  // an object
  std::vector<Section> sections;
};
// is_written: a process has that run open.
Result<Overview> runs_overview(const Store&, const std::function<bool(const std::string& id)>& is_written);
Result<Overview> lineages_overview(const Vault&);
Overview knowledge_overview(const KnowledgeBase&, const std::vector<UseRow>&);

}  // namespace forge
