// SPDX-License-Identifier: Apache-2.0
// Holds one expert of a GPU: a shared object behind include/forge/expert.h that has use_stream, and the tensors of one planned call.
#include <fmt/format.h>

#include <algorithm>

#include "runner/cuda_serve.h"
#include "runner/expert_plugin.h"

namespace forge {
namespace {

class ServedCudaExpert final : public CudaServed {
 public:
  ServedCudaExpert(CudaVehicle& vehicle, ExpertPlugin plugin) : m_vehicle(vehicle), m_plugin(plugin) {}

  Answer prepare(const wire::CudaPrepare& p, const CudaImports& imports) override {
    if (p.slot != 0) return {wire::Outcome::refused, "an expert has slot 0 only; its batches repeat that"};
    m_planned = false;
    if (p.input_count > wire::k_max_tensors || p.output_count > wire::k_max_tensors - p.input_count)
      return {wire::Outcome::refused, "too many tensors"};
    const std::uint32_t count = p.input_count + p.output_count;
    std::copy_n(p.tensors, count, m_wire);
    for (std::uint32_t i = 0; i < count; ++i) {
      wire::CudaTensor& t = m_wire[i];
      if (t.rank < 0 || t.rank > wire::k_max_rank) return {wire::Outcome::refused, "a tensor's rank is out of range"};
      t.name[sizeof t.name - 1] = 0;
      void* data = &t.scalar;
      if (t.place.allocation != 0) {
        std::uint64_t bytes = (t.bits + 7u) / 8;
        for (int r = 0; r < t.rank; ++r) bytes *= static_cast<std::uint64_t>(t.shape[r]);
        data = reinterpret_cast<void*>(imports.at(t.place, bytes));
        if (!data) return {wire::Outcome::refused, fmt::format("tensor '{}' is out of range", t.name)};
      }
      m_tensors[i] = {t.name, data, t.code, t.bits, t.rank, t.shape};
    }
    const Answer a = m_plugin.plan(m_tensors, p.input_count, m_tensors + p.input_count, p.output_count);
    const Answer waited = m_vehicle.wait();
    if (a.outcome != wire::Outcome::ok) return a;
    m_planned = waited.outcome == wire::Outcome::ok;
    return waited;
  }

  Answer scrub(std::uint64_t) override { return {}; }  // libraries keep what they like where they like

  Answer queue(std::uint32_t) override {
    if (!m_planned) return {wire::Outcome::refused, "called before a plan"};
    return m_plugin.run();
  }

  void describe(wire::Reply& reply) const override { m_plugin.describe(reply); }

 private:
  CudaVehicle& m_vehicle;
  ExpertPlugin m_plugin;
  bool m_planned = false;
  wire::CudaTensor m_wire[wire::k_max_tensors];  // owns names, shapes and scalars that the views point to
  forge_tensor m_tensors[wire::k_max_tensors] = {};
};

}  // namespace

Result<std::unique_ptr<CudaServed>> serve_cuda_expert(CudaVehicle& vehicle, const std::string& path) {
  ExpertPlugin plugin;
  if (const Answer a = ExpertPlugin::open(path, {0}, vehicle.stream(), plugin); a.outcome != wire::Outcome::ok)
    return fail(Code::unsupported, a.text);
  return std::make_unique<ServedCudaExpert>(vehicle, plugin);
}

}  // namespace forge
