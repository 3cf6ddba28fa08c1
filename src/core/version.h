// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace forge {

const char* forge_version();  // CMake's project version: the one source

}  // namespace forge
