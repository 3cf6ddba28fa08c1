// SPDX-License-Identifier: Apache-2.0
// What the first card can do, by kernels of our own (kernels/ceilings.cu), each the best of several runs behind an idle gap, since a
// roofline is a ceiling.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "device/cuda.h"
#include "device/cuda_driver.h"

namespace forge {
namespace {

constexpr int kFormat = 2, kRepeats = 8;
constexpr useconds_t kGapUs = 20000;  // between paced runs: the clock of a cool card, as a single call sees it
constexpr std::size_t kBytes = std::size_t(2) << 30;

struct Args {
  std::uint64_t from, to, bytes;
  std::uint32_t rounds, unused;
};

class Bench {
 public:
  static Result<Bench> make(const Machine& machine) {
    Bench b;
    FORGE_TRY_ASSIGN(b.m_driver, cu::driver());
    FORGE_TRY_ASSIGN(b.m_context, CudaContext::make());
    FORGE_TRY_ASSIGN(const std::string code, read_device_code("ceilings", machine.target));
    FORGE_TRY_ASSIGN(CudaModule module, CudaModule::load(code));
    b.m_code = std::make_unique<CudaModule>(std::move(module));
    FORGE_TRY_ASSIGN(const std::string helpers, read_device_code("runner", machine.target));
    FORGE_TRY_ASSIGN(CudaModule fill, CudaModule::load(helpers));
    FORGE_TRY_ASSIGN(b.m_from, DeviceMemory::make(kBytes));
    FORGE_TRY_ASSIGN(b.m_to, DeviceMemory::make(kBytes));
    struct {
      std::uint64_t address, bytes, seed;
    } random{b.m_from.data(), kBytes, 1};
    FORGE_TRY(fill.launch("forge_fill_random", 1024, 256, 0, &random));
    FORGE_TRY(b.m_context->synchronize());
    for (cu::Handle* event : {&b.m_begin, &b.m_end})
      FORGE_TRY(cu::check(*b.m_driver, b.m_driver->event_create(event, 0), "making an event"));
    return b;
  }

  // Seconds of the fastest run.
  Result<double> fastest(const char* entry, std::int64_t grid, int block, std::int64_t shared, std::uint32_t rounds) {
    const Args args{m_from.data(), m_to.data(), kBytes, rounds, 0};
    if (shared > 0)
      FORGE_TRY(cu::check(*m_driver, m_driver->function_set(m_code->function(entry), cu::kFunctionMaxDynamicShared, int(shared)), entry));
    double best = 0;
    for (int i = 0; i < kRepeats; ++i) {
      usleep(kGapUs);
      FORGE_TRY(cu::check(*m_driver, m_driver->event_record(m_begin, nullptr), "an event"));
      FORGE_TRY(m_code->launch(entry, grid, block, shared, &args));
      FORGE_TRY(cu::check(*m_driver, m_driver->event_record(m_end, nullptr), "an event"));
      FORGE_TRY(m_context->synchronize());
      float ms = 0;
      FORGE_TRY(cu::check(*m_driver, m_driver->event_elapsed(&ms, m_begin, m_end), "reading the events"));
      if (i > 0 && ms > 0) best = best == 0 ? ms * 1e-3 : std::min(best, ms * 1e-3);
    }
    if (best == 0) return fail(Code::internal, fmt::format("{} took no time", entry));
    return best;
  }

 private:
  const cu::Driver* m_driver = nullptr;
  std::shared_ptr<CudaContext> m_context;
  std::unique_ptr<CudaModule> m_code;
  DeviceMemory m_from, m_to;
  cu::Handle m_begin = nullptr, m_end = nullptr;
};

Result<Ceilings> measure(const Machine& machine) {
  FORGE_TRY_ASSIGN(Bench bench, Bench::make(machine));
  const std::int64_t sms = std::max<std::int64_t>(1, machine.properties.at("sm_count"));
  Ceilings c;
  // Persistent blocks, some waves, and a block for every 32 KiB: which is fastest differs by card.
  double read = 0, copy = 0;
  for (const std::int64_t grid : {4 * sms, 8 * sms, 32 * sms, std::int64_t(kBytes / (512 * 4 * 16))}) {
    FORGE_TRY_ASSIGN(const double r, bench.fastest("ceiling_read", grid, 512, 0, 1));
    FORGE_TRY_ASSIGN(const double w, bench.fastest("ceiling_copy", grid, 512, 0, 1));
    read = read == 0 ? r : std::min(read, r);
    copy = copy == 0 ? w : std::min(copy, w);
  }
  constexpr std::uint32_t kFmaRounds = 24000, kMatrixRounds = 900;  // about 1 ms each on an H200
  FORGE_TRY_ASSIGN(const double fma, bench.fastest("ceiling_fma", 4 * sms, 512, 0, kFmaRounds));
  c.read_gbs = double(kBytes) / read * 1e-9;
  c.copy_gbs = 2.0 * double(kBytes) / copy * 1e-9;
  c.gflops = 2.0 * 16 * kFmaRounds * 512 * 4 * double(sms) / fma * 1e-9;
  FORGE_TRY_ASSIGN(const double matrix, bench.fastest("ceiling_matrix", sms, 256, 4 * 48 * 1024 + 1024, kMatrixRounds));
  c.matrix_gflops = 2.0 * 64 * 256 * 16 * 16 * 2 * kMatrixRounds * double(sms) / matrix * 1e-9;
  return c;
}

}  // namespace

Result<Ceilings> measure_cuda_ceilings(const Machine& machine, const fs::path& cache) {
  const std::string key = fmt::format("forge-ceilings {} {} {} {}", kFormat, machine.boot_id, machine.device_class, machine.target.name);
  if (!cache.empty())
    if (const auto text = read_file(cache); text && text->rfind(key + "\n", 0) == 0) {
      Ceilings c;
      if (std::sscanf(text->c_str() + key.size(), "%lf %lf %lf %lf", &c.gflops, &c.read_gbs, &c.copy_gbs, &c.matrix_gflops) == 4 &&
          c.gflops > 0 && c.read_gbs > 0 && c.copy_gbs > 0)
        return c;
    }
  FORGE_TRY_ASSIGN(const Ceilings c, measure(machine));
  if (!cache.empty()) {
    if (const auto parent = cache.parent_path(); !parent.empty()) FORGE_TRY(make_dirs(parent));
    FORGE_TRY(
        write_file_atomic(cache, fmt::format("{}\n{:.6g} {:.6g} {:.6g} {:.6g}\n", key, c.gflops, c.read_gbs, c.copy_gbs, c.matrix_gflops)));
  }
  return c;
}

}  // namespace forge
