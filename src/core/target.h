// SPDX-License-Identifier: Apache-2.0
// The hardware that a kernel is built for and measured on, with the properties probed from it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/expr.h"
#include "util/result.h"

namespace forge {

// What a name like "cpu:x86-64-avx512" pins. Known targets are a table in target.cc: a new one is a row there.
struct TargetSpec {
  std::string name;
  std::string family;              // "cpu" or "cuda"
  int vector_bits = 0;             // cpu: 256 or 512
  std::vector<std::string> flags;  // the builder's ISA flags: "-march=x86-64-v4"
  std::int64_t shared_bytes = 0;   // cuda: most shared memory that a block may ask for, dynamic and static
};
Result<TargetSpec> find_target(const std::string& name);  // "cuda" is cuda:sm_90a; unknown: lists the known ones
std::vector<std::string> known_targets();

// Measured once per machine and boot, never assumed. Units in the names.
struct Ceilings {
  double gflops = 0;         // f32 FMA, all cores, registers only
  double read_gbs = 0;       // streaming read beyond the last-level cache, all cores
  double copy_gbs = 0;       // read + non-temporal write, bytes of both counted
  double matrix_gflops = 0;  // f16 matrix units with f32 accumulation, N(0,1) operands, paced 1 ms kernels; 0: there are none
};

struct Machine {
  TargetSpec target;
  std::string model;         // "AMD EPYC", as the device says
  std::string device_class;  // "cpu:AuthenticAMD-25-17": what a certification holds for
  std::string boot_id;       // measurements are never compared across boots
  int cores = 1;             // worker count: one pinned worker a core
  Names properties;          // l1d_bytes l2_bytes l3_bytes cores vector_bits has_avx512 has_avx512_bf16 line_bytes page_bytes
  Ceilings ceilings;
  std::map<std::string, std::string> environment;  // kernel, compiler, governor, hypervisor: goes into every record
};

}  // namespace forge
