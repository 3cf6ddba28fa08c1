/* SPDX-License-Identifier: Apache-2.0
 * The oracle on a GPU, for operators whose CPU oracle takes more than seconds: operators/<operator>/oracle.cu, compiled to a cubin
 * of the judge's own. Trusted, never timed; fp64, simple, obviously right. The judge holds it against oracle.cc on small shapes
 * before its first use, and does not use it where they differ.
 * One entry an output: extern "C" __global__ void forge_oracle_v1_<output>(const forge_oracle_cuda_call), any grid, blocks of
 * FORGE_ORACLE_CUDA_THREADS, no dynamic shared memory. The 1 is the version of this file. */
#ifndef FORGE_ORACLE_CUDA_H
#define FORGE_ORACLE_CUDA_H
#include <stdint.h>
#define FORGE_ORACLE_CUDA_THREADS 256
#define FORGE_ORACLE_CUDA_INPUTS 8
#define FORGE_ORACLE_CUDA_AXES 16
typedef struct forge_oracle_cuda_call {
  const void* inputs[FORGE_ORACLE_CUDA_INPUTS]; /* definition order, row-major, on the card; a scalar input: one element */
  int64_t axes[FORGE_ORACLE_CUDA_AXES];         /* the definition's axes, file order */
  double* expected;                             /* of the range: [0] is the first element of index `begin` */
  double* scale;                                /* likewise: what a `scaled` judge multiplies its tolerance with; else null */
  int64_t begin, end;                           /* of the output's leading axis */
} forge_oracle_cuda_call;
#endif
