// SPDX-License-Identifier: Apache-2.0
// The coder's seat for a person, or for an agent that drives `forge` itself: each milestone is laid out in a folder, and a hand-in is a
// file that `forge submit` leaves there. Nothing that a person wrote is ever overwritten.
//
//   <base>/<milestone>/  BRIEF.md  kernel.cpp  launch.toml  forge_args.h  feedback/NN.md, NN.json  .forge-run
#pragma once
#include <memory>
#include <optional>

#include "agents/driver.h"
#include "util/fs.h"

namespace forge {

inline constexpr const char* kFolderSeat = "folder";  // "folder", or "folder:BASE" with an absolute path
bool is_folder_seat(const std::string& coder);
// Where milestones are laid out: BASE, else the run's workspace.
fs::path folder_base(const std::string& coder, const fs::path& workspace);
// "M0"; when the milestone is built again under a later plan "M0-2", ...
fs::path milestone_folder(const fs::path& base, const std::string& milestone, int attempt);

// What .forge-run says of a milestone's folder.
struct FolderTag {
  std::string run, milestone;
  int attempt = 0;
};
Result<FolderTag> read_folder_tag(const fs::path& folder);

// What a person wants to happen, left for the driver. It holds for that turn only, so that no hand-in is taken twice.
struct FolderRequest {
  std::size_t turn = 0;
  std::string action = "submit";  // a tool: "submit", "check", "build", "time" (against the branch's best); or "give_up", "finish"
  std::string why;
};
// Held while a person's command works on a milestone, so that no two leave a request at once. Released with the descriptor.
Result<Fd> hold_folder(const fs::path& folder);
Status leave_request(const fs::path& folder, const FolderRequest&);
void withdraw_request(const fs::path& folder);

// `workspace` is <run>/workspace: its parent's name is the run's id.
std::unique_ptr<Driver> make_folder_driver(const std::string& coder, const fs::path& workspace);

}  // namespace forge
