// SPDX-License-Identifier: Apache-2.0
// The knowledge base: entries as folders, retrieved by what applies here, certified by probes through the gate's paired path,
// and a ledger of who retrieved, cited, implemented and adopted what. Format: docs/formats/entry.md.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/entry.h"
#include "core/plan.h"
#include "core/record.h"
#include "core/target.h"
#include "gate/gate.h"
#include "knowledge/entry_list.h"
#include "util/fs.h"

namespace forge {

struct Retrieved;

// An entry that cannot be read, by its folder's name, and what is wrong with it.
struct DamagedEntry {
  std::string id;
  Error error;
};

// Entries are kept packed, and their conditions compiled in the index that retrieve() asks. Immutable once loaded; copies share both.
class KnowledgeBase {
 public:
  // knowledge/<target family>/<entry>/. For what decides by it: one damaged entry is an error.
  static Result<KnowledgeBase> load(const fs::path& folder);
  // For what lists: one damaged entry hides no other. `family`: only that one; empty: all.
  static Result<KnowledgeBase> load_readable(const fs::path& folder, const std::string& family = {});
  const EntryList& entries() const { return m_entries; }
  const std::vector<DamagedEntry>& damaged() const { return m_damaged; }
  const Error* damage_of(const std::string& id) const;  // null: none
  std::optional<Entry> find(const std::string& id) const;
  EntryList search(const std::string& words) const;  // for agents: title, mechanism, symptoms

 private:
  friend std::vector<Retrieved> retrieve(const KnowledgeBase&, const Machine&, const Names&);
  struct Index;
  EntryList m_entries;
  std::vector<DamagedEntry> m_damaged;
  std::shared_ptr<const Index> m_index;  // null: of no entries
};

// Names for `applies` and `when`: the task's axes (timed), input_bytes output_bytes flops, the machine's properties, and the
// evidence's metrics rounded to integers.
Names knowledge_names(const Definition&, const TaskFile&, const Machine&, const Evidence&);

struct Retrieved {
  Entry entry;
  EntryState state = EntryState::proposed;  // on this device class
  double effect = 1;                        // certified effect here; 1 when not certified here
  std::vector<Advice> advice;               // those whose `when` holds
};
// Entries whose target and `applies` fit. Retired and refuted-here ones are left out. Strongest effect first, then by id.
std::vector<Retrieved> retrieve(const KnowledgeBase&, const Machine&, const Names&);

// The two kernels of an entry's probe, for this machine: rendered from the blueprint that it names, else read from its folders.
enum class ProbeSide { baseline, mechanism };
const char* name(ProbeSide);
Result<KernelPackage> probe_package(const Entry&, ProbeSide, const Paths&, const Machine&);

// Runs the entry's probe here and returns the certification (the caller writes it to evidence/<device class>.json).
Result<Certification> certify(const Paths&, const Machine&, const Entry&);
Status write_certification(const Entry&, const Certification&);
Status set_retired(const fs::path& knowledge_folder, const std::string& id, bool retired);

enum class Use { retrieved, cited, implemented, adopted };
const char* name(Use);
struct UseRow {
  std::string entry, operator_name, run, generation;
  Use use = Use::retrieved;
};
// adopted: cited, the signature holds on the sealed image, and does not on the probe's baseline.
Result<bool> adopted(const Entry&, const InstructionMix& sealed, const Paths&, const Machine&);
// Append-only ledger FORGE_HOME/uses.jsonl; kill-safe.
Status record_uses(const fs::path& home, const std::vector<UseRow>&);
Result<std::vector<UseRow>> read_uses(const fs::path& home);

// Ablations of a sealed kernel proposed as new entries (written as proposed under FORGE_HOME/proposed/<id>/).
struct Ablation {
  std::string decision, value, alternative;
  KernelPackage with, without;
  double effect = 1;
};
Result<std::vector<std::string>> propose_entries(const fs::path& home, const std::string& operator_name, const std::vector<Ablation>&,
                                                 const Machine&);

}  // namespace forge
