// SPDX-License-Identifier: Apache-2.0
#include "../common/rmsnorm_oracle.h"

FORGE_ORACLE("rmsnorm_bf16_h7168")
