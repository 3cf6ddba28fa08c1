// SPDX-License-Identifier: Apache-2.0
#include "gate/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace forge {
namespace {

constexpr std::size_t kCopies = 2;       // of the whole, in front of the variants
constexpr double kAboutTheWhole = 0.05;  // a sum as near to the whole as this says nothing of overlap
constexpr double kTooNoisy = 0.05;       // two copies of the whole that differ more leave nothing to say

std::string not_timed(const Diagnostic& d) { return d.problem.empty() ? "it was not timed" : d.problem; }

}  // namespace

bool Timeline::complete() const {
  return std::all_of(stages.begin(), stages.end(), [](const StageTime& s) { return s.problem.empty(); });
}

Result<Timeline> make_timeline(const std::vector<BlueprintStage>& stages, const std::vector<Diagnostic>& timed) {
  if (timed.size() != stages.size() + kCopies)
    return fail(Code::internal, fmt::format("{} kernels were timed for {} stages", timed.size(), stages.size()));
  for (std::size_t i = 0; i < kCopies; ++i)
    if (!timed[i].ran) return fail(Code::build_failed, "the whole kernel was not timed: " + not_timed(timed[i]));
  // From the paired ratios: the calls of a round share what the machine did at that time, medians do not.
  const auto share = [](const Diagnostic& d) { return 1 - 1 / d.against_first; };
  Timeline t{.seconds = timed[0].seconds, .again_share = share(timed[1]), .stages = {}};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Diagnostic& d = timed[i + kCopies];
    StageTime& s = t.stages.emplace_back(StageTime{.name = stages[i].name, .text = stages[i].text, .problem = {}});
    if (!d.ran) {
      s.problem = not_timed(d);
      continue;
    }
    s.share = share(d);
    s.saved_s = t.seconds * s.share;
    s.without_s = t.seconds - s.saved_s;
    t.sum += s.share;
  }
  return t;
}

Result<Timeline> time_stages(Gate& gate, const Blueprint& blueprint, const Choices& choices, const TargetSpec& target, const Names& names) {
  if (blueprint.stages.empty())
    return fail(Error{.code = Code::unsupported,
                      .message = fmt::format("the blueprint of {} declares no stages", blueprint.operator_name),
                      .file = (blueprint.folder / "blueprint.toml").string(),
                      .line = 0,
                      .field = "stage",
                      .fix = "mark them in its templates (docs/formats/blueprint.md, \"Stages\")"});
  std::vector<KernelPackage> packages;
  FORGE_TRY_ASSIGN(const KernelPackage whole, render(blueprint, choices, target, names));
  packages.assign(kCopies, whole);
  for (const BlueprintStage& stage : blueprint.stages) {
    FORGE_TRY_ASSIGN(KernelPackage variant, render(blueprint, choices, target, names, stage.name));
    packages.push_back(std::move(variant));
  }
  FORGE_TRY_ASSIGN(const std::vector<Diagnostic> timed, gate.time(packages));
  return make_timeline(blueprint.stages, timed);
}

std::string describe_overlap(const Timeline& t) {
  if (!t.complete()) return "not every stage could be timed: the savings say nothing of what overlaps";
  if (std::abs(t.again_share) > kTooNoisy)
    return fmt::format("two copies of the whole differ by {:.1f} %: the machine is too busy to say what overlaps",
                       100 * std::abs(t.again_share));
  const double slack = std::max(kAboutTheWhole, double(t.stages.size()) * std::abs(t.again_share));
  const std::string sum = fmt::format("the savings sum to {:.1f} % of the whole: ", 100 * t.sum);
  if (t.sum < 1 - slack)
    return sum +
           fmt::format("{:.1f} % belongs to no stage, or to stages that hide each other by running at the same time", 100 * (1 - t.sum));
  if (t.sum > 1 + slack) return sum + "leaving a stage out also spares the others time: they wait for it, or share what it takes up";
  return sum + "the stages run one after the other";
}

}  // namespace forge
