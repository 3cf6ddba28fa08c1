// SPDX-License-Identifier: Apache-2.0
// Holds one expert of a GPU: a shared object behind include/forge/expert.h that has use_stream, and the tensors of one planned call.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>

#include "forge/expert.h"
#include "runner/cuda_serve.h"

namespace forge {
namespace {

std::string text_or(const char* text, const char* otherwise) { return text && *text ? text : otherwise; }

template <class F>
Answer guarded(const char* what, F&& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return {wire::Outcome::out_of_memory, fmt::format("{}: out of memory", what)};
  } catch (const std::exception& e) {
    return {wire::Outcome::refused, fmt::format("{}: {}", what, e.what())};
  } catch (...) {
    return {wire::Outcome::refused, fmt::format("{}: threw something", what)};
  }
}

class ServedCudaExpert final : public CudaServed {
 public:
  ServedCudaExpert(CudaVehicle& vehicle, const forge_expert_v1* api, void* self) : m_vehicle(vehicle), m_api(api), m_self(self) {}

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
    const auto inputs = static_cast<std::int32_t>(p.input_count), outputs = static_cast<std::int32_t>(p.output_count);
    const Answer a = guarded("plan", [&]() -> Answer {
      if (m_api->plan(m_self, m_tensors, inputs, m_tensors + p.input_count, outputs) != 0)
        return {wire::Outcome::refused, "plan: " + text_or(m_api->error(m_self), "refused without a reason")};
      if (m_api->prepare && m_api->prepare(m_self) != 0)
        return {wire::Outcome::refused, "prepare: " + text_or(m_api->error(m_self), "failed without a reason")};
      return {};
    });
    const Answer waited = m_vehicle.wait();
    if (a.outcome != wire::Outcome::ok) return a;
    m_planned = waited.outcome == wire::Outcome::ok;
    return waited;
  }

  Answer scrub(std::uint64_t) override { return {}; }  // libraries keep what they like where they like

  Answer queue(std::uint32_t) override {
    if (!m_planned) return {wire::Outcome::refused, "called before a plan"};
    return guarded("run", [&]() -> Answer {
      if (m_api->run(m_self) != 0) return {wire::Outcome::refused, "run: " + text_or(m_api->error(m_self), "failed without a reason")};
      return {};
    });
  }

  void describe(wire::Reply& reply) const override {
    reply.composed = m_api->composed != 0;
    reply.allocates = m_api->allocates_in_run != 0;
    guarded("describe", [&]() -> Answer {
      copy_text(reply.text, text_or(m_api->describe ? m_api->describe(m_self) : nullptr, m_api->name));
      return {};
    });
  }

 private:
  CudaVehicle& m_vehicle;
  const forge_expert_v1* m_api;
  void* m_self;
  bool m_planned = false;
  wire::CudaTensor m_wire[wire::k_max_tensors];  // owns names, shapes and scalars that the views point to
  forge_tensor m_tensors[wire::k_max_tensors] = {};
};

}  // namespace

Result<std::unique_ptr<CudaServed>> serve_cuda_expert(CudaVehicle& vehicle, const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return fail(Code::unsupported, text_or(dlerror(), "dlopen failed"));
  auto* door = reinterpret_cast<const forge_expert_v1* (*)()>(dlsym(library, "forge_expert"));
  if (!door) return fail(Code::unsupported, path + " has no forge_expert()");
  std::unique_ptr<CudaServed> served;
  const Answer a = guarded("create", [&]() -> Answer {
    const forge_expert_v1* api = door();
    if (!api || api->version != FORGE_EXPERT_VERSION)
      return {wire::Outcome::load_failed, fmt::format("{} speaks expert ABI {}, not {}", path, api ? api->version : 0, FORGE_EXPERT_VERSION)};
    if (!api->create || !api->plan || !api->run || !api->error || !api->use_stream)
      return {wire::Outcome::load_failed, path + " leaves functions out (a GPU's expert needs use_stream)"};
    const std::int32_t core = 0;
    void* self = api->create(1, &core);
    if (!self) return {wire::Outcome::load_failed, path + ": create() failed"};
    if (api->use_stream(self, vehicle.stream()) != 0)
      return {wire::Outcome::load_failed, text_or(api->error(self), "use_stream() failed without a reason")};
    served = std::make_unique<ServedCudaExpert>(vehicle, api, self);
    return {};
  });
  if (a.outcome != wire::Outcome::ok) return fail(Code::unsupported, a.text);
  return served;
}

}  // namespace forge
