// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_driver.h"

#include <fmt/format.h>

#include <cstdlib>

#include "util/library.h"

namespace forge::cu {
namespace {

const Driver* g_instead = nullptr;

Result<Driver> open_driver() {
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // lazily, even an undefined function loads "successfully"
  Library library("libcuda.so.1");
  if (!library.found())
    return fail(Code::unsupported, "libcuda.so.1 was not found: this machine has no NVIDIA driver",
                "install the NVIDIA driver (Debian: apt-get install nvidia-driver), or choose a cpu target");
  Driver d;
  std::string missing;
#define FORGE_CUDA_OPEN(symbol, name, parameters) \
  library.find(d.name, #symbol);                  \
  if (!d.name) missing += (missing.empty() ? "" : ", ") + std::string(#symbol);
  FORGE_CUDA_FUNCTIONS(FORGE_CUDA_OPEN)
#undef FORGE_CUDA_OPEN
  if (!missing.empty())
    return fail(Code::unsupported, "the NVIDIA driver is too old: it lacks " + missing, "install a driver for CUDA 12 or later");
  if (const Status s = d.init(0); s != kSuccess)
    return fail(Code::unsupported, "the NVIDIA driver does not start: " + describe(d, s), "check the card with nvidia-smi");
  int count = 0;
  if (d.device_count(&count) != kSuccess || count == 0)
    return fail(Code::unsupported, "the NVIDIA driver sees no card", "check the card with nvidia-smi, and CUDA_VISIBLE_DEVICES");
  return d;
}

}  // namespace

void set_driver(const Driver* d) { g_instead = d; }

Result<const Driver*> driver() {
  if (g_instead) return g_instead;
  static const Result<Driver> opened = open_driver();
  if (!opened) return tl::unexpected(opened.error());
  return &*opened;
}

std::string describe(const Driver& d, Status s) {
  const char *name = nullptr, *text = nullptr;
  if (d.error_name(s, &name) != kSuccess || !name) name = "unknown error";
  if (d.error_text(s, &text) != kSuccess || !text) text = "";
  return fmt::format("{} ({}): {}", name, s, text);
}

forge::Status check(const Driver& d, Status s, const std::string& what) {
  if (s == kSuccess) return {};
  return fail(s == kOutOfMemory ? Code::io : Code::crashed, fmt::format("{} failed: {}", what, describe(d, s)));
}

}  // namespace forge::cu
