// SPDX-License-Identifier: Apache-2.0
// A runner is a process that holds exactly one kernel (an image or an expert) in a sandbox set up first. It launches and
// reports; it never concludes. This is the judge's handle on one. Wire format: docs/formats/runner-protocol.md.
// Not thread-safe; one call at a time. While idle the process is stopped (SIGSTOP), so it cannot work outside its turn.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/launch_plan.h"
#include "core/package.h"
#include "core/verdict.h"
#include "device/cpu.h"
#include "device/cuda.h"
#include "util/result.h"

namespace forge {

struct RunnerOptions {
  std::vector<int> cores;  // pinned workers, one a core
  double load_timeout_s = 20;
  double call_timeout_s = 10;
  std::size_t memory_bytes = std::size_t(4) << 30;  // beyond what the judge maps
  std::string program;                              // path of forge-runner
};

// What became of the process, when a call failed.
struct RunnerFailure {
  Reason reason = Reason::runner_broke;
  std::string detail;
  bool killed = false;  // by a SIGKILL from outside (want of memory, an administrator), which nothing inside can bring about
};
template <class T>
using RunnerResult = tl::expected<T, RunnerFailure>;

enum class Access { read, write };
struct Binding {
  const SharedBuffer* buffer = nullptr;
  Access access = Access::read;
  const DeviceBuffer* device = nullptr;  // on a GPU, instead of buffer
  std::size_t offset = 0;                // on a GPU: of the tensor from device->data(); a multiple of 256
};

// One call, for one shape: evaluated by the judge, not by the runner.
struct CallSpec {
  ConcretePlan plan;                                                   // ignored for an expert
  ArgLayout layout;                                                    // likewise
  std::vector<Binding> inputs, outputs, workspaces;                    // definition and plan order; scalar inputs null
  std::vector<std::vector<std::int64_t>> input_shapes, output_shapes;  // for experts
  std::vector<TensorSpec> input_specs, output_specs;
  std::vector<std::pair<std::string, std::int64_t>> axes;  // variable axes, definition order
  std::vector<double> scalars;                             // scalar inputs, definition order
  // Holds the workspaces: a runner keeps it as long as it may still make the call, and the judge cares for them that long.
  std::shared_ptr<const void> keep_alive;
};

struct CallTiming {
  double inside_s = 0;   // runner's monotonic clock around zero + launches (expert: around run())
  double outside_s = 0;  // judge's clock, from before the process is continued until it says "done"
  double cpu_s = 0;      // CPU time the runner's process used during the call, all threads
  double sm_mhz = 0;     // GPU: the SM clock, read in a kernel behind the call
};

struct CodeSample {
  std::string mapping;
  double share = 0;
};
struct CodeProfile {
  std::vector<CodeSample> where;                                // library names; "jit" for anonymous executable memory
  std::vector<std::pair<std::uint64_t, std::string>> hot_code;  // address and bytes around the hottest places
  std::vector<std::uint64_t> hot_places;                        // sampled addresses in it: an instruction starts at each
  int samples = 0;
  std::string note;  // what was missing
};

// A call as a program of its own, for a profiler to start: it prepares the call and makes it once, outside of any sandbox, on memory
// and content of its own.
struct OnceProgram {
  std::vector<std::string> argv, env;
};

class Runner {  // edge of the world: ProcessRunner below, FakeRunner for tests of the gate
 public:
  virtual ~Runner() = default;
  virtual RunnerResult<void> prepare(const CallSpec&) = 0;  // maps buffers, plans; replaces the earlier call
  // Untimed: overwrites what the last call left. It comes before the judge writes the next content, because a kernel may have made
  // the harness in its process its own: whoever has the content may run on the judge's clock only.
  virtual RunnerResult<void> scrub() = 0;
  virtual RunnerResult<CallTiming> call() = 0;  // one timed call, scrubbed before if scrub() was not called; stopped on return
  // The outside clock's audit, on a GPU, where a kernel could forge an event's time (docs/judging.md): each of these calls has
  // content of its own; batch() runs the first `calls` of them pipelined, each a CUDA graph with a cache flush before it, and returns
  // the judge's clock from before "go" to behind "done". flush_only: as many flushes without the calls. calls = 0 measures an empty
  // turn. Recording is off the clock; what no graph can hold is refused, and can still be called.
  virtual RunnerResult<void> prepare_batch(const std::vector<CallSpec>&) {
    return tl::unexpected(RunnerFailure{Reason::runner_broke, "this runner has no batches"});
  }
  virtual RunnerResult<double> batch(int /*calls*/, bool /*flush_only*/ = false) {
    return tl::unexpected(RunnerFailure{Reason::runner_broke, "this runner has no batches"});
  }
  virtual RunnerResult<CodeProfile> profile(double seconds) = 0;  // experts: sampled; images: empty
  // What the program needs lies in `folder`. Needs no living process; on a GPU only.
  virtual Result<OnceProgram> once(const CallSpec&, const fs::path& /*folder*/) const {
    return fail(Code::unsupported, "this runner makes no call on its own");
  }
  virtual std::string description() const = 0;           // expert: library, version, core type
  virtual std::vector<std::string> sandbox() const = 0;  // what is in force, what is missing
  virtual bool composed() const { return false; }
};

RunnerResult<std::unique_ptr<Runner>> start_image_runner(const Image&, const RunnerOptions&);
RunnerResult<std::unique_ptr<Runner>> start_expert_runner(const std::string& plugin_path, const RunnerOptions&);

// The same on the first GPU: the process holds a context of its own, flushes L2 and scrubs shared and local memory before every
// call, times by events in one stream, and loads the module anew when scrub() finds it time to (every kCallsPerModule calls).
// An expert's plugin is a shared object (include/forge/expert.h) or a Python file (include/forge/python/README.md).
struct CudaRunnerOptions {
  double load_timeout_s = 60;  // a Python expert imports its framework
  double call_timeout_s = 20;
  std::string program;  // path of forge-runner
  std::string python;   // path of the interpreter; empty: python3
  TargetSpec target;
  std::string cache;          // folder that a Python expert keeps compiled programs in; empty: none is kept
  std::string python_runner;  // path of forge_expert_runner.py; empty: beside the program or in the source tree
};
RunnerResult<std::unique_ptr<Runner>> start_cuda_image_runner(const Image&, const CudaRunnerOptions&);
RunnerResult<std::unique_ptr<Runner>> start_cuda_expert_runner(const std::string& plugin_path, const CudaRunnerOptions&);

}  // namespace forge
