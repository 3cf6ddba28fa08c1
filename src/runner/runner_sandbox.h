// SPDX-License-Identifier: Apache-2.0
// What a runner may still do once it holds foreign code. Installed by the runner on itself, on all its threads, before that
// code's first instruction. A refused call raises SIGSYS, so that the runner's last words can name it.
#pragma once

namespace forge {

// Images: an allow list of what the harness's loop needs, and no call at all from the address range of images.
// 0 or an errno.
int seal_image_runner();
// Experts generate code and start threads: no network, no new processes, no programs, no other process's memory.
int seal_expert_runner();

}  // namespace forge
