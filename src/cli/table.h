// SPDX-License-Identifier: Apache-2.0
// Plain text tables for people.
#pragma once
#include <string>
#include <vector>

#include "core/verdict.h"

namespace forge {
std::string format_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);
std::string format_interval(const Interval&);  // "1.213 [1.205 1.221]"
}  // namespace forge
