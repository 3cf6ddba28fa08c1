// SPDX-License-Identifier: Apache-2.0
// Opening a run's reference: the better of the experts, one of them, a sealed generation, or none.
#include <fmt/format.h>

#include <algorithm>

#include "gate/real_gate.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {

Status RealGate::ensure_open() {
  if (m_opened) return {};
  FORGE_TRY(open());
  return {};
}

Result<ReferenceInfo> RealGate::open() {
  if (m_opened) return m_info;
  const std::string& wanted = m_task.reference;
  ReferenceInfo info;
  if (wanted == "expert" || wanted.starts_with("expert:")) {
    FORGE_TRY_ASSIGN(m_reference, open_expert(wanted == "expert" ? "" : wanted.substr(7), info.considered, info.seconds));
  } else if (wanted.starts_with("gen:")) {
    FORGE_TRY_ASSIGN(m_reference, open_sealed(wanted.substr(4), info.considered, info.seconds));
  } else if (wanted.starts_with("package:")) {
    FORGE_TRY_ASSIGN(const KernelPackage package, read_package_folder(wanted.substr(8)));
    const std::string hash = package_hash(package);
    FORGE_TRY_ASSIGN(m_reference,
                     open_package(package, "package:" + hash.substr(0, 12), "package " + hash.substr(0, 12) + ", " + m_parts.compiler, "",
                                  info.considered, info.seconds));
  } else if (wanted != "none") {
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("unknown reference \"{}\"", wanted),
                      .field = "reference",
                      .fix = "use expert, expert:<name>, gen:<id prefix>, package:<folder> or none"});
  }
  if (m_reference) {
    info.present = true;
    info.id = m_reference->id;
    info.description = m_reference->description;
  }
  m_info = std::move(info);
  m_opened = true;
  return m_info;
}

Result<std::unique_ptr<Contestant>> RealGate::open_expert(const std::string& only, std::vector<std::string>& considered, double& seconds) {
  const std::string& op = m_parts.op.definition.name;
  std::vector<std::unique_ptr<Contestant>> usable;
  std::vector<std::string> names;
  auto refuse = [&](const std::string& name, Reason reason, const std::string& why) {
    considered.push_back(fmt::format("{}: refused ({}): {}", name, forge::name(reason), why));
  };
  {
    auto lease = m_parts.lease(Lease::Kind::build);
    if (!lease) return tl::unexpected(lease.error());
    // One after the other, on this thread: a runner is killed with the thread that started it (PR_SET_PDEATHSIG).
    for (const auto& [name, plugin] : m_parts.op.experts) {
      names.push_back(name);
      if (!only.empty() && name != only) continue;
      Progress::show("opening expert " + name);
      auto runner = m_parts.start_expert(plugin.string());
      if (!runner && !runner.error().killed) {
        refuse(name, runner.error().reason, runner.error().detail);
        continue;
      }
      // A reference has to be right before it may be fast.
      auto who = std::make_unique<Contestant>();
      who->id = "expert:" + name;
      who->plugin = plugin.string();
      if (runner) who->runner = std::move(*runner);
      FORGE_TRY_ASSIGN(const CorrectnessRun run, check_alone(*who, {m_parts.judge->timed()}, false, 1, considered));
      if (run.failure) {
        refuse(name, run.failure->reason, run.failure->detail);
        continue;
      }
      who->description = who->runner->description();
      usable.push_back(std::move(who));
    }
  }
  if (!only.empty() && std::find(names.begin(), names.end(), only) == names.end())
    return fail(Code::not_found, fmt::format("{} has no expert \"{}\"; there are: {}", op, only, join(names, ", ")),
                "name one of them, or use expert");
  FORGE_TRY_ASSIGN(Stage * stage, timed_stage());
  for (;;) {
    if (usable.empty())
      return fail(Code::unsupported,
                  fmt::format("no expert of {} can be used here{}", op, considered.empty() ? "" : ": " + join(considered, "; ")),
                  "run `forge doctor`, or use reference none");
    std::vector<Side> sides;
    for (const auto& who : usable) sides.push_back({who->id, who.get(), Checking::random_third});
    JobPlan plan{.may_extend = false, .may_stop_early = false};
    FORGE_TRY_ASSIGN(const Job job, run_sides(*stage, plan, sides, "experts against each other"));
    if (const auto& f = job.result.failure) {
      refuse(usable[std::size_t(f->side)]->id.substr(7), f->reason, f->detail);
      usable.erase(usable.begin() + f->side);
      continue;
    }
    std::size_t best = 0;
    std::vector<double> medians;
    for (std::size_t i = 0; i < usable.size(); ++i) {
      medians.push_back(median(inside_seconds(job.result.calls[i])));
      if (medians[i] < medians[best]) best = i;
      considered.push_back(fmt::format("{}: {} ({})", usable[i]->id.substr(7), format_seconds(medians[i]), usable[i]->description));
    }
    seconds = medians[best];
    return std::move(usable[best]);
  }
}

Result<std::unique_ptr<Contestant>> RealGate::open_sealed(const std::string& id_prefix, std::vector<std::string>& considered,
                                                          double& seconds) {
  FORGE_TRY_ASSIGN(const Generation generation, m_parts.find_sealed(id_prefix));
  if (generation.operator_name != m_parts.op.definition.name || generation.target != m_machine.target.name)
    return fail(Code::bad_input,
                fmt::format("generation {} is a {} for {}, not a {} for {}", generation.id.substr(0, 12), generation.operator_name,
                            generation.target, m_parts.op.definition.name, m_machine.target.name),
                "see `forge lineage`");
  return open_package(generation.package, fmt::format("gen{}:{}", generation.number, generation.id.substr(0, 12)),
                      fmt::format("sealed generation {} of {}, {}", generation.number, generation.date, m_parts.compiler),
                      generation.image_sha, considered, seconds);
}

Result<std::unique_ptr<Contestant>> RealGate::open_package(const KernelPackage& package, const std::string& id,
                                                           const std::string& description, const std::string& sealed_image,
                                                           std::vector<std::string>& considered, double& seconds) {
  FORGE_TRY_ASSIGN(const Built image, build(package));
  if (!image) return fail(Code::build_failed, id + " does not build here: " + image.error().detail, "run `forge doctor`");
  auto lease = m_parts.lease(Lease::Kind::build);
  if (!lease) return tl::unexpected(lease.error());
  auto who = std::make_unique<Contestant>();
  who->id = id;
  who->image = *image;
  who->description = description;
  if (!sealed_image.empty() && image->sha256 != sealed_image) who->description += " (rebuilt: another image than the sealed one)";
  FORGE_TRY_ASSIGN(const CorrectnessRun run, check_alone(*who, {m_parts.judge->timed()}, false, 1, considered));
  if (run.failure)
    return fail(Code::crashed, fmt::format("{} is not correct here: {}: {}", id, name(run.failure->reason), run.failure->detail));
  lease->hold.reset();
  FORGE_TRY_ASSIGN(Stage * stage, timed_stage());
  JobPlan plan{.pairs = kPilotPairs, .may_extend = false, .may_stop_early = false};
  FORGE_TRY_ASSIGN(const Job job, run_sides(*stage, plan, {{who->id, who.get(), Checking::every_call}}, "timing the reference"));
  if (job.result.failure) return fail(Code::crashed, id + " failed in a timed call: " + job.result.failure->detail);
  seconds = median(inside_seconds(job.result.calls[0]));
  considered.push_back(fmt::format("{}: {} ({})", who->id, format_seconds(seconds), who->description));
  return who;
}

}  // namespace forge
