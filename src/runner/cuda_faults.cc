// SPDX-License-Identifier: Apache-2.0
#include "runner/cuda_faults.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "device/cuda_driver.h"
#include "runner/cuda_memory.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {

std::optional<XidReport> parse_xid(const std::string& line) {
  const auto xid = line.find("NVRM: Xid");
  if (xid == std::string::npos) return std::nullopt;
  XidReport r;
  r.text = trim(line.substr(xid));
  if (const auto end = r.text.find("): "); end != std::string::npos) r.number = std::atoi(r.text.c_str() + end + 3);
  r.read_only = r.text.find("FAULT_RO_VIOLATION") != std::string::npos;
  r.wrote = r.text.find("VIRT_WRITE") != std::string::npos || r.text.find("VIRT_ATOMIC") != std::string::npos;
  if (const auto at = r.text.find("faulted @ 0x"); at != std::string::npos) {
    std::string digits;
    for (std::size_t i = at + 12; i < r.text.size() && (std::isxdigit(static_cast<unsigned char>(r.text[i])) || r.text[i] == '_'); ++i)
      if (r.text[i] != '_') digits += r.text[i];
    if (!digits.empty()) {
      r.address = std::strtoull(digits.c_str(), nullptr, 16);
      r.has_address = true;
    }
  }
  return r;
}

KernelLog::KernelLog() : m_file(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (m_file) lseek(m_file.get(), 0, SEEK_END);
}

std::vector<XidReport> KernelLog::xids(double patience_s) {
  std::vector<XidReport> found;
  if (!m_file) return found;
  const double until = monotonic_seconds() + patience_s;
  for (;;) {
    char record[8192];
    const ssize_t n = read(m_file.get(), record, sizeof record - 1);
    if (n > 0) {
      if (auto r = parse_xid(std::string(record, static_cast<std::size_t>(n)))) found.push_back(std::move(*r));
      continue;
    }
    if (n < 0 && errno == EPIPE) continue;  // records were overwritten before we came
    if (!found.empty() || monotonic_seconds() > until) return found;
    usleep(5000);
  }
}

RunnerFailure classify_cuda_fault(int error, const std::string& text, const std::vector<XidReport>& xids, bool log_readable,
                                  const std::vector<PlacedAllocation>& placed) {
  if (error != cu::kIllegalAddress) return {Reason::crashed, text};
  for (const XidReport& x : xids) {
    if (x.number != 31 || !x.has_address) continue;
    for (const PlacedAllocation& p : placed) {
      // The log gives the page, so distances are of pages.
      if (x.address + CudaImports::kGuardBytes < p.address || x.address >= p.address + p.bytes + CudaImports::kGuardBytes) continue;
      const bool before = x.address < p.address, behind = x.address >= p.address + p.bytes;
      const char* verb = x.wrote ? "wrote" : "read";
      if (before)
        return {Reason::out_of_bounds,
                fmt::format("{} about {} bytes before {} ({})", verb, p.address + p.begin - x.address, p.role, text)};
      if (behind)
        return {Reason::out_of_bounds,
                fmt::format("{} about {} bytes past the end of {} ({})", verb, x.address - p.address - p.end, p.role, text)};
      if (x.read_only || (x.wrote && !p.writable))
        return {Reason::out_of_bounds, fmt::format("wrote to {}, near byte {}, which is read-only ({})", p.role,
                                                   static_cast<std::int64_t>(x.address - p.address - p.begin), text)};
    }
    return {Reason::crashed, fmt::format("{} address {:#x}, which is no tensor's ({})", x.wrote ? "wrote to" : "read", x.address, text)};
  }
  for (const XidReport& x : xids)
    if (x.read_only) return {Reason::out_of_bounds, "wrote to read-only memory (" + text + ")"};
  if (!xids.empty()) return {Reason::crashed, text + "; " + xids.front().text};
  return {Reason::crashed,
          text + (log_readable ? "; the kernel log has nothing on it" : "; the kernel log, which knows the address, cannot be read here")};
}

}  // namespace forge
