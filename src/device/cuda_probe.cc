// SPDX-License-Identifier: Apache-2.0
// What the first card is. Nothing is measured here.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>

#include "device/cuda.h"
#include "device/cuda_driver.h"
#include "device/nvml.h"
#include "util/text.h"

namespace forge {
namespace {

int attribute(const cu::Driver& d, int which) {
  int value = 0;
  d.device_attribute(&value, which, 0);
  return value;
}

std::string first_line(const char* file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return trim(line);
}

std::string architecture(const cu::Driver& d) { return fmt::format("sm_{}{}a", attribute(d, cu::kMajor), attribute(d, cu::kMinor)); }

}  // namespace

Result<TargetSpec> native_cuda_target() {
  FORGE_TRY_ASSIGN(const cu::Driver* d, cu::driver());
  return find_target("cuda:" + architecture(*d));
}

Result<Machine> probe_cuda(const TargetSpec& target) {
  if (target.family != "cuda") return fail(Code::bad_input, fmt::format("'{}' is not a cuda target", target.name));
  FORGE_TRY_ASSIGN(const cu::Driver* d, cu::driver());
  if (const std::string here = architecture(*d); target.name != "cuda:" + here)
    return fail(Code::unsupported, fmt::format("the card is {}, not {}", here, target.name), "choose cuda:" + here);
  Machine m;
  m.target = target;
  char name[128] = {};
  d->device_name(name, sizeof name, 0);
  m.model = trim(name);
  std::string short_name = m.model;
  std::replace(short_name.begin(), short_name.end(), ' ', '-');
  m.device_class = fmt::format("cuda:{}-{}", short_name, architecture(*d));
  m.boot_id = first_line("/proc/sys/kernel/random/boot_id");
  m.cores = 1;  // one card
  std::size_t memory = 0;
  d->device_memory(&memory, 0);
  m.properties = {{"sm_count", attribute(*d, cu::kSmCount)},
                  {"l2_bytes", attribute(*d, cu::kL2Bytes)},
                  {"shared_bytes_per_block", attribute(*d, cu::kMaxSharedPerBlockOptin)},
                  {"shared_bytes_per_sm", attribute(*d, cu::kSharedPerSm)},
                  {"registers_per_sm", attribute(*d, cu::kRegistersPerSm)},
                  {"memory_bytes", static_cast<std::int64_t>(memory)},
                  {"sm_mhz_max", attribute(*d, cu::kClockKHz) / 1000},
                  {"memory_mhz", attribute(*d, cu::kMemoryClockKHz) / 1000},
                  {"memory_bus_bits", attribute(*d, cu::kMemoryBusBits)}};
  int version = 0;
  d->driver_version(&version);
  m.environment["cuda"] = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  m.environment["driver"] = nvml_driver_version();
  m.environment["ecc"] = attribute(*d, cu::kEcc) ? "on" : "off";
  utsname kernel{};
  uname(&kernel);
  m.environment["kernel"] = fmt::format("{} {}", kernel.sysname, kernel.release);
  return m;
}

Result<std::string> read_device_code(const std::string& name, const TargetSpec& target) {
  std::error_code ec;
  const fs::path here = fs::read_symlink("/proc/self/exe", ec).parent_path();
  const std::string file = fmt::format("{}.{}.cubin", name, target.name.substr(target.name.find(':') + 1));
  for (const fs::path& folder : {here / "device", here / ".." / "lib/forge/device", here / ".." / "device"})
    if (fs::exists(folder / file, ec)) return read_file(folder / file);
  return fail(Code::unsupported, fmt::format("our own device code {} is not beside the program", file),
              "build with the CUDA toolkit in place (nvcc in PATH or /usr/local/cuda/bin)");
}

std::vector<std::string> cuda_findings() {
  const auto d = cu::driver();
  if (!d) return {"missing: " + d.error().text()};
  const auto target = native_cuda_target();
  if (!target) return {"missing: " + target.error().text()};
  const auto m = probe_cuda(*target);
  if (!m) return {"missing: " + m.error().text()};
  return {fmt::format("{} ({}), {} SMs, driver {}, CUDA {}", m->model, target->name, m->properties.at("sm_count"),
                      m->environment.at("driver"), m->environment.at("cuda"))};
}

}  // namespace forge
