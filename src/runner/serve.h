// SPDX-License-Identifier: Apache-2.0
// The runner's side: one loop that answers the judge's messages. Everything here runs in the same process as foreign code;
// nothing here decides anything.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu.h"
#include "runner/channel.h"

namespace forge {

// What a request came to, for its reply.
struct Answer {
  wire::Outcome outcome = wire::Outcome::ok;
  std::string text;
};

// What a runner holds: exactly one of these, for its whole life.
class Served {
 public:
  virtual ~Served() = default;
  virtual Answer prepare(const wire::Prepare&) = 0;  // buffers are mapped already
  virtual void ready(std::uint64_t pattern) = 0;
  virtual Answer call(double& inside_s) = 0;
  virtual void profile(double seconds, wire::Samples&) = 0;
  virtual void describe(wire::Reply&) const {}
};

// Loads, then closes the sandbox; on failure the answer says why (refuse_load) and the pointer is null.
std::unique_ptr<Served> serve_image(const wire::Load&, int image_fd, wire::Reply&);
std::unique_ptr<Served> serve_expert(const wire::Load&, wire::Reply&);
// The image file's first `bytes` bytes. False: it has fewer, or cannot be read.
bool read_image(int fd, std::uint64_t bytes, std::string& out);
std::unique_ptr<Served> refuse_load(wire::Reply&, wire::Outcome, const std::string& why);

// The judge's buffers in this process, at the judge's addresses.
class BufferMaps {
 public:
  Answer replace(const wire::Prepare&, const std::vector<Fd>&);

 private:
  std::vector<wire::Buffer> m_mapped;
};

int serve(int channel);  // the program; returns when the judge hangs up

// Last words: SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGSYS send a fault message and end the process. pool may be null.
void install_fault_handlers(int channel, const WorkerPool* pool);

double clock_seconds();

// Samples where run() spends its CPU time. `run` returns false to stop early.
void sample_profile(double seconds, const std::function<bool()>& run, wire::Samples&);

}  // namespace forge
