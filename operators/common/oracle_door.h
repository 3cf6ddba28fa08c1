// SPDX-License-Identifier: Apache-2.0
// The door of an oracle that has expected() and adversarial() in its anonymous namespace: FORGE_ORACLE("name") in oracle.cc.
#pragma once
#include "forge/oracle.h"

#define FORGE_ORACLE(name)                                                                  \
  extern "C" const forge_oracle_v1* forge_oracle(void) {                                    \
    static const forge_oracle_v1 oracle{FORGE_ORACLE_VERSION, name, expected, adversarial}; \
    return &oracle;                                                                         \
  }
