/* SPDX-License-Identifier: Apache-2.0
 * A tensor view that crosses plugin boundaries: row-major, packed, host memory. DType values are DLPack's
 * (dlpack.h: kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4), so a view converts to a DLTensor without a table. */
#ifndef FORGE_TENSOR_H
#define FORGE_TENSOR_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct forge_tensor {
  const char* name;
  void* data;   /* 256-byte aligned */
  uint8_t code; /* DLPack type code */
  uint8_t bits; /* of one element */
  int32_t rank;
  const int64_t* shape; /* rank values, outermost first */
} forge_tensor;
#ifdef __cplusplus
}
#endif
#endif
