// SPDX-License-Identifier: Apache-2.0
// Commands that are printed for somebody to copy.
#pragma once
#include <string>

namespace forge {

// One word for a POSIX shell: as it is where that is safe, else in single quotes.
std::string shell_word(const std::string&);

}  // namespace forge
