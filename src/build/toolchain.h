// SPDX-License-Identifier: Apache-2.0
// A C++ compiler on this machine, and the files that it needs: what a sandboxed compilation may see. Private to this layer.
#pragma once
#include <string>
#include <vector>

#include "util/fs.h"

namespace forge {

struct Toolchain {
  fs::path program;     // as found in PATH; behind a script there, what the script runs
  std::string version;  // first line of --version
  bool clang = false;
  fs::path host;                     // nvcc's preprocessor; empty for the others
  std::vector<std::string> execute;  // programs, and the libraries that they load
  std::vector<std::string> read;     // header folders, /dev/null, ...
  std::vector<std::string> notes;    // where the view had to be wider than wished
};
// Asks the compiler (trusted; nothing foreign is compiled) for its programs, libraries and header folders.
Result<Toolchain> probe_toolchain(const fs::path& program);
// nvcc with its parts, the toolkit's headers without CUB and Thrust, and the host compiler that preprocesses for it.
Result<Toolchain> probe_cuda_toolchain(const fs::path& nvcc);

}  // namespace forge
