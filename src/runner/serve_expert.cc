// SPDX-License-Identifier: Apache-2.0
// Holds one expert: a shared object behind include/forge/expert.h, and the tensors of one planned call.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <exception>
#include <new>

#include "forge/expert.h"
#include "runner/runner_sandbox.h"
#include "runner/serve.h"
#include "util/sandbox.h"

namespace forge {
namespace {

std::string text_or(const char* text, const char* otherwise) { return text && *text ? text : otherwise; }

// Experts are C++ behind a C door: what they throw must not end the process without a word.
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

class ServedExpert final : public Served {
 public:
  ServedExpert(const forge_expert_v1* api, void* self) : m_api(api), m_self(self) {}

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
    const auto inputs = static_cast<std::int32_t>(p.input_count), outputs = static_cast<std::int32_t>(p.output_count);
    const Answer a = guarded("plan", [&]() -> Answer {
      if (m_api->plan(m_self, m_tensors, inputs, m_tensors + p.input_count, outputs) != 0)
        return {wire::Outcome::refused, "plan: " + text_or(m_api->error(m_self), "refused without a reason")};
      if (m_api->prepare && m_api->prepare(m_self) != 0)
        return {wire::Outcome::refused, "prepare: " + text_or(m_api->error(m_self), "failed without a reason")};
      return {};
    });
    m_planned = a.outcome == wire::Outcome::ok;
    return a;
  }

  void ready(std::uint64_t) override {}  // no scrub: libraries keep their packed buffers where they like

  Answer call(double& inside_s) override {
    if (!m_planned) return {wire::Outcome::refused, "called before a plan"};
    return guarded("run", [&]() -> Answer {
      const double begin = clock_seconds();
      const std::int32_t r = m_api->run(m_self);
      inside_s = clock_seconds() - begin;
      if (r != 0) return {wire::Outcome::refused, "run: " + text_or(m_api->error(m_self), "failed without a reason")};
      return {};
    });
  }

  void profile(double seconds, wire::Samples& samples) override {
    if (!m_planned) {
      samples.outcome = wire::Outcome::refused;
      copy_text(samples.note, "called before a plan");
      return;
    }
    const Answer a = guarded("run", [&]() -> Answer {
      sample_profile(
          seconds, [&] { return m_api->run(m_self) == 0; }, samples);
      return {};
    });
    if (a.outcome != wire::Outcome::ok) copy_text(samples.note, a.text);
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
  const forge_expert_v1* m_api;
  void* m_self;
  bool m_planned = false;
  wire::Tensor m_wire[wire::k_max_tensors];  // owns names, shapes and scalars that the views point to
  forge_tensor m_tensors[wire::k_max_tensors] = {};
};

std::unique_ptr<Served> refuse(wire::Reply& reply, wire::Outcome outcome, const std::string& why) {
  reply.outcome = outcome;
  copy_text(reply.text, why);
  return nullptr;
}

}  // namespace

std::unique_ptr<Served> serve_expert(const wire::Load& load, wire::Reply& reply) {
  if (load.core_count == 0 || load.core_count > wire::k_max_cores) return refuse(reply, wire::Outcome::refused, "cores out of range");
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::uint32_t i = 0; i < load.core_count; ++i) CPU_SET(load.cores[i], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) return refuse(reply, wire::Outcome::broken, "cannot take the cores");
  install_fault_handlers(wire::k_channel_fd, nullptr);
  reply.features = wire::feature_no_new_privs;

  // The library is read from disk, so the door closes around its loading: reading stays possible, all else does not.
  const PathRule everything{"/", PathAccess::read_execute};
  if (landlock_allow({&everything, 1}) == 0) reply.features |= wire::feature_read_only_files;
  if (const int error = seal_expert_runner(); error != 0)
    return refuse(reply, wire::Outcome::broken, fmt::format("cannot install the system call filter (errno {})", error));
  reply.features |= wire::feature_seccomp | wire::feature_all_threads | wire::feature_no_speculation_cost;

  const std::string path = text_of(load.plugin);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return refuse(reply, wire::Outcome::load_failed, text_or(dlerror(), "dlopen failed"));
  auto* door = reinterpret_cast<const forge_expert_v1* (*)()>(dlsym(library, "forge_expert"));
  if (!door) return refuse(reply, wire::Outcome::load_failed, path + " has no forge_expert()");
  std::unique_ptr<Served> served;
  const Answer a = guarded("create", [&]() -> Answer {
    const forge_expert_v1* api = door();
    if (!api || api->version != FORGE_EXPERT_VERSION)
      return {wire::Outcome::load_failed,
              fmt::format("{} speaks expert ABI {}, not {}", path, api ? api->version : 0, FORGE_EXPERT_VERSION)};
    if (!api->create || !api->plan || !api->run || !api->error) return {wire::Outcome::load_failed, path + " leaves functions out"};
    void* self = api->create(static_cast<std::int32_t>(load.core_count), load.cores);
    if (!self) return {wire::Outcome::load_failed, path + ": create() failed"};
    served = std::make_unique<ServedExpert>(api, self);
    served->describe(reply);
    return {};
  });
  if (a.outcome != wire::Outcome::ok) return refuse(reply, a.outcome, a.text);
  return served;
}

}  // namespace forge
