// SPDX-License-Identifier: Apache-2.0
// A milestone's folder, where every file is a person's or an agent's: what it belongs to, what is asked, and the package. No path leaves
// the workspace. Input: .forge-run, ====, .forge-hand-in, ====, a folder's name, ====, launch.toml.
// link: forge_agents
#include "agents/folder_driver.h"
#include "agents/workspace_files.h"
#include "fuzz/target.h"
#include "util/text.h"

namespace forge {

FORGE_FUZZ_TARGET(folder) {
  const auto texts = fuzz::parts(bytes, 4);
  const fs::path workspace = fuzz::folder() / "run/workspace", milestone = workspace / "M0";
  fuzz::put("run/workspace/M0/.forge-run", texts[0]);
  fuzz::put("run/workspace/M0/.forge-hand-in", texts[1]);
  fuzz::put("run/workspace/M0/kernel.cpp", "void k() {}\n");
  fuzz::put("run/workspace/M0/launch.toml", texts[3]);
  fuzz::put("run/kernel.cpp", "outside");
  fuzz::put("run/launch.toml", "outside");
  (void)read_folder_tag(milestone);
  if (const auto p = read_workspace_package(workspace.string(), texts[2])) {
    HOLDS(p->source == "void k() {}\n" && p->plan_text == texts[3]);
    HOLDS(utf8_prefix(p->plan_text) == p->plan_text.size());
  }
  const Assignment assignment{.milestone = "M0", .brief = "b", .workspace = workspace.string(), .starter = {}};
  const auto driver = make_folder_driver("folder", workspace);
  const auto turn = driver->next(assignment, {});
  if (!turn) HOLDS(turn.error().code == Code::interrupted);  // a person can mend what stands there
  if (turn) HOLDS(turn->ended != (turn->calls.size() == 1));
  if (turn && !turn->calls.empty())
    driver->answered(assignment, {Exchange{.turn = *turn, .results = {ToolResult{.text = texts[1], .error = false}}}});
  std::error_code ignored;
  fs::remove_all(milestone / "feedback", ignored);
}

}  // namespace forge
