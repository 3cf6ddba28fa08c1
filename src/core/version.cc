// SPDX-License-Identifier: Apache-2.0
#include "core/version.h"

namespace forge {

const char* forge_version() { return FORGE_VERSION; }

}  // namespace forge
