// SPDX-License-Identifier: Apache-2.0
#include "../../../operators/common/f16_gemm_oracle.h"

FORGE_ORACLE("product_f16")
