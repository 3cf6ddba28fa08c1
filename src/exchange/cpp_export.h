// SPDX-License-Identifier: Apache-2.0
// A kernel package as C++ that needs nothing of ours: kernel source, argument struct, and a launcher generated from the launch
// plan. Pure text: nothing is read or run. Docs: docs/exchange.md.
#pragma once
#include <string>
#include <vector>

#include "core/operator.h"
#include "core/package.h"
#include "core/target.h"

namespace forge {

struct ExportRequest {
  KernelPackage package;
  Definition definition;
  TargetSpec target;
  std::string name;        // of the launcher; empty: the operator's (export_name)
  std::string origin;      // one line for the generated files: "gen1 3f2a... of gemm_f32"
  std::string image;       // cuda: the cubin
  std::string build_line;  // cuda: how the cubin was made
};
struct ExportedFile {
  std::string name, content;
};

// Code::bad_input: a plan that does not parse or check; Code::unsupported: what a launcher cannot do, and why.
Result<std::vector<ExportedFile>> export_cpp(const ExportRequest&);
// Without a name given: the namespace below forge_export, and the stem of the files: the operator's name as an identifier.
std::string export_name(const Definition&);

}  // namespace forge
