// SPDX-License-Identifier: Apache-2.0
#include "agents/agent.h"

namespace forge {

const char* name(MilestoneEnd end) {
  switch (end) {
    case MilestoneEnd::accepted:
      return "accepted";
    case MilestoneEnd::gave_up:
      return "gave_up";
    case MilestoneEnd::budget:
      return "budget";
    case MilestoneEnd::attempts:
      return "attempts";
    case MilestoneEnd::plateau:
      return "plateau";
    case MilestoneEnd::user:
      return "user";
  }
  return "unknown";
}

}  // namespace forge
