// SPDX-License-Identifier: Apache-2.0
// Unchecked timing for tuning. Its result is a Diagnostic, which nothing turns into a Verdict.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "gate/real_gate.h"
#include "util/progress.h"

namespace forge {

Result<std::vector<RealGate::Built>> RealGate::build_all(const std::vector<KernelPackage>& packages) {
  std::vector<const KernelPackage*> missing;  // each once, however often it is asked for
  std::vector<std::string> hashes;
  for (const auto& p : packages) {
    const std::string sha = package_hash(p);
    if (!m_images.count(sha) && std::find(hashes.begin(), hashes.end(), sha) == hashes.end()) {
      missing.push_back(&p);
    }
    hashes.push_back(sha);
  }
  std::map<std::string, Built> built;
  if (!missing.empty()) {
    auto lease = m_parts.lease(Lease::Kind::build);
    if (!lease) return tl::unexpected(lease.error());
    Progress::show(fmt::format("building {} packages", missing.size()));
    std::vector<Built> results(missing.size(), tl::unexpected(BuildFailure{}));
    std::atomic<std::size_t> next{0};
    auto work = [&] {
      for (std::size_t i; !stop_requested() && (i = next++) < missing.size();) results[i] = m_parts.build(*missing[i]);
    };
    std::vector<std::jthread> threads;
    const auto most = std::size_t(std::max(1, m_parts.build_threads > 0 ? m_parts.build_threads : m_machine.cores));
    for (std::size_t i = 1; i < std::min(missing.size(), most); ++i) threads.emplace_back(work);
    work();
    threads.clear();  // joins
    Progress::clear();
    if (stop_requested()) return tl::unexpected(Error{.code = Code::interrupted, .message = "stopped while building"});
    for (const Built& b : results)
      if (!b && b.error().ours) return tl::unexpected(*b.error().ours);
    for (std::size_t i = 0; i < missing.size(); ++i) built.emplace(package_hash(*missing[i]), std::move(results[i]));
  }
  std::vector<Built> out;
  for (const auto& sha : hashes) {
    if (const auto it = built.find(sha); it != built.end()) {
      if (it->second) m_images[sha] = *it->second;
      out.push_back(it->second);
    } else {
      out.emplace_back(m_images.at(sha));
    }
  }
  return out;
}

// As many as the time allows: short calls are told apart to a percent, long ones by what a few pairs say.
int RealGate::tuning_pairs(std::size_t sides, double side_seconds) const {
  constexpr int fewest = 5, most = 31;
  if (!(side_seconds > 0)) return fewest;
  return std::clamp(int(m_options.tuning_seconds / (side_seconds * double(sides))), fewest, most);
}

Result<std::vector<Diagnostic>> RealGate::time(const std::vector<KernelPackage>& packages) {
  std::vector<Diagnostic> out(packages.size());
  std::vector<std::unique_ptr<Contestant>> who(packages.size());
  FORGE_TRY_ASSIGN(const std::vector<Built> images, build_all(packages));
  for (std::size_t i = 0; i < packages.size(); ++i) {
    out[i].label = packages[i].origin;
    const Built& image = images[i];
    if (!image) {
      out[i].problem = fmt::format("{}: {}", name(image.error().reason), image.error().detail);
      continue;
    }
    out[i].image_sha = image->sha256;
    auto started = start(*image, package_hash(packages[i]));
    if (!started)
      out[i].problem = fmt::format("{}: {}", name(started.error().reason), started.error().detail);
    else
      who[i] = std::move(*started);
  }
  FORGE_TRY_ASSIGN(Stage * stage, timed_stage());
  double side_seconds = m_side_seconds;
  for (;;) {  // a package that breaks is said, and the job repeated without it
    std::vector<Side> sides;
    std::vector<std::size_t> index;
    for (std::size_t i = 0; i < who.size(); ++i)
      if (who[i]) {
        sides.push_back({packages[i].origin, who[i].get(), Checking::none});
        index.push_back(i);
      }
    if (sides.empty()) return out;
    JobPlan plan{.pairs = tuning_pairs(sides.size(), side_seconds), .may_extend = false, .may_stop_early = false};
    FORGE_TRY_ASSIGN(const Job job, run_sides(*stage, plan, sides, "tuning"));
    if (const auto& f = job.result.failure) {
      const std::size_t broken = index[std::size_t(f->side)];
      out[broken].problem = fmt::format("{}: {}", name(f->reason), f->detail);
      who[broken].reset();
      continue;
    }
    // Where no floor was measured, the first job has the fewest pairs and says what a call takes: the one that counts may have more.
    if (!(side_seconds > 0)) {
      side_seconds = job.result.round_seconds / double(sides.size());
      if (tuning_pairs(sides.size(), side_seconds) > plan.pairs) continue;
    }
    const auto first = inside_seconds(job.result.calls[0]);
    for (std::size_t k = 0; k < index.size(); ++k) {
      const auto mine = inside_seconds(job.result.calls[k]);
      Diagnostic& d = out[index[k]];
      d.ran = true;
      d.seconds = median(mine);
      if (index[0] == 0) d.against_first = paired_ratio(mine, first).mid;
    }
    return out;
  }
}

}  // namespace forge
