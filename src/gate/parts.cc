// SPDX-License-Identifier: Apache-2.0
// The gate's real parts on this machine, and make_gate.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "device/survey.h"
#include "gate/cuda_judge.h"
#include "gate/real_gate.h"
#include "vault/vault.h"

namespace forge {

Result<std::string> find_runner_program(const Paths& paths) {
  std::error_code ec;
  const fs::path here = fs::read_symlink("/proc/self/exe", ec).parent_path();
  for (const fs::path& folder : {here, paths.plugins, paths.plugins / "..", here / "../lib/forge", here / ".."}) {
    const fs::path program = folder / "forge-runner";
    if (::access(program.c_str(), X_OK) == 0) return fs::weakly_canonical(program, ec).string();
  }
  return fail(Code::not_found, fmt::format("forge-runner is neither beside {} nor near {}", here.string(), paths.plugins.string()),
              "build the project, or reinstall");
}

namespace {

// The builder refers to its compiler: they live and die together.
struct Toolchain {
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<Builder> builder;
};

}  // namespace

namespace {

// Judge, runners and evidence on the CPU's own cores.
Status add_cpu(GateParts& parts, const Machine& machine, const GateOptions& options, const std::string& program) {
  std::vector<int> cores = usable_cores();
  if (cores.size() > std::size_t(machine.cores)) cores.resize(std::size_t(machine.cores));
  FORGE_TRY_ASSIGN(parts.judge, Judge::make(parts.op, JudgeOptions{.cores = cores, .memory_bytes = options.memory_bytes}));
  RunnerOptions runner;
  runner.cores = cores;
  runner.program = program;
  parts.start_image = [runner](const Image& image) { return start_image_runner(image, runner); };
  parts.start_expert = [runner](const std::string& plugin) { return start_expert_runner(plugin, runner); };
  return {};
}

CardLook look_at_card() {
  CardLook look{.state = card_state(), .foreign = -1};
  // Ours: this process's context, and at most one of every process under it.
  if (look.state.processes >= 0) look.foreign = std::max(0, look.state.processes - 1 - live_descendants());
  return look;
}

// The same on the first GPU; all cores of the host serve the judge.
Status add_cuda(GateParts& parts, const Machine& machine, const std::string& program, const fs::path& home) {
  FORGE_TRY_ASSIGN(parts.judge, make_cuda_judge(parts.op, machine, JudgeOptions{.cores = usable_cores()}));
  CudaRunnerOptions runner;
  runner.program = program;
  runner.target = machine.target;
  runner.cache = (home / "cache" / "experts").string();
  parts.start_image = [runner](const Image& image) { return start_cuda_image_runner(image, runner); };
  parts.start_expert = [runner](const std::string& plugin) { return start_cuda_expert_runner(plugin, runner); };
  parts.protocol = kCudaProtocol;
  parts.audit = Audit::batches;
  // Copies of 16 us in two processes differed by up to 0.11 us (results/h200/device-check.txt, five such runs more).
  parts.process_seconds = 0.1e-6;
  parts.wanted_floor = 0.0045;  // half a percent with a little room: sigma differs from job to job
  parts.disassemble = [target = machine.target](const Image& image) { return disassemble_image(image, target); };
  parts.card = look_at_card;
  parts.build_threads = int(usable_cores().size());
  return {};
}

}  // namespace

Result<GateParts> real_parts(const Paths& paths, const std::string& operator_name, const Machine& machine, const GateOptions& options) {
  GateParts parts;
  FORGE_TRY_ASSIGN(parts.op, load_operator(paths, operator_name, machine.target.family));
  FORGE_TRY_ASSIGN(const std::string program, find_runner_program(paths));
  auto tools = std::make_shared<Toolchain>();
  FORGE_TRY_ASSIGN(tools->compiler, find_compiler(machine.target));
  tools->builder = std::make_unique<Builder>(*tools->compiler, paths.home / "cache" / "images");
  parts.compiler = tools->compiler->identity();
  parts.build = [tools, definition = parts.op.definition, target = machine.target](const KernelPackage& p) {
    return tools->builder->build(p, definition, target);
  };
  parts.find_sealed = [home = paths.home](const std::string& prefix) -> Result<Generation> {
    FORGE_TRY_ASSIGN(const Vault vault, Vault::open(home));
    return vault.find(prefix);
  };
  parts.lease = [](Lease::Kind kind) -> Result<LeaseHold> {
    FORGE_TRY_ASSIGN(Lease lease, Lease::take(kind));
    const double waited = lease.waited_seconds();
    return LeaseHold{std::make_shared<Lease>(std::move(lease)), waited};
  };
  parts.ceilings = [machine, home = paths.home] { return survey_ceilings(machine, home); };
  if (machine.target.family == "cuda")
    FORGE_TRY(add_cuda(parts, machine, program, paths.home));
  else
    FORGE_TRY(add_cpu(parts, machine, options, program));
  return parts;
}

Result<std::unique_ptr<Gate>> make_gate(const Paths& paths, const Task& task, const Machine& machine, const GateOptions& options) {
  FORGE_TRY_ASSIGN(GateParts parts, real_parts(paths, task.operator_name, machine, options));
  return std::make_unique<RealGate>(std::move(parts), task, machine, options);
}

}  // namespace forge
