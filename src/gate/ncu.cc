// SPDX-License-Identifier: Apache-2.0
#include "gate/ncu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "gate/card_evidence.h"
#include "util/process.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr std::size_t kOutputCap = std::size_t(256) << 20;

const std::vector<std::string> kMetrics = {"gpu__time_duration.sum",
                                           "dram__bytes_read.sum",
                                           "dram__bytes_write.sum",
                                           "lts__t_sectors_op_read.sum",
                                           "lts__t_sector_hit_rate.pct",
                                           "sm__throughput.avg.pct_of_peak_sustained_elapsed",
                                           "dram__throughput.avg.pct_of_peak_sustained_elapsed",
                                           "sm__inst_executed_pipe_tensor.sum",
                                           "sm__warps_active.avg.pct_of_peak_sustained_active",
                                           "l1tex__data_bank_conflicts_pipe_lsu.sum",
                                           "smsp__inst_executed.sum",
                                           "launch__cluster_size",
                                           "launch__registers_per_thread",
                                           "launch__shared_mem_per_block",
                                           "launch__occupancy_limit_blocks",
                                           "launch__occupancy_limit_registers",
                                           "launch__occupancy_limit_shared_mem",
                                           "launch__occupancy_limit_warps"};

// The program under ncu, in an environment that has a home and a place for temporary files.
ProcessOptions under_ncu(const fs::path& ncu, std::vector<std::string> flags, const OnceProgram& program, const fs::path& folder,
                         double until) {
  ProcessOptions o;
  o.argv = {ncu.string()};
  o.argv.insert(o.argv.end(), flags.begin(), flags.end());
  o.argv.insert(o.argv.end(), program.argv.begin(), program.argv.end());
  o.env = program.env;
  for (const char* name : {"HOME", "TMPDIR", "PATH"}) {
    const std::string start = std::string(name) + "=";
    if (std::any_of(o.env.begin(), o.env.end(), [&](const auto& e) { return e.starts_with(start); })) continue;
    o.env.push_back(start + (start == "PATH=" ? "/usr/local/bin:/usr/bin:/bin" : folder.string()));
  }
  o.cwd = folder;
  o.timeout_s = std::max(0.1, until - monotonic_seconds());
  o.output_cap = kOutputCap;
  return o;
}

std::vector<std::string> common_flags() {
  return {"--profile-from-start", "off", "--clock-control", "none", "--cache-control", "all", "--target-processes", "all"};
}

// Why a run brought nothing, in its own words: its errors, and the profiled program's.
Error reason_of_silence(const ProcessResult& r) {
  if (r.timed_out)
    return {.code = Code::timeout,
            .message = "ncu had not ended within the time for evidence, a fifth of the run's",
            .fix = "give the run more --wall-seconds, or ask forge analyse"};
  if (r.output.find("ERR_NVGPUCTRPERM") != std::string::npos)
    return {.code = Code::unsupported,
            .message = "not permitted: ERR_NVGPUCTRPERM",
            .fix = "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"};
  std::vector<std::string> said;
  for (const std::string& line : split(r.output, '\n'))
    if (line.starts_with("==ERROR==") || line.find("--once:") != std::string::npos ||
        line.find("No kernels were profiled") != std::string::npos)
      said.push_back(trim(line));
  const std::string how = r.signal ? fmt::format("signal {}", r.signal) : fmt::format("exit code {}", r.exit_code);
  return {.code = Code::crashed,
          .message = fmt::format("ncu profiled no kernel ({}): {}", how,
                                 utf8_head(said.empty() ? trim(r.output.substr(0, 300)) : join(said, "; "), 600))};
}

Result<fs::path> ncu_program() {
  fs::path ncu = find_ncu();
  const char* named = std::getenv("FORGE_NCU");
  if (ncu.empty() && named && *named) return fail(Code::unsupported, fmt::format("FORGE_NCU names {}, which is no program", named));
  if (ncu.empty()) return fail(Code::unsupported, "ncu was not found", "install Nsight Compute, or set FORGE_NCU");
  return ncu;
}

}  // namespace

Result<CallCounters> take_counters(const OnceProgram& program, const fs::path& folder, double until) {
  FORGE_TRY_ASSIGN(const fs::path ncu, ncu_program());
  CallCounters out;
  std::vector<std::string> metrics = kMetrics;
  for (;;) {
    std::vector<std::string> flags = common_flags();
    flags.insert(flags.end(), {"--csv", "--page", "raw", "--print-units", "base", "--metrics", join(metrics, ",")});
    FORGE_TRY_ASSIGN(const ProcessResult r, run_process(under_ncu(ncu, std::move(flags), program, folder, until)));
    NcuOutput page = parse_ncu_counters(r.output);
    if (!page.kernels.empty()) {
      out.kernels = std::move(page.kernels);
      for (const std::string& line : split(r.output, '\n'))
        if (line.starts_with("made: ")) out.made = trim(line.substr(6));
      return out;
    }
    // One that this card or this version does not know spoils the run for all: without it, once more.
    const std::string errors = join(page.errors, "\n");
    const std::size_t before = metrics.size();
    std::erase_if(metrics, [&](const std::string& m) {
      if (errors.find(m) == std::string::npos) return false;
      out.notes.push_back("no counter " + m + ": Nsight Compute does not know it here");
      return true;
    });
    if (metrics.size() == before || metrics.empty()) return fail(reason_of_silence(r));
  }
}

Result<InstructionMix> take_instructions(const OnceProgram& program, const fs::path& folder, double until, std::size_t kernel) {
  FORGE_TRY_ASSIGN(const fs::path ncu, ncu_program());
  std::vector<std::string> flags = common_flags();
  flags.insert(flags.end(), {"--section", "SourceCounters", "--section", "InstructionStats", "-f", "-o", "report"});
  flags.insert(flags.end(), {"--launch-skip", std::to_string(kernel), "--launch-count", "1"});
  FORGE_TRY_ASSIGN(const ProcessResult r, run_process(under_ncu(ncu, std::move(flags), program, folder, until)));
  std::error_code ec;
  if (!fs::exists(folder / "report.ncu-rep", ec)) return fail(reason_of_silence(r));
  flags = {"--import", "report.ncu-rep", "--page", "source", "--csv", "--print-source", "sass"};
  FORGE_TRY_ASSIGN(const ProcessResult printed,
                   run_process(under_ncu(ncu, std::move(flags), {.argv = {}, .env = program.env}, folder, until)));
  const std::vector<CountedKernel> kernels = parse_ncu_source(printed.output);
  if (kernels.empty()) return fail(reason_of_silence(printed));
  return counted_mix(kernels);
}

void add_counters(Evidence& e, const Runner& runner, const CallSpec& call, bool library, double seconds) {
  const auto missing = [&](const char* what, const Error& why) { e.notes.push_back(fmt::format("no {}: {}", what, why.text())); };
  const auto folder = TempDir::make("forge-ncu");
  if (!folder) return missing("counters", folder.error());
  if (const auto ncu = ncu_program(); !ncu) {
    if (library) missing("instruction mix", ncu.error());
    return missing("counters", ncu.error());
  }
  const auto program = runner.once(call, folder->path());
  if (!program) return missing("counters", program.error());
  Progress::show("counters: the call under Nsight Compute");
  const double began = monotonic_seconds(), until = began + seconds;
  const auto counters = take_counters(*program, folder->path(), until);
  const double took = monotonic_seconds() - began;
  if (!counters) missing("counters", counters.error());
  if (counters) add_counter_metrics(e, *counters);
  if (library && counters && until - monotonic_seconds() < took) {
    e.notes.push_back(
        fmt::format("no instruction mix: the counters took {:.0f} s, and {:.0f} s are for evidence, a fifth of the run's", took, seconds));
  } else if (library && (counters || counters.error().code == Code::crashed)) {
    // Every kernel is run again many times for its counts, so one is enough: the one that takes longest.
    const std::size_t longest = counters ? slowest_kernel(*counters) : 0;
    auto mix = take_instructions(*program, folder->path(), until, longest);
    if (mix) {
      add_sass_metrics(e, *mix);
      if (counters && counters->kernels.size() > 1)
        e.notes.push_back(
            fmt::format("instructions: of the kernel that takes longest, number {} of {}", longest + 1, counters->kernels.size()));
    } else {
      missing("instruction mix", mix.error());
    }
  } else if (library) {
    missing("instruction mix", counters.error());
  }
  Progress::clear();
}

}  // namespace forge
