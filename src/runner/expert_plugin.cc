// SPDX-License-Identifier: Apache-2.0
#include "runner/expert_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace forge {
namespace {

std::string text_or(const char* text, const char* otherwise) { return text && *text ? text : otherwise; }

}  // namespace

Answer ExpertPlugin::open(const std::string& path, const std::vector<std::int32_t>& cores, void* stream, ExpertPlugin& plugin) {
  const auto refuse = [](std::string why) -> Answer { return {wire::Outcome::load_failed, std::move(why)}; };
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return refuse(text_or(dlerror(), "dlopen failed"));
  auto* door = reinterpret_cast<const forge_expert_v1* (*)()>(dlsym(library, "forge_expert"));
  if (!door) return refuse(path + " has no forge_expert()");
  return guarded("create", [&]() -> Answer {
    const forge_expert_v1* api = door();
    if (!api || api->version != FORGE_EXPERT_VERSION)
      return refuse(fmt::format("{} speaks expert ABI {}, not {}", path, api ? api->version : 0, FORGE_EXPERT_VERSION));
    if (!api->create || !api->plan || !api->run || !api->error || (stream && !api->use_stream))
      return refuse(path + " leaves functions out" + (stream ? " (a GPU's expert needs use_stream)" : ""));
    void* self = api->create(static_cast<std::int32_t>(cores.size()), cores.data());
    if (!self) return refuse(path + ": create() failed");
    if (stream && api->use_stream(self, stream) != 0) return refuse(text_or(api->error(self), "use_stream() failed without a reason"));
    plugin.m_api = api;
    plugin.m_self = self;
    return {};
  });
}

Answer ExpertPlugin::plan(const forge_tensor* inputs, std::uint32_t input_count, const forge_tensor* outputs, std::uint32_t output_count) {
  return guarded("plan", [&]() -> Answer {
    if (m_api->plan(m_self, inputs, static_cast<std::int32_t>(input_count), outputs, static_cast<std::int32_t>(output_count)) != 0)
      return {wire::Outcome::refused, "plan: " + text_or(m_api->error(m_self), "refused without a reason")};
    if (m_api->prepare && m_api->prepare(m_self) != 0)
      return {wire::Outcome::refused, "prepare: " + text_or(m_api->error(m_self), "failed without a reason")};
    return {};
  });
}

Answer ExpertPlugin::run(double* inside_s) {
  return guarded("run", [&]() -> Answer {
    const double begin = clock_seconds();
    const bool ran = run_bare();
    if (inside_s) *inside_s = clock_seconds() - begin;
    if (!ran) return {wire::Outcome::refused, "run: " + text_or(m_api->error(m_self), "failed without a reason")};
    return {};
  });
}

void ExpertPlugin::describe(wire::Reply& reply) const {
  reply.composed = m_api->composed != 0;
  reply.allocates = m_api->allocates_in_run != 0;
  guarded("describe", [&]() -> Answer {
    copy_text(reply.text, text_or(m_api->describe ? m_api->describe(m_self) : nullptr, m_api->name));
    return {};
  });
}

}  // namespace forge
