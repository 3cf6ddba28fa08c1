// SPDX-License-Identifier: Apache-2.0
// State on disk under FORGE_HOME: runs/<id>/journal.jsonl, artifacts by content, an SQLite index that can be rebuilt from the
// journals at any time, and the machine-wide lease that keeps measurements alone on the device.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/record.h"
#include "store/journal.h"
#include "util/fs.h"

namespace forge {

struct RunRow {
  std::string id, operator_name, target, reference, started, state, stop;  // state: running, finished, interrupted, unreadable
  int candidates = 0, accepted = 0;
  double best_speedup = 0;  // of the confirmed result; 0: none
  std::string verdict, best_package;
  std::string unreadable;  // why its journal cannot be read; the rest is then what was read before, if anything
};

class Store {
 public:
  static Result<Store> open(const fs::path& home);  // makes the folders; read-only or full disk: io / disk_full naming FORGE_HOME
  // For commands that only look: where the index cannot be written, it is made in memory.
  static Result<Store> open_to_read(const fs::path& home);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  const fs::path& home() const;
  std::string new_run_id(const Task&);  // "gemm_f32-20261130-014405-3f2a"
  fs::path run_dir(const std::string& id) const;
  Result<std::string> resolve_run(const std::string& prefix) const;  // unique prefix, "last"
  Status note_last(const std::string& id);  // what "last" is from now on: times of files are no order where a clock is set back

  Status put_artifact(const std::string& bytes, std::string* sha);  // artifacts/ab/cdef...; immutable, atomic
  Result<std::string> get_artifact(const std::string& sha) const;

  Status index_run(const std::string& id);   // reads that run's journal into SQLite
  Status rebuild_index();                    // all of them, from nothing
  Result<std::vector<RunRow>> runs() const;  // newest first; indexes what is not indexed yet. What was never readable comes last
  // How often each gate reason was given, over all runs or one.
  Result<std::vector<std::pair<std::string, std::int64_t>>> reason_counts(const std::optional<std::string>& run) const;

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> m_impl;
};

// Measurements hold the device alone; on a CPU, where a build is load on the device, builds share it among themselves.
// Across processes and users of one machine: flock on /tmp/forge-device.lock. Released on destruction and by death.
class Lease {
 public:
  enum class Kind { measure, build };
  static constexpr const char* kFile = "/tmp/forge-device.lock";
  static Result<Lease> take(Kind,
                            const char* file = kFile);  // waits, with a progress line; Code::interrupted on Ctrl-C. Other files: tests
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&&) noexcept = default;
  double waited_seconds() const { return m_waited; }

 private:
  explicit Lease(Fd fd, double waited) : m_fd(std::move(fd)), m_waited(waited) {}
  Fd m_fd;
  double m_waited = 0;
};

}  // namespace forge
