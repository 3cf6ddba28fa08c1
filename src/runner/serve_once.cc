// SPDX-License-Identifier: Apache-2.0
// One call for a profiler's eyes. Its memory is this process's own, so what lies in it is drawn here: N(0,1) in the inputs whose type
// is a floating-point one, since what a card does, and how fast, depends on its operands' bits; zero elsewhere.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include "device/cuda.h"
#include "forge/fill.h"
#include "runner/cuda_serve.h"

namespace forge {
namespace {

constexpr std::size_t kPeriod = 1'048'573;  // elements, a prime: rows and tiles of any even size differ

// The pattern as bytes of a DLPack type; empty where such a tensor stays zero.
std::string pattern_of(std::uint8_t code, std::uint8_t bits) {
  const bool bf16 = code == 4 && bits == 16;
  if (!bf16 && !(code == 2 && (bits == 16 || bits == 32 || bits == 64))) return {};
  fill::Source source(0x0ca11);
  std::string out;
  out.reserve(kPeriod * bits / 8);
  const auto put = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (std::size_t i = 0; i < kPeriod; ++i) {
    const double x = source.normal();
    if (bf16)
      put(fill::float_to_bf16(float(x)));
    else if (bits == 16)
      put(fill::float_to_f16(float(x)));
    else if (bits == 32)
      put(float(x));
    else
      put(x);
  }
  return out;
}

Status expect_ok(const Answer& a) { return a.outcome == wire::Outcome::ok ? Status() : fail(Code::crashed, a.text); }

Status fill_inputs(const cu::Driver& d, const wire::CudaPrepare& p, const CudaImports& imports) {
  std::map<std::pair<int, int>, std::string> patterns;
  for (std::uint32_t i = 0; i < p.input_count; ++i) {
    const wire::CudaTensor& t = p.tensors[i];
    if (t.place.allocation == 0 || t.rank < 0 || t.rank > wire::k_max_rank) continue;
    std::string& pattern = patterns[{t.code, t.bits}];
    if (pattern.empty()) pattern = pattern_of(t.code, t.bits);
    if (pattern.empty()) continue;
    std::uint64_t bytes = t.bits / 8;
    for (int r = 0; r < t.rank; ++r) bytes *= static_cast<std::uint64_t>(t.shape[r]);
    const std::uint64_t address = imports.at(t.place, bytes);
    if (address == 0)
      return fail(Code::bad_input,
                  fmt::format("input '{}' does not lie in an allocation", std::string(t.name, strnlen(t.name, sizeof t.name))));
    for (std::uint64_t done = 0; done < bytes; done += pattern.size()) {
      const std::size_t piece = std::min<std::uint64_t>(pattern.size(), bytes - done);
      FORGE_TRY(cu::check(d, d.copy_to_device(address + done, pattern.data(), piece), "filling an input"));
    }
  }
  return {};
}

}  // namespace

Result<std::string> run_once(const cu::Driver& d, const std::string& runner_code, const OnceFile& file, const std::function<void()>& seal) {
  FORGE_TRY_ASSIGN(const auto vehicle, CudaVehicle::make(d, runner_code));
  std::vector<std::string> entries;
  for (std::uint32_t i = 0; i < file.load->entry_count; ++i) entries.push_back(text_of(file.load->entries[i]));
  FORGE_TRY_ASSIGN(const auto served, file.cubin.empty() ? serve_cuda_expert(*vehicle, text_of(file.load->plugin))
                                                         : serve_cuda_image(*vehicle, file.cubin, std::move(entries)));
  CudaImports imports(d);
  std::uint64_t address = 0;
  for (const wire::CudaImport& import : file.imports) FORGE_TRY(expect_ok(imports.allocate(import, address)));
  FORGE_TRY(fill_inputs(d, *file.prepare, imports));
  FORGE_TRY(expect_ok(served->prepare(*file.prepare, imports)));
  FORGE_TRY(expect_ok(vehicle->wait()));
  if (!file.cubin.empty()) seal();
  FORGE_TRY(cu::check(d, d.profiler_start(), "starting the profiler"));
  FORGE_TRY(expect_ok(served->queue(0)));
  FORGE_TRY(expect_ok(vehicle->wait()));
  FORGE_TRY(cu::check(d, d.profiler_stop(), "stopping the profiler"));
  wire::Reply reply;
  served->describe(reply);
  return text_of(reply.text);
}

int serve_once(const std::string& path) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a profiler that is killed leaves nothing on the card
  const auto run = [&]() -> Result<std::string> {
    FORGE_TRY_ASSIGN(const OnceFile file, read_once_file(path));
    FORGE_TRY_ASSIGN(const cu::Driver* d, cu::driver());
    FORGE_TRY_ASSIGN(const TargetSpec target, native_cuda_target());
    FORGE_TRY_ASSIGN(const std::string code, read_device_code("runner", target));
    return run_once(*d, code, file, [&] { seal_cuda_runner(fs::path(path).parent_path().string()); });
  };
  const auto made = run();
  if (!made)
    fmt::print(stderr, "forge-runner --once: {}\n", made.error().text());
  else if (!made->empty())
    fmt::print("made: {}\n", *made);
  return made ? 0 : 1;
}

}  // namespace forge
