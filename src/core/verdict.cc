// SPDX-License-Identifier: Apache-2.0
#include "core/verdict.h"

#include <utility>

namespace forge {
namespace {

constexpr std::pair<Reason, const char*> kReasons[] = {
    {Reason::accepted, "accepted"},
    {Reason::plan_invalid, "plan_invalid"},
    {Reason::build_failed, "build_failed"},
    {Reason::build_timeout, "build_timeout"},
    {Reason::not_admitted, "not_admitted"},
    {Reason::unsupported_shape, "unsupported_shape"},
    {Reason::load_failed, "load_failed"},
    {Reason::crashed, "crashed"},
    {Reason::out_of_bounds, "out_of_bounds"},
    {Reason::timed_out, "timed_out"},
    {Reason::out_of_memory, "out_of_memory"},
    {Reason::forbidden_call, "forbidden_call"},
    {Reason::wrong_result, "wrong_result"},
    {Reason::non_finite, "non_finite"},
    {Reason::not_written, "not_written"},
    {Reason::inputs_changed, "inputs_changed"},
    {Reason::not_repeatable, "not_repeatable"},
    {Reason::stale_result, "stale_result"},
    {Reason::dirty_workspace, "dirty_workspace"},
    {Reason::mechanism_missing, "mechanism_missing"},
    {Reason::too_slow, "too_slow"},
    {Reason::clocks_disagree, "clocks_disagree"},
    {Reason::ambiguous, "ambiguous"},
    {Reason::not_confirmed, "not_confirmed"},
    {Reason::runner_broke, "runner_broke"},
    {Reason::workspace_too_large, "workspace_too_large"},
};

}  // namespace

const char* name(Reason reason) {
  for (const auto& [r, text] : kReasons)
    if (r == reason) return text;
  return "unknown_reason";
}

std::optional<Reason> parse_reason(const std::string& text) {
  for (const auto& [r, known] : kReasons)
    if (text == known) return r;
  return std::nullopt;
}

const std::vector<Reason>& all_reasons() {
  static const std::vector<Reason> kAll = [] {
    std::vector<Reason> all;
    for (const auto& row : kReasons) all.push_back(row.first);
    return all;
  }();
  return kAll;
}

const char* name(Comparison c) {
  switch (c) {
    case Comparison::faster:
      return "faster";
    case Comparison::same:
      return "same";
    case Comparison::slower:
      return "slower";
    case Comparison::ambiguous:
      break;
  }
  return "ambiguous";
}

Verdict Verdict::rejected(Reason reason, std::string detail) {
  Verdict v;
  // Acceptance needs evidence: without a report it is the gate's own fault.
  v.m_reason = reason == Reason::accepted ? Reason::runner_broke : reason;
  v.m_detail = std::move(detail);
  return v;
}

Verdict Verdict::passed(CorrectnessReport correctness, Measurement measurement) {
  Verdict v;
  v.m_reason = Reason::accepted;
  v.m_correctness = std::move(correctness);
  v.m_measurement = std::move(measurement);
  return v;
}

Verdict Verdict::missed(Reason reason, std::string detail, CorrectnessReport correctness, std::optional<Measurement> measurement) {
  Verdict v = rejected(reason, std::move(detail));
  v.m_correctness = std::move(correctness);
  v.m_measurement = std::move(measurement);
  return v;
}

const PairedTiming* find_pairing(const Measurement& m, const std::string& against) {
  for (const PairedTiming& p : m.pairs)
    if (p.against == against) return &p;
  return nullptr;
}

const PairedTiming* find_pairing(const Verdict& v, const std::string& against) {
  return v.measurement() ? find_pairing(*v.measurement(), against) : nullptr;
}

}  // namespace forge
