// SPDX-License-Identifier: Apache-2.0
// The same product with other constants: the oracle reads all of them from its call.
#include "../../../operators/gemm_f16/oracle.cu"
