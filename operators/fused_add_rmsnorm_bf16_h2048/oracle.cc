// SPDX-License-Identifier: Apache-2.0
#include "../common/fused_add_rmsnorm_oracle.h"

FORGE_ORACLE("fused_add_rmsnorm_bf16_h2048")
