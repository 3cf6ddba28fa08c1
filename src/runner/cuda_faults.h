// SPDX-License-Identifier: Apache-2.0
// What kind of fault a kernel made: the driver says "illegal address", the kernel log says which, and how. Judge's side.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/runner.h"
#include "util/fs.h"

namespace forge {

// One line of the driver about a fault: "NVRM: Xid (PCI:...): 31, ... faulted @ 0x7f_aa000000. Fault is of type
// FAULT_RO_VIOLATION ACCESS_TYPE_VIRT_WRITE".
struct XidReport {
  int number = 0;
  std::uint64_t address = 0;
  bool has_address = false, read_only = false, wrote = false;
  std::string text;
};
std::optional<XidReport> parse_xid(const std::string& line);

// The kernel's log from the moment of opening on.
class KernelLog {
 public:
  KernelLog();
  bool readable() const { return bool(m_file); }
  // Xid lines since the last call; waits up to `patience_s` for a first one.
  std::vector<XidReport> xids(double patience_s);

 private:
  Fd m_file;
};

// An allocation of the judge's as the runner has it.
struct PlacedAllocation {
  std::string role;
  std::uint64_t address = 0, bytes = 0;  // in the runner; the whole allocation
  std::uint64_t begin = 0, end = 0;      // of the tensors in it, offsets
  bool writable = false;
};
RunnerFailure classify_cuda_fault(int error, const std::string& text, const std::vector<XidReport>&, bool log_readable,
                                  const std::vector<PlacedAllocation>&);

}  // namespace forge
