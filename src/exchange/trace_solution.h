// SPDX-License-Identifier: Apache-2.0
// A kernel as a FlashInfer-Trace Solution: the exported launcher, and a function `run` for TVM-FFI, inputs then outputs
// (destination passing). Its builder takes no compile flags, so what the kernel needs is said in its source.
#pragma once
#include "exchange/cpp_export.h"

namespace forge {

struct SolutionNames {
  std::string name, author;
};
// One JSON document. Code::unsupported: an axis that no tensor has, packed 4-bit floats.
Result<std::string> export_trace_solution(const ExportRequest&, const SolutionNames&);

}  // namespace forge
