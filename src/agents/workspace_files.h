// SPDX-License-Identifier: Apache-2.0
// Files in an agent's workspace, where every name may be a trap: no path leaves it, no link is followed, whatever the agent does meanwhile.
#pragma once
#include <string>

#include "core/package.h"

namespace forge {

inline constexpr std::size_t kMaxText = 1 << 20;  // bytes of a source or a plan

// The two files of a package in a folder inside the workspace. Other files may lie there. bad_input: what the agent can mend.
Result<KernelPackage> read_workspace_package(const std::string& workspace, const std::string& folder);

// <workspace>/<folder>/<name>, both made if need be.
Status write_workspace_file(const std::string& workspace, const std::string& folder, const std::string& name, const std::string& text);

}  // namespace forge
