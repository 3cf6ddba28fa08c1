// SPDX-License-Identifier: Apache-2.0
#include "device/nvml.h"

#include <cstdint>

#include "device/cuda_driver.h"
#include "util/library.h"

namespace forge {
namespace {

using Device = void*;
struct ProcessInfo {  // nvmlProcessInfo_t, version 2 and 3
  unsigned pid;
  unsigned long long used;
  unsigned instance, compute_instance;
};
struct Nvml {
  int (*init)() = nullptr;
  int (*first)(unsigned, Device*) = nullptr;
  int (*at_bus)(const char*, Device*) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*reasons)(Device, unsigned long long*) = nullptr;
  int (*processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  Device card = nullptr;
  bool ready = false;
};

// The card that the driver calls 0. The library counts in an order of its own and does not know CUDA_VISIBLE_DEVICES: on a host with
// several cards its first is often another one.
bool find_card(Nvml& n) {
  const auto d = cu::driver();
  if (!d) return n.first(0, &n.card) == 0;
  char bus[32] = {};
  return (*d)->device_bus_id(bus, sizeof bus, 0) == cu::kSuccess && n.at_bus(bus, &n.card) == 0;
}

const Nvml& nvml() {
  static const Nvml opened = [] {
    Nvml n;
    Library library("libnvidia-ml.so.1");
    library.find(n.init, "nvmlInit_v2");
    library.find(n.first, "nvmlDeviceGetHandleByIndex_v2");
    library.find(n.at_bus, "nvmlDeviceGetHandleByPciBusId_v2");
    library.find(n.driver_version, "nvmlSystemGetDriverVersion");
    library.find(n.temperature, "nvmlDeviceGetTemperature");
    library.find(n.power, "nvmlDeviceGetPowerUsage");
    library.find(n.reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
    library.find(n.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
    n.ready = n.init && n.first && n.at_bus && n.init() == 0 && find_card(n);
    return n;
  }();
  return opened;
}

// nvmlClocksThrottleReasons, bit by bit; idle (1) and application clocks (2) are no throttling.
constexpr struct {
  unsigned long long bit;
  const char* text;
} kReasons[] = {{0x4, "power cap"},         {0x8, "hardware slowdown"}, {0x20, "thermal slowdown (software)"},
                {0x40, "thermal slowdown"}, {0x80, "power brake"},      {0x10, "sync boost"}};

}  // namespace

CardState card_state() {
  CardState s;
  const Nvml& n = nvml();
  if (!n.ready) return s;
  unsigned value = 0;
  if (n.temperature && n.temperature(n.card, 0, &value) == 0) s.temperature_c = value;
  if (n.power && n.power(n.card, &value) == 0) s.power_w = value / 1e3;
  unsigned long long reasons = 0;
  if (n.reasons && n.reasons(n.card, &reasons) == 0)
    for (const auto& r : kReasons)
      if (reasons & r.bit) s.throttle += (s.throttle.empty() ? "" : ", ") + std::string(r.text);
  ProcessInfo list[64];
  unsigned count = 64;
  if (n.processes && n.processes(n.card, &count, list) == 0) s.processes = static_cast<int>(count);
  return s;
}

std::vector<int> card_processes() {
  std::vector<int> ids;
  const Nvml& n = nvml();
  ProcessInfo list[64];
  unsigned count = 64;
  if (n.ready && n.processes && n.processes(n.card, &count, list) == 0)
    for (unsigned i = 0; i < count && i < 64; ++i) ids.push_back(static_cast<int>(list[i].pid));
  return ids;
}

std::string nvml_driver_version() {
  char text[96] = {};
  const Nvml& n = nvml();
  if (n.ready && n.driver_version && n.driver_version(text, sizeof text) == 0) return text;
  return "unknown: no libnvidia-ml.so.1";
}

}  // namespace forge
