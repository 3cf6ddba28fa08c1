// SPDX-License-Identifier: Apache-2.0
// What an agent may read of the gate's words. They name the shape that a kernel failed on; where that shape is not public, its numbers
// are struck out, and so are all that follow from them (an element's place, a count).
#pragma once
#include <string>

#include "core/operator.h"

namespace forge {

std::string disclose(const std::string& detail, const Definition&, const TaskFile&);

}  // namespace forge
