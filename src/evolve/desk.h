// SPDX-License-Identifier: Apache-2.0
// The run's one door to the outside world: every call goes through Journal::step with a canonical request, and what comes back
// is always read from the record's text, so that a live run, a resumed one and a replay see the same bytes.
// The gate opens itself when a call first reaches it, so a resumed run measures nothing again.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "evolve/evolve.h"
#include "evolve/run_json.h"

namespace forge {

class Desk {
 public:
  explicit Desk(const RunParts& parts) : m_parts(parts) {}

  Status start(const Task&);
  Result<ReferenceInfo> open();
  Result<NoiseFloor> measure_floor();
  Result<Evidence> analyse();
  Result<std::vector<Retrieved>> retrieve(const Names&);

  // What a hand-in says of itself beside the submission.
  struct HandInLabel {
    int n = 0, revision = 0;
    Decisions decisions;
  };
  Result<Verdict> submit(const Submission&, const HandInLabel&);
  Result<Verdict> check(const Submission&);  // an untimed one
  Result<std::vector<Diagnostic>> time(const std::string& purpose, const std::string& milestone, const std::vector<KernelPackage>&);
  Result<Evidence> examine(const KernelPackage&);  // a build failure is an error with Code::build_failed
  Result<Verdict> confirm(const KernelPackage&, const std::vector<Signature>& mechanisms);
  Result<std::optional<Verdict>> against_expert(const KernelPackage&);  // none: no expert runs here

  Result<std::vector<std::string>> adopted(const std::vector<std::string>& cites, const Verdict& confirmation);
  struct Sealed {
    Generation generation;  // as recorded
    bool promoted = false;
  };
  // Dates it, writes it to the vault, and promotes it when nothing is promoted yet or it beats what is.
  Result<Sealed> seal(Generation);
  Status propose(const Task&, const std::vector<Ablation>&);
  Status record_uses(const std::vector<UseRow>&);

  Status decide(const std::string& type, const Json& request);

  void say(const std::string& line) const;  // not for what is repeated from the record
  double gate_seconds() const { return m_gate_seconds; }
  double wall_seconds() const { return m_parts.journal->elapsed_seconds(); }
  double mean_hand_in_seconds() const { return m_hand_ins ? m_hand_in_seconds / m_hand_ins : 0; }

 private:
  Result<bool> beats(const Generation& made, const Generation& promoted) const;
  using Work = std::function<Result<Json>()>;
  Result<Json> ask(const std::string& type, const Json& request, const Work&);
  // For what an agent can do something about: such an error is a result like any other, on record, and the same on a replay.
  Result<Json> ask_about_a_kernel(const std::string& type, const Json& request, const Work&);

  const RunParts& m_parts;
  double m_gate_seconds = 0, m_hand_in_seconds = 0;
  int m_hand_ins = 0;
};

}  // namespace forge
