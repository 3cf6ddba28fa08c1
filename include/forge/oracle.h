/* SPDX-License-Identifier: Apache-2.0
 * The oracle ABI: an operator's slow, high-precision truth. <plugins>/<operator>/oracle.so exports forge_oracle().
 * Trusted, loaded by the judge, never timed. Must be obviously right: fp64, plain loops; threads are the judge's business
 * (expected() is called on disjoint row ranges when split_axis is set). */
#ifndef FORGE_ORACLE_H
#define FORGE_ORACLE_H
#include "forge/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif
#define FORGE_ORACLE_VERSION 1
typedef struct forge_oracle_v1 {
  int32_t version; /* FORGE_ORACLE_VERSION */
  const char* operator_name;
  /* expected[o]: double per element of output o. scale[o]: double per element, the magnitude that a `scaled` judge multiplies
   * its tolerance with (for a GEMM |A||B|); NULL when that output's judge needs none. Only the index range [begin, end) of the
   * leading axis of the outputs is computed, so that the judge can spread the work. */
  int32_t (*expected)(const forge_tensor* inputs, int32_t input_count, const forge_tensor* outputs, int32_t output_count,
                      double* const* expected, double* const* scale, int64_t begin, int64_t end);
  /* Fills the inputs with content made to break this operator's usual shortcuts. variant counts from 0; returns how many there are.
   * A scalar input holds its drawn value and may be written; the kernel gets what is written. It may depend on the variant, not on
   * the seed. */
  int32_t (*adversarial)(const forge_tensor* inputs, int32_t input_count, uint64_t seed, int32_t variant);
} forge_oracle_v1;
const forge_oracle_v1* forge_oracle(void);
#ifdef __cplusplus
}
#endif
#endif
