// SPDX-License-Identifier: Apache-2.0
// The gate's fake, for tests of agents, knowledge and evolve. Timings come from `seconds`, a function of the package; the decision
// from them is the gate's own (gate/decide.h). Verdicts can be scripted and failures demanded. Deterministic; no clock, no I/O.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gate/decide.h"
#include "gate/gate.h"

namespace forge {

class FakeGate : public Gate {
 public:
  // What the test sets.
  std::function<double(const KernelPackage&)> seconds = [](const KernelPackage&) { return 1e-3; };
  std::function<Reason(const KernelPackage&)> reason = [](const KernelPackage&) { return Reason::accepted; };  // else: rejected with it
  std::function<SignatureResult(const KernelPackage&, const Signature&)> mechanism = [](const KernelPackage&, const Signature&) {
    return SignatureResult{.ok = true, .found = {}};
  };
  std::function<InstructionMix(const KernelPackage&)> mix = [](const KernelPackage&) { return InstructionMix{}; };
  ReferenceInfo reference{.present = true, .id = "expert:fake", .description = "fake expert 1.0", .considered = {}, .seconds = 1e-3};
  double expert_seconds = 1e-3;
  Evidence evidence{.subject = "expert fake", .metrics = {{"seconds", 1e-3}}, .mix = {}, .notes = {}, .hot_symbols = {}};
  NoiseFloor floor{.ratio = 0.004, .sigma = 0.002, .pairs = 20, .device_class = "fake", .boot_id = "boot", .protocol = "fake-1"};
  std::deque<Verdict> scripted;                   // submit() hands these out first
  std::map<std::string, std::deque<Error>> fail;  // by method: "submit", "confirm", ...: that call fails, once per entry
  double gate_seconds = 1;                        // what each verdict says it took

  // What the test looks at.
  std::map<std::string, int> calls;
  std::vector<Submission> submissions;

  Result<ReferenceInfo> open() override {
    if (auto e = failure("open")) return tl::unexpected(*e);
    return reference;
  }
  Result<Evidence> analyse() override {
    if (auto e = failure("analyse")) return tl::unexpected(*e);
    return evidence;
  }
  Result<NoiseFloor> measure_floor() override {
    if (auto e = failure("measure_floor")) return tl::unexpected(*e);
    return floor;
  }
  Result<Verdict> submit(const Submission& s) override {
    if (auto e = failure("submit")) return tl::unexpected(*e);
    submissions.push_back(s);
    if (!scripted.empty()) {
      Verdict v = scripted.front();
      scripted.pop_front();
      return v;
    }
    std::vector<std::pair<std::string, double>> sides;
    if (reference.present) sides.emplace_back("reference", reference.seconds);
    if (s.branch_best) sides.emplace_back("branch_best", seconds(*s.branch_best));
    if (s.global_best) sides.emplace_back("global_best", seconds(*s.global_best));
    return judged(s.package, s.acceptance.mechanism, s.acceptance.performance, sides);
  }
  Result<std::vector<Diagnostic>> time(const std::vector<KernelPackage>& packages) override {
    if (auto e = failure("time")) return tl::unexpected(*e);
    std::vector<Diagnostic> out;
    for (const auto& p : packages) {
      Diagnostic d{.label = p.origin, .ran = true, .seconds = seconds(p), .image_sha = package_hash(p)};
      d.against_first = seconds(packages.front()) / d.seconds;
      out.push_back(std::move(d));
    }
    return out;
  }
  Result<Evidence> examine(const KernelPackage& p) override {
    if (auto e = failure("examine")) return tl::unexpected(*e);
    return Evidence{.subject = "candidate " + package_hash(p).substr(0, 12), .metrics = {}, .mix = mix(p), .notes = {}, .hot_symbols = {}};
  }
  Result<Verdict> confirm(const KernelPackage& p, const std::vector<Signature>& mechanisms) override {
    if (auto e = failure("confirm")) return tl::unexpected(*e);
    Signature all;
    for (const auto& s : mechanisms) all.all.insert(all.all.end(), s.all.begin(), s.all.end());
    std::vector<std::pair<std::string, double>> sides;
    std::optional<PerformanceCondition> condition;
    if (reference.present) {
      sides.emplace_back("reference", reference.seconds);
      condition = PerformanceCondition{};
    }
    return judged(p, all, condition, sides);
  }
  Result<Verdict> against_expert(const KernelPackage& p) override {
    if (auto e = failure("against_expert")) return tl::unexpected(*e);
    return judged(p, {}, std::nullopt, {{"expert", expert_seconds}});
  }
  Result<Verdict> against(const KernelPackage& p, const KernelPackage& rival) override {
    if (auto e = failure("against")) return tl::unexpected(*e);
    return judged(p, {}, std::nullopt, {{"rival", seconds(rival)}});
  }

 private:
  std::optional<Error> failure(const std::string& method) {
    ++calls[method];
    auto& queue = fail[method];
    if (queue.empty()) return std::nullopt;
    Error e = queue.front();
    queue.pop_front();
    return e;
  }
  Verdict judged(const KernelPackage& p, const Signature& signature, const std::optional<PerformanceCondition>& condition,
                 const std::vector<std::pair<std::string, double>>& sides) {
    const Reason r = reason(p);
    Verdict v = Verdict::rejected(r, "the test said so");
    if (r == Reason::accepted) {
      CorrectnessReport report{.checks = 10, .elements = 1000, .worst = 0.1, .worst_where = "fake", .workloads = {"fake"}};
      const SignatureResult found = mechanism(p, signature);
      if (!found.ok) {
        v = Verdict::missed(Reason::mechanism_missing, join_found(found), report, std::nullopt);
      } else {
        Measurement m = measurement(seconds(p), sides);
        const Decided d = decide_performance(condition, m);
        v = make_verdict(d, report, m);
      }
      v.mechanism = found;
      v.mix = mix(p);
    }
    v.package_sha = package_hash(p);
    v.image_sha = "image-" + v.package_sha;
    v.times.total = v.times.timing = gate_seconds;
    return v;
  }
  Measurement measurement(double candidate, const std::vector<std::pair<std::string, double>>& sides) const {
    Measurement m;
    m.seconds = candidate;
    m.floor = floor;
    m.conditions["clock"] = "fake";
    for (const auto& [against, other] : sides) {
      PairedTiming t{.against = against};
      const double s = other / candidate;
      t.speedup = {s * (1 - floor.ratio / 4), s, s * (1 + floor.ratio / 4)};
      t.lower_bound = s * (1 - floor.ratio / 2);
      t.upper_bound = s * (1 + floor.ratio / 2);
      t.comparison = t.lower_bound > 1 + floor.ratio                                              ? Comparison::faster
                     : t.upper_bound < 1 - floor.ratio                                            ? Comparison::slower
                     : t.lower_bound > 1 - 2 * floor.ratio && t.upper_bound < 1 + 2 * floor.ratio ? Comparison::same
                                                                                                  : Comparison::ambiguous;
      t.pairs = 9;
      t.candidate_s.assign(9, candidate);
      t.against_s.assign(9, other);
      t.outside_speedup = t.speedup;
      t.outside_resolution = 0.01;
      m.pairs.push_back(std::move(t));
    }
    return m;
  }
  static std::string join_found(const SignatureResult& r) {
    std::string out;
    for (const auto& line : r.found) out += (out.empty() ? "" : "; ") + line;
    return out.empty() ? "the mechanism is not in the image" : out;
  }
};

}  // namespace forge
