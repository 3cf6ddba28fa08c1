// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "build/build.h"
#include "build/sass.h"
#include "util/process.h"
#include "util/text.h"

namespace forge {

namespace {

// "V13.5.37" of a CUDA program's --version, "2025.3.0" of ncu's.
std::string version_of(const fs::path& program) {
  ProcessOptions o;
  o.argv = {program.string(), "--version"};
  o.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "HOME=/tmp"};
  o.timeout_s = 10;
  const auto r = run_process(o);
  if (!r || r->exit_code != 0) return "does not run";
  for (const std::string& line : split(r->output, '\n'))
    for (const char* mark : {"release", "Version"})
      if (const std::size_t at = line.find(mark); at != std::string::npos) return trim(line.substr(at));
  return trim(split(r->output, '\n').front());
}

}  // namespace

std::vector<std::string> cuda_build_findings() {
  std::vector<std::string> out;
  const auto compiler = find_cuda_compiler();
  out.push_back(compiler ? (*compiler)->identity() : "missing: " + compiler.error().text());
  const SassTool tool = find_sass_tool();
  out.push_back(
      tool.program.empty()
          ? "missing: nvdisasm and cuobjdump, so SASS is read as opcodes alone (pip install nvidia-cuda-nvdisasm, or the CUDA toolkit; "
            "FORGE_NVDISASM names it)"
          : fmt::format("{} ({})", tool.program.string(), version_of(tool.program)));
  const fs::path ncu = find_ncu();
  out.push_back(ncu.empty() ? "missing: ncu (counters need Nsight Compute: apt-get install cuda-nsight-compute-13-0, or NVIDIA's own "
                              "installer; FORGE_NCU names it)"
                            : fmt::format("{} ({})", ncu.string(), version_of(ncu)));
  return out;
}

}  // namespace forge
