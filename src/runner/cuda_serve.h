// SPDX-License-Identifier: Apache-2.0
// A GPU runner's side: the loop that answers cuda_protocol.h, around an image or an expert.
#pragma once
#include <functional>
#include <memory>

#include "runner/cuda_memory.h"
#include "runner/cuda_vehicle.h"
#include "runner/once_file.h"
#include "runner/serve.h"

namespace forge {

// What a GPU's runner holds: exactly one of these.
class CudaServed {
 public:
  virtual ~CudaServed() = default;
  virtual Answer prepare(const wire::CudaPrepare&, const CudaImports&) = 0;
  virtual Answer scrub(std::uint64_t pattern) = 0;
  virtual Answer queue(std::uint32_t slot) = 0;
  virtual void describe(wire::Reply&) const {}
};

Result<std::unique_ptr<CudaServed>> serve_cuda_image(CudaVehicle&, const std::string& cubin, std::vector<std::string> entries);
Result<std::unique_ptr<CudaServed>> serve_cuda_expert(CudaVehicle&, const std::string& plugin);

// The whole life after hello and load: sandbox, driver, context, image or expert, then requests until the judge hangs up. Returns the
// program's exit code.
int serve_cuda(int channel, Packet& load);
// The requests alone, on a driver and a thing that are there already.
int serve_cuda_requests(int channel, Packet&, CudaVehicle&, CudaServed&);

// A call from a file, made once between the profiler's start and stop: no judge, no channel, no sandbox. The first: the program.
int serve_once(const std::string& file);
// Returns an expert's description, as it then is. `seal` is called before an image's device code runs.
Result<std::string> run_once(const cu::Driver&, const std::string& runner_code, const OnceFile&, const std::function<void()>& seal);

// The features that are in force now. What a profiler keeps within the process still writes into `scratch`.
std::uint32_t seal_cuda_runner(const std::string& scratch = "");
int become_python(char** argv);  // seals, then executes; returns when it cannot

constexpr int kCallsPerModule = 16;  // an image's module is loaded anew after so many scrubs: that restores its code

}  // namespace forge
