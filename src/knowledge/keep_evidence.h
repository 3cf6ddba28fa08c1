// SPDX-License-Identifier: Apache-2.0
// Which of two certifications of one entry on one device class is the evidence to keep. Pure.
#pragma once
#include <string>

#include "core/entry.h"

namespace forge {

// Why `kept` is better than the one measured `now`; empty: the new one takes its place. What settles the question stands before
// what does not, then the lower noise floor: a busy machine must not overwrite what a quiet one showed.
std::string why_keep(const Certification& kept, const Certification& now);

}  // namespace forge
