// SPDX-License-Identifier: Apache-2.0
#include "cli/outcome.h"

#include <fmt/format.h>

#include <map>

#include "cli/table.h"
#include "util/text.h"

namespace forge {

namespace {
const PairedTiming* final_timing(const RunResult& r) { return r.confirmation ? find_pairing(*r.confirmation, "reference") : nullptr; }
// "no hand-in was accepted (2 too_slow, 1 wrong_result)"
std::string why_nothing(const RunResult& r) {
  std::map<std::string, int> reasons;
  for (const BranchOutcome& b : r.branches)
    for (const HandIn& h : b.hand_ins)
      if (h.reason != Reason::accepted) ++reasons[name(h.reason)];
  if (reasons.empty()) return "nothing was handed in";
  std::vector<std::string> parts;
  for (const auto& [reason, n] : reasons) parts.push_back(fmt::format("{} {}", n, reason));
  return "no hand-in was accepted (" + join(parts, ", ") + ")";
}
}  // namespace

std::string compared(Comparison c, const std::string& against) {
  const bool order = c == Comparison::faster || c == Comparison::slower;
  return fmt::format("{} {} {}", name(c), order ? "than" : "against", against);
}

double floor_of(const RunResult& r) {
  return r.confirmation && r.confirmation->measurement() ? r.confirmation->measurement()->floor.ratio : r.floor.ratio;
}

Comparison comparison_of(const RunResult& r) {
  const PairedTiming* t = final_timing(r);
  return t ? t->comparison : Comparison::ambiguous;
}

std::string describe_run(const RunResult& r) {
  std::string out;
  if (const PairedTiming* t = final_timing(r)) {
    out = fmt::format("{}: {}: {} (95 % interval; floor {:.2f} %, {} pairs)", r.run_id, compared(t->comparison, r.reference.id),
                      format_interval(t->speedup), 100 * floor_of(r), t->pairs);
  } else if (r.confirmation && r.generation && r.confirmation->correct()) {  // a run without a reference
    const auto& expert = r.generation->against_expert;
    out = fmt::format(
        "{}: confirmed correct{}", r.run_id,
        expert ? fmt::format("; against the expert {} (95 % interval, {} pairs)", format_interval(expert->speedup), expert->pairs)
               : std::string("; no expert runs here to time it against"));
  } else if (r.confirmation) {
    out = fmt::format("{}: nothing confirmed: {}: {}", r.run_id, name(r.confirmation->reason()), r.confirmation->detail());
  } else {
    out = fmt::format("{}: nothing to confirm: {}", r.run_id, why_nothing(r));
  }
  out +=
      fmt::format("\n  stopped: {}; {} hand-ins, {} of gate time", name(r.stop), r.spent.candidates, format_seconds(r.spent.gate_seconds));
  if (r.generation)
    out += fmt::format("\n  {} as gen{} {}", r.promoted ? "sealed and promoted" : "sealed", r.generation->number,
                       r.generation->id.substr(0, 12));
  return out;
}

std::vector<std::string> outcome_head() { return {"operator", "reference", "speedup [95 %]", "verdict", "generation", "run"}; }

std::vector<std::string> outcome_row(const RunResult& r) {
  const PairedTiming* t = final_timing(r);
  const std::string op = r.run_id.substr(0, r.run_id.find('-'));
  return {op,
          r.reference.id,
          t ? format_interval(t->speedup) : "-",
          t                ? name(t->comparison)
          : r.confirmation ? name(r.confirmation->reason())
                           : "nothing confirmed",
          r.generation ? fmt::format("gen{} {}{}", r.generation->number, r.generation->id.substr(0, 8), r.promoted ? "" : " (not promoted)")
                       : "-",
          r.run_id};
}

Json run_to_json(const RunResult& r) {
  Json j;
  j["run"] = r.run_id;
  j["stop"] = name(r.stop);
  j["reference"] = {{"id", r.reference.id},
                    {"description", r.reference.description},
                    {"considered", r.reference.considered},
                    {"seconds", r.reference.seconds}};
  j["floor"] = to_json_value(r.floor);
  j["spent"] = {{"candidates", r.spent.candidates}, {"gate_seconds", r.spent.gate_seconds}, {"wall_seconds", r.spent.wall_seconds}};
  j["spent"]["tokens"] = r.spent.tokens, j["spent"]["dollars"] = r.spent.dollars;
  j["first_correct_seconds"] = r.first_correct_seconds, j["best_seconds"] = r.best_seconds;
  j["sealed"] = r.sealed;
  j["promoted"] = r.promoted;
  if (r.generation)
    j["generation"] = {{"number", r.generation->number},
                       {"id", r.generation->id},
                       {"decisions", r.generation->decisions},
                       {"cites", r.generation->cites},
                       {"adopted", r.generation->adopted}};
  if (const PairedTiming* t = final_timing(r)) j["timing"] = to_json_value(*t);
  if (r.generation && r.generation->against_expert) j["against_expert"] = to_json_value(*r.generation->against_expert);
  if (r.confirmation) j["confirmation"] = {{"reason", name(r.confirmation->reason())}, {"detail", r.confirmation->detail()}};
  j["branches"] = Json::array();
  for (const BranchOutcome& b : r.branches)
    j["branches"].push_back({{"revision", b.revision},
                             {"stop", name(b.stop)},
                             {"best_speedup", b.best_speedup},
                             {"reverted", b.reverted},
                             {"hand_ins", b.hand_ins.size()}});
  return j;
}

}  // namespace forge
