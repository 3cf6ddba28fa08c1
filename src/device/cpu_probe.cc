// SPDX-License-Identifier: Apache-2.0
// What this machine is, from CPUID, sysfs and procfs. Nothing is measured here.
#include <cpuid.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "device/cpu.h"
#include "util/text.h"

namespace forge {
namespace {

struct Identity {
  std::string vendor, brand;
  unsigned family = 0, model = 0;
  bool hypervisor = false;
  std::string hypervisor_vendor;
};

std::string registers_text(std::initializer_list<unsigned> words) {
  std::string text;
  for (const unsigned w : words) text.append(reinterpret_cast<const char*>(&w), sizeof w);
  return text.substr(0, text.find('\0'));
}

Identity identify() {
  Identity id;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d)) id.vendor = registers_text({b, d, c});
  if (__get_cpuid(1, &a, &b, &c, &d)) {
    const unsigned base = a >> 8 & 15;
    id.family = base == 15 ? base + (a >> 20 & 255) : base;
    id.model = (a >> 4 & 15) | (base == 15 || base == 6 ? (a >> 16 & 15) << 4 : 0);
    id.hypervisor = (c >> 31 & 1) != 0;
  }
  if (id.hypervisor) {
    __cpuid(0x40000000, a, b, c, d);
    id.hypervisor_vendor = trim(registers_text({b, c, d}));
  }
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf)
    if (__get_cpuid(leaf, &a, &b, &c, &d)) id.brand += registers_text({a, b, c, d});
  id.brand = trim(id.brand);
  return id;
}

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return trim(line);
}

// "48K" and "2M" as sysfs writes them.
std::int64_t parse_size(const std::string& text) {
  char* end = nullptr;
  const std::int64_t n = std::strtoll(text.c_str(), &end, 10);
  const char unit = end && *end ? *end : ' ';
  return unit == 'K' ? n << 10 : unit == 'M' ? n << 20 : unit == 'G' ? n << 30 : n;
}

// Bytes of the data cache of that level that serves a core; 0 when nothing says.
std::int64_t cache_bytes(int core, int level) {
  for (int i = 0; i < 8; ++i) {
    const fs::path folder = fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}", core, i);
    if (first_line(folder / "level") != std::to_string(level) || first_line(folder / "type") == "Instruction") continue;
    return parse_size(first_line(folder / "size"));
  }
  // A container may hide sysfs: sysconf asks CPUID.
  const long n = sysconf(level == 1 ? _SC_LEVEL1_DCACHE_SIZE : level == 2 ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL3_CACHE_SIZE);
  return n > 0 ? n : 0;
}

// What x86-64-v3 adds that compilers' own __builtin_cpu_supports does not all know (clang 14): CPUID bits, Intel SDM volume 2A.
bool has_bit(unsigned leaf, int bit) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(leaf, &a, &b, &c, &d) && (c >> bit & 1) != 0;
}
bool has_f16c() { return has_bit(1, 29); }
bool has_movbe() { return has_bit(1, 22); }
bool has_lzcnt() { return has_bit(0x80000001, 5); }

bool supports_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && has_f16c() && has_movbe() && has_lzcnt();
}
bool supports_v4() {
  return supports_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cores.push_back(i);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

Result<TargetSpec> native_cpu_target() {
  __builtin_cpu_init();
  if (supports_v4()) return find_target("cpu:x86-64-avx512");
  if (supports_v3()) return find_target("cpu:x86-64-avx2");
  std::string missing;
  const std::pair<const char*, int> wanted[] = {{"avx2", __builtin_cpu_supports("avx2")},
                                                {"fma", __builtin_cpu_supports("fma")},
                                                {"bmi2", __builtin_cpu_supports("bmi2")},
                                                {"f16c", has_f16c()},
                                                {"movbe", has_movbe()},
                                                {"lzcnt", has_lzcnt()}};
  for (const auto& [feature, there] : wanted)
    if (!there) missing += std::string(missing.empty() ? "" : ", ") + feature;
  return fail(Code::unsupported, fmt::format("this processor ({}) lacks {}, and every cpu target needs AVX2", identify().brand, missing),
              "run on an x86-64 processor with AVX2, or pass the feature through to this virtual machine");
}

Result<Machine> probe_cpu(const TargetSpec& target) {
  if (target.family != "cpu") return fail(Code::bad_input, fmt::format("'{}' is not a cpu target", target.name));
  __builtin_cpu_init();
  const bool fits = target.vector_bits >= 512 ? supports_v4() : supports_v3();
  if (!fits)
    return fail(Code::unsupported, fmt::format("this processor cannot run '{}'", target.name),
                "choose a target that `forge doctor` lists for this machine");

  const Identity id = identify();
  const std::vector<int> cores = usable_cores();
  Machine m;
  m.target = target;
  m.model = id.brand.empty() ? id.vendor : id.brand;
  m.device_class = fmt::format("cpu:{}-{}-{}", id.vendor, id.family, id.model);
  m.boot_id = first_line("/proc/sys/kernel/random/boot_id");
  m.cores = static_cast<int>(cores.size());
  m.properties = {
      {"l1d_bytes", cache_bytes(cores[0], 1)},
      {"l2_bytes", cache_bytes(cores[0], 2)},
      {"l3_bytes", cache_bytes(cores[0], 3)},
      {"cores", m.cores},
      {"vector_bits", target.vector_bits},
      {"has_avx512", supports_v4()},
      {"has_avx512_bf16", supports_v4() && __builtin_cpu_supports("avx512bf16")},
      {"line_bytes", 64},
      {"page_bytes", sysconf(_SC_PAGESIZE)},
  };
  utsname kernel{};
  uname(&kernel);
  m.environment["kernel"] = fmt::format("{} {}", kernel.sysname, kernel.release);
  m.environment["hypervisor"] = id.hypervisor ? (id.hypervisor_vendor.empty() ? "yes" : id.hypervisor_vendor) : "none";
  const std::string governor = first_line(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cores[0]));
  m.environment["governor"] = governor.empty() ? "not exposed" : governor;
  const std::string huge = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  m.environment["shared_huge_pages"] = huge.empty() ? "not exposed" : huge;
  const std::string smt = first_line("/sys/devices/system/cpu/smt/active");
  m.environment["smt"] = smt == "1" ? "on" : smt == "0" ? "off" : "not exposed";
  m.environment["cores"] = fmt::format("{} of {}", cores.size(), sysconf(_SC_NPROCESSORS_ONLN));
  return m;
}

}  // namespace forge
