// SPDX-License-Identifier: Apache-2.0
// The machine's ceilings, measured: one pinned worker a core (the pool that kernels run on), best of several repeats, because
// a neighbour can only make a repeat slower. The result is kept per boot and device class.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "device/cpu.h"
#include "device/peak_kernels.h"
#include "util/progress.h"

namespace forge {
namespace {

constexpr std::size_t k_smallest_buffer = std::size_t(64) << 20, k_largest_buffer = std::size_t(1) << 30;
constexpr double k_compute_seconds = 0.4, k_memory_seconds = 0.5;  // each of read and copy
constexpr int k_format = 1;

struct Job {
  bool wide = false;
  std::int64_t rounds = 0;
  std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t share = 0;              // bytes a worker
  alignas(64) float sinks[256 * 16];  // a cache line a worker
};

void fma_block(const void* args, const BlockInfo* b) {
  auto& job = *const_cast<Job*>(static_cast<const Job*>(args));
  float* sink = &job.sinks[b->index % 256 * 16];
  if (job.wide)
    fma_peak_avx512(job.rounds, sink);
  else
    fma_peak_avx2(job.rounds, sink);
}
void read_block(const void* args, const BlockInfo* b) {
  auto& job = *const_cast<Job*>(static_cast<const Job*>(args));
  job.sinks[b->index % 256 * 16] =
      static_cast<float>(read_stream_avx2(job.from + job.share * static_cast<std::size_t>(b->index), job.share) & 1);
}
void copy_block(const void* args, const BlockInfo* b) {
  const auto& job = *static_cast<const Job*>(args);
  const std::size_t at = job.share * static_cast<std::size_t>(b->index);
  copy_stream_avx2(job.to + at, job.from + at, job.share);
}

// Seconds of the fastest launch within the time given; at least five.
double fastest(WorkerPool& pool, EntryPoint entry, const Job& job, double seconds) {
  double best = 1e9;
  const double until = monotonic_seconds() + seconds;
  for (int i = 0; i < 5 || monotonic_seconds() < until; ++i) {
    pool.arm();
    const double begin = monotonic_seconds();
    pool.launch(entry, &job, pool.workers());
    best = std::min(best, monotonic_seconds() - begin);
  }
  return best;
}

struct Mapping {
  std::byte* p = nullptr;
  std::size_t bytes = 0;
  explicit Mapping(std::size_t n) : bytes(n) {
    void* m = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) return;
    p = static_cast<std::byte*>(m);
    madvise(m, n, MADV_HUGEPAGE);  // a ceiling: page walks are not the memory's fault
    std::fill_n(p, n, std::byte{1});
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (p) munmap(p, bytes);
  }
};

Result<Ceilings> measure(const Machine& machine, const std::vector<int>& cores) {
  FORGE_TRY_ASSIGN(auto pool, WorkerPool::make(cores));
  auto job = std::make_unique<Job>();
  Ceilings c;
  const double workers = pool->workers();

  job->wide = machine.target.vector_bits >= 512;
  job->rounds = 100'000;
  const double flops_a_round = job->wide ? fma_peak_avx512(1, job->sinks) : fma_peak_avx2(1, job->sinks);
  const double t = fastest(*pool, &fma_block, *job, k_compute_seconds);
  c.gflops = flops_a_round * static_cast<double>(job->rounds) * workers / t * 1e-9;

  const auto l3 = machine.properties.find("l3_bytes");
  const std::size_t beyond = l3 == machine.properties.end() ? 0 : static_cast<std::size_t>(l3->second) * 4;
  const std::size_t bytes = std::clamp(beyond, k_smallest_buffer, k_largest_buffer);
  job->share = bytes / static_cast<std::size_t>(pool->workers()) / 4096 * 4096;
  const Mapping from(bytes), to(bytes);
  if (!from.p || !to.p)
    return fail(Code::io, fmt::format("no memory for two buffers of {} MiB", bytes >> 20),
                "free memory: ceilings are measured beyond the last-level cache");
  job->from = from.p;
  job->to = to.p;
  const double moved = static_cast<double>(job->share) * workers;
  c.read_gbs = moved / fastest(*pool, &read_block, *job, k_memory_seconds) * 1e-9;
  c.copy_gbs = 2 * moved / fastest(*pool, &copy_block, *job, k_memory_seconds) * 1e-9;
  return c;
}

std::string cache_key(const Machine& m) {
  return fmt::format("forge-ceilings {} {} {} {} {}", k_format, m.boot_id, m.device_class, m.target.name, m.cores);
}

}  // namespace

Result<Ceilings> measure_ceilings(const Machine& machine, const fs::path& cache) {
  const std::string key = cache_key(machine);
  if (!cache.empty()) {
    if (const auto text = read_file(cache); text && text->rfind(key + "\n", 0) == 0) {
      Ceilings c;
      if (std::sscanf(text->c_str() + key.size(), "%lf %lf %lf", &c.gflops, &c.read_gbs, &c.copy_gbs) == 3 && c.gflops > 0 &&
          c.read_gbs > 0 && c.copy_gbs > 0)
        return c;
    }
  }
  // On a thread of its own: the pool pins its caller, and ours must stay where it was.
  const std::vector<int> cores = usable_cores();
  Result<Ceilings> result = fail(Code::internal, "not measured");
  std::thread([&] { result = measure(machine, cores); }).join();
  if (!result) return result;
  if (!cache.empty()) {
    if (const auto parent = cache.parent_path(); !parent.empty()) FORGE_TRY(make_dirs(parent));
    FORGE_TRY(write_file_atomic(cache, fmt::format("{}\n{:.6g} {:.6g} {:.6g}\n", key, result->gflops, result->read_gbs, result->copy_gbs)));
  }
  return result;
}

}  // namespace forge
