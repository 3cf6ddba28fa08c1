// SPDX-License-Identifier: Apache-2.0
// A private root for one process: what Landlock or bubblewrap would narrow, done with the kernel's mount namespaces. The last
// resort before none. Private to this layer.
#pragma once
#include <string>
#include <vector>

#include "util/fs.h"

namespace forge {

// Worked out before the fork, so that entering allocates nothing.
struct PrivateView {
  std::string stage;                                           // an empty folder to mount the new root on
  std::string folder;                                          // the build folder: writable, and where the process ends up
  std::vector<std::string> folders;                            // to make in the new root, parents first
  std::vector<std::string> files;                              // to make, empty: what a single file is bound over
  std::vector<std::pair<std::string, std::string>> links;      // text, path
  std::vector<std::pair<std::string, std::string>> read_only;  // from, onto
  std::string folder_in_stage;
  std::string uid_map, gid_map;  // for a user namespace; empty: not needed, we are root
};
// Makes the stage inside the build folder.
Result<PrivateView> plan_private_view(const std::vector<std::string>& paths, const fs::path& build_folder);
// In the child. 0 or an errno: EPERM and ENOSPC mean that namespaces are not allowed here.
int enter_private_view(const PrivateView&);
// Whether a child may do the above, found by trying.
bool can_enter_private_view();

}  // namespace forge
