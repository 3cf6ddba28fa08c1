// SPDX-License-Identifier: Apache-2.0
// forge analyse OP --stages: a kernel from a blueprint, and what each of its stages takes.
#pragma once
#include <string>

#include "cli/command.h"
#include "gate/timeline.h"

namespace forge {

std::string timeline_table(const Timeline&);
// `reference`: gen:ID, "defaults" (the blueprint's default choices), or empty: the promoted generation, else the defaults.
int show_timeline(Context&, const std::string& op, const std::string& target, const std::string& reference);

}  // namespace forge
