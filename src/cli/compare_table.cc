// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "cli/compare.h"
#include "cli/table.h"
#include "util/random.h"

namespace forge {

namespace {

Error bad_arm(const std::string& text, const std::string& part) {
  return Error{.code = Code::bad_input,
               .message = fmt::format("'{}' is no part of an arm ('{}')", part, text),
               .file = {},
               .line = 0,
               .field = "arm",
               .fix = "full, no-revise, no-knowledge, no-plan, no-disassembly, no-template, coder=AGENT or architect=AGENT"};
}

double gain_of(const RunResult& r) {
  const PairedTiming* t = r.generation && r.confirmation ? find_pairing(*r.confirmation, "reference") : nullptr;
  return t && t->speedup.mid > 0 ? t->speedup.mid : 1;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / double(values.size());
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Over seeds, in logarithms; the same table comes out each time.
std::string geometric_mean(const std::vector<double>& gains) {
  std::vector<double> logs, means;
  for (const double g : gains) logs.push_back(std::log(g));
  const double mid = std::exp(mean_of(logs));
  if (logs.size() < 2) return fmt::format("{:.3f}", mid);
  constexpr int kDraws = 2000;
  Random random(1);
  for (int i = 0; i < kDraws; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < logs.size(); ++k) sum += logs[random.below(logs.size())];
    means.push_back(std::exp(sum / double(logs.size())));
  }
  std::sort(means.begin(), means.end());
  return fmt::format("{:.3f} [{:.3f} {:.3f}]", mid, means[kDraws * 25 / 1000], means[kDraws * 975 / 1000]);
}

}  // namespace

Result<Arm> parse_arm(const std::string& text) {
  Arm arm{.name = text, .parts = {}};
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, '+');) {
    const bool word = part == "full" || part == "no-revise" || part == "no-knowledge" || part == "no-plan" || part == "no-disassembly" ||
                      part == "no-template";
    const bool seat = (part.starts_with("coder=") || part.starts_with("architect=")) && part.back() != '=';
    if (!word && !seat) return fail(bad_arm(text, part));
    arm.parts.push_back(part);
  }
  if (arm.parts.empty()) return fail(bad_arm(text, ""));
  return arm;
}

Task Arm::apply(Task task) const {
  for (const std::string& part : parts) {
    if (part == "no-revise") task.revise = false;
    if (part == "no-knowledge") task.knowledge = false;
    if (part == "no-plan") task.plan = false;
    if (part == "no-disassembly") task.disassembly = false;
    if (part == "no-template") task.plan_template = false;
    if (part.starts_with("coder=")) task.coder = part.substr(6);
    if (part.starts_with("architect=")) task.architect = part.substr(10);
  }
  return task;
}

std::string compare_table(const std::vector<ArmRun>& runs) {
  std::vector<std::pair<std::string, std::string>> order;
  for (const ArmRun& r : runs)
    if (std::find(order.begin(), order.end(), std::pair(r.op, r.arm)) == order.end()) order.emplace_back(r.op, r.arm);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [op, arm] : order) {
    std::vector<double> gains, hand_ins, tokens, dollars, first, best, gate;
    int seeds = 0, better = 0, duels = 0;
    for (const ArmRun& r : runs) {
      if (r.op != op || r.arm != arm) continue;
      ++seeds;
      gains.push_back(gain_of(r.run));
      hand_ins.push_back(r.run.spent.candidates);
      tokens.push_back(double(r.run.spent.tokens));
      dollars.push_back(r.run.spent.dollars);
      gate.push_back(r.run.spent.gate_seconds);
      if (r.run.first_correct_seconds > 0) first.push_back(r.run.first_correct_seconds);
      if (r.run.best_seconds > 0) best.push_back(r.run.best_seconds);
      duels += !r.duel.empty();
      better += (r.full_against && r.full_against->comparison == Comparison::faster) || r.duel == "only the full run made one";
    }
    const auto seconds = [](const std::vector<double>& v) { return v.empty() ? std::string("-") : fmt::format("{:.1f} s", median_of(v)); };
    rows.push_back({op, arm, std::to_string(seeds), geometric_mean(gains), fmt::format("{:.1f}", mean_of(hand_ins)),
                    fmt::format("{:.0f} s", mean_of(gate)), fmt::format("{:.0f}", mean_of(tokens)), fmt::format("{:.2f}", mean_of(dollars)),
                    seconds(first), seconds(best), duels ? fmt::format("{} of {}", better, duels) : std::string("-")});
  }
  return format_table({"operator", "arm", "seeds", "gain over the expert [95 %]", "hand-ins", "gate", "tokens", "dollars", "first correct",
                       "best", "full ends better"},
                      rows);
}

}  // namespace forge
