// SPDX-License-Identifier: Apache-2.0
// Holds one expert: a shared object behind include/forge/expert.h, and the tensors of one planned call.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "runner/expert_plugin.h"
#include "runner/runner_sandbox.h"
#include "util/sandbox.h"

namespace forge {
namespace {

class ServedExpert final : public Served {
 public:
  explicit ServedExpert(ExpertPlugin plugin) : m_plugin(plugin) {}

  Answer prepare(const wire::Prepare& p) override {
    m_planned = false;
    const std::uint32_t count = p.input_count + p.output_count;
    if (p.input_count > wire::k_max_tensors || p.output_count > wire::k_max_tensors || count > wire::k_max_tensors)
      return {wire::Outcome::refused, "too many tensors"};
    std::copy_n(p.tensors, count, m_wire);
    for (std::uint32_t i = 0; i < count; ++i) {
      wire::Tensor& t = m_wire[i];
      if (t.rank < 0 || t.rank > wire::k_max_rank) return {wire::Outcome::refused, "a tensor's rank is out of range"};
      t.name[sizeof t.name - 1] = 0;
      m_tensors[i] = {t.name, t.address ? reinterpret_cast<void*>(t.address) : &t.scalar, t.code, t.bits, t.rank, t.shape};
    }
    const Answer a = m_plugin.plan(m_tensors, p.input_count, m_tensors + p.input_count, p.output_count);
    m_planned = a.outcome == wire::Outcome::ok;
    return a;
  }

  void ready(std::uint64_t) override {}  // no scrub: libraries keep their packed buffers where they like

  Answer call(double& inside_s) override {
    if (!m_planned) return {wire::Outcome::refused, "called before a plan"};
    return m_plugin.run(&inside_s);
  }

  void profile(double seconds, wire::Samples& samples) override {
    if (!m_planned) {
      samples.outcome = wire::Outcome::refused;
      copy_text(samples.note, "called before a plan");
      return;
    }
    const Answer a = ExpertPlugin::guarded("run", [&]() -> Answer {
      sample_profile(
          seconds, [&] { return m_plugin.run_bare(); }, samples);
      return {};
    });
    if (a.outcome != wire::Outcome::ok) copy_text(samples.note, a.text);
  }

  void describe(wire::Reply& reply) const override { m_plugin.describe(reply); }

 private:
  ExpertPlugin m_plugin;
  bool m_planned = false;
  wire::Tensor m_wire[wire::k_max_tensors];  // owns names, shapes and scalars that the views point to
  forge_tensor m_tensors[wire::k_max_tensors] = {};
};

}  // namespace

std::unique_ptr<Served> serve_expert(const wire::Load& load, wire::Reply& reply) {
  if (load.core_count == 0 || load.core_count > wire::k_max_cores) return refuse_load(reply, wire::Outcome::refused, "cores out of range");
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::uint32_t i = 0; i < load.core_count; ++i) CPU_SET(load.cores[i], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) return refuse_load(reply, wire::Outcome::broken, "cannot take the cores");
  install_fault_handlers(wire::k_channel_fd, nullptr);
  reply.features = wire::feature_no_new_privs;

  // The library is read from disk, so the door closes around its loading: reading stays possible, all else does not.
  const PathRule everything{"/", PathAccess::read_execute};
  if (landlock_allow({&everything, 1}) == 0) reply.features |= wire::feature_read_only_files;
  if (const int error = seal_expert_runner(); error != 0)
    return refuse_load(reply, wire::Outcome::broken, fmt::format("cannot install the system call filter (errno {})", error));
  reply.features |= wire::feature_seccomp | wire::feature_all_threads | wire::feature_no_speculation_cost;

  ExpertPlugin plugin;
  const std::vector<std::int32_t> cores(load.cores, load.cores + load.core_count);
  if (const Answer a = ExpertPlugin::open(text_of(load.plugin), cores, nullptr, plugin); a.outcome != wire::Outcome::ok)
    return refuse_load(reply, a.outcome, a.text);
  auto served = std::make_unique<ServedExpert>(plugin);
  served->describe(reply);
  return served;
}

}  // namespace forge
