// SPDX-License-Identifier: Apache-2.0
#include "core/evidence.h"

namespace forge {

const char* name(Scope scope) { return scope == Scope::hot_loop ? "hot_loop" : "image"; }

}  // namespace forge
