// SPDX-License-Identifier: Apache-2.0
#include "../common/f16_gemm_oracle.h"

FORGE_ORACLE("gemm_f16")
