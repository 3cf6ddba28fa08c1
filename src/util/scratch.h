// SPDX-License-Identifier: Apache-2.0
// Folders that are nobody's once their maker has died. Each is locked (flock) for as long as its maker lives, so whoever makes the
// next one of that family can tell what a kill -9 left behind, and removes it. TempDir is one of them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "util/fs.h"

namespace forge {

// <base>/<family>-[<name>-]XXXXXX, fresh, of mode 0700. What dead processes of this user left of that family is removed first, once a
// process. The family must be a name that no user gives a folder of his own.
Result<fs::path> make_scratch(const fs::path& base, const std::string& family, const std::string& name = {});
// Removes it with everything in it, and lets go of its lock. A folder that was renamed away meanwhile stays, and is nobody's scratch.
void drop_scratch(const fs::path&);

// A folder with these files (path within it, content), whole or not at all, so that another attempt is never in the way of itself. One
// that exists must be empty, and stays if that fails.
Status write_folder(const fs::path&, const std::vector<std::pair<fs::path, std::string>>& files);

}  // namespace forge
