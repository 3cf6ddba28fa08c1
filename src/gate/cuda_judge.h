// SPDX-License-Identifier: Apache-2.0
// The judge on a GPU: content, expected outputs and comparison live in device memory of forge's own context; bases come from the
// CPU oracle, or from operators/<op>/oracle.cu where that would take more than seconds. Same contract as judge.h.
#pragma once
#include "core/target.h"
#include "gate/judge.h"

namespace forge {

Result<std::unique_ptr<Judge>> make_cuda_judge(const OperatorFolder&, const Machine&, const JudgeOptions&);

}  // namespace forge
