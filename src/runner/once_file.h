// SPDX-License-Identifier: Apache-2.0
// A call on a GPU as a file: the messages that would have gone over the channel, one behind the other, for a runner that a profiler
// starts (forge-runner --once FILE). Format: docs/formats/runner-protocol.md, "On its own".
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runner/cuda_protocol.h"
#include "util/fs.h"

namespace forge {

struct OnceFile {
  std::unique_ptr<wire::Load> load = std::make_unique<wire::Load>();  // its object_bytes is the cubin's
  std::string cubin;                                                  // of an image; empty for an expert
  std::vector<wire::CudaImport> imports;
  std::unique_ptr<wire::CudaPrepare> prepare = std::make_unique<wire::CudaPrepare>();
};

inline constexpr std::size_t kOnceBytes = std::size_t(256) << 20, kOnceImports = 256;

Status write_once_file(const fs::path&, OnceFile&);  // fills the headers in
Result<OnceFile> read_once_file(const fs::path&);    // Code::bad_input: what is wrong with it

}  // namespace forge
