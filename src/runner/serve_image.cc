// SPDX-License-Identifier: Apache-2.0
// Holds one image: the loader, the worker pool, and one prepared call.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runner/runner_sandbox.h"
#include "runner/serve.h"
#include "util/sandbox.h"

namespace forge {
namespace {

struct ZeroJob {
  wire::Range ranges[wire::k_max_buffers];
  std::uint32_t count = 0;
};

// Each worker clears its share of every range. Runs as a launch with one block a worker.
void zero_blocks(const void* args, const BlockInfo* block) {
  const auto& job = *static_cast<const ZeroJob*>(args);
  for (std::uint32_t i = 0; i < job.count; ++i) {
    const wire::Range& r = job.ranges[i];
    const std::uint64_t share = (r.bytes / static_cast<std::uint64_t>(block->count) + 63) / 64 * 64;
    const std::uint64_t begin = std::min(r.bytes, share * static_cast<std::uint64_t>(block->index));
    const std::uint64_t end = block->index + 1 == block->count ? r.bytes : std::min(r.bytes, begin + share);
    std::memset(reinterpret_cast<void*>(r.address + begin), 0, end - begin);
  }
}

class ServedImage final : public Served {
 public:
  ServedImage(LoadedImage image, std::unique_ptr<WorkerPool> pool, std::vector<EntryPoint> entries)
      : m_image(std::move(image)), m_pool(std::move(pool)), m_entries(std::move(entries)) {}

  Answer prepare(const wire::Prepare& p) override {
    if (p.launch_count > wire::k_max_launches || p.zero_count > wire::k_max_buffers || p.args_bytes > wire::k_max_args)
      return {wire::Outcome::refused, "more launches, ranges or arguments than a message holds"};
    for (std::uint32_t i = 0; i < p.launch_count; ++i)
      if (p.launches[i].entry >= m_entries.size()) return {wire::Outcome::refused, "a launch of an unknown entry"};
    if (const auto s = m_pool->reserve_scratch(p.scratch_bytes); !s) return {wire::Outcome::out_of_memory, s.error().text()};
    m_call = p;
    std::copy_n(p.zeros, p.zero_count, m_zero.ranges);
    m_zero.count = p.zero_count;
    std::memcpy(m_args, p.args, p.args_bytes);
    return {};
  }

  void ready(std::uint64_t pattern) override { m_pool->scrub(pattern); }

  Answer call(double& inside_s) override {
    m_pool->arm();
    const double begin = clock_seconds();
    if (m_zero.count > 0) m_pool->launch(&zero_blocks, &m_zero, m_pool->workers());
    for (std::uint32_t i = 0; i < m_call.launch_count; ++i)
      m_pool->launch(m_entries[m_call.launches[i].entry], m_args, m_call.launches[i].grid);
    inside_s = clock_seconds() - begin;
    return {};
  }

  void profile(double, wire::Samples& s) override { copy_text(s.note, "images are not sampled: disassemble the object"); }

 private:
  LoadedImage m_image;
  std::unique_ptr<WorkerPool> m_pool;
  std::vector<EntryPoint> m_entries;
  wire::Prepare m_call{};
  ZeroJob m_zero;
  alignas(64) unsigned char m_args[wire::k_max_args] = {};
};

}  // namespace

std::unique_ptr<Served> serve_image(const wire::Load& load, int image_fd, wire::Reply& reply) {
  if (load.core_count == 0 || load.core_count > wire::k_max_cores || load.entry_count > wire::k_max_entries)
    return refuse_load(reply, wire::Outcome::refused, "cores or entries out of range");
  std::string object;
  if (!read_image(image_fd, load.object_bytes, object))
    return refuse_load(reply, wire::Outcome::broken, "the image file is shorter than announced");
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < load.entry_count; ++i) names.push_back(text_of(load.entries[i]));

  auto image = LoadedImage::load(object, names);
  if (!image) return refuse_load(reply, wire::Outcome::load_failed, image.error().text());
  std::vector<EntryPoint> entries;
  for (const auto& name : names) entries.push_back(image->entry(name));

  auto pool = WorkerPool::make(std::vector<int>(load.cores, load.cores + load.core_count));
  if (!pool) return refuse_load(reply, wire::Outcome::broken, pool.error().text());
  install_fault_handlers(wire::k_channel_fd, pool->get());

  // The last steps before foreign code may run: no more threads, no more calls than the loop above needs.
  bool limits = limit(RLIMIT_NPROC, 0) == 0;
  reply.features = wire::feature_no_new_privs | (limits ? std::uint32_t(wire::feature_limits) : 0u);
  auto served = std::make_unique<ServedImage>(std::move(*image), std::move(*pool), std::move(entries));
  if (const int error = seal_image_runner(); error != 0)
    return refuse_load(reply, wire::Outcome::broken, fmt::format("cannot install the system call filter (errno {})", error));
  reply.features |= wire::feature_seccomp | wire::feature_all_threads | wire::feature_no_speculation_cost;
  return served;
}

}  // namespace forge
