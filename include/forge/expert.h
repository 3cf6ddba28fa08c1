/* SPDX-License-Identifier: Apache-2.0
 * The expert ABI: how a library's implementation of an operator becomes a reference. A shared object
 * <plugins>/<operator>/expert-<name>.so exports forge_expert(). It is loaded by forge-runner only, alone in its process.
 * Order: describe? create -> plan (once per shape) -> prepare (once, untimed; must not look at non-constant inputs) -> run... -> destroy.
 * Only run() is timed. run() writes every output, changes no input, and must be called with the planned shapes.
 * Return 0, or non-zero with a message in error(). Format: docs/formats/expert-abi.md. */
#ifndef FORGE_EXPERT_H
#define FORGE_EXPERT_H
#include "forge/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif
#define FORGE_EXPERT_VERSION 2
typedef struct forge_expert_v1 {
  int32_t version; /* FORGE_EXPERT_VERSION */
  const char* operator_name;
  const char* name;         /* "onednn", "openblas" */
  int32_t composed;         /* 1: the library has no such primitive, several are composed; describe() says how */
  int32_t allocates_in_run; /* 1: run() allocates memory (declared, recorded) */
  void* (*create)(int32_t threads, const int32_t* cores); /* NULL on failure; threads = cores given */
  /* library, version, algorithm, core type, how it was composed: one line for the record; valid until destroy */
  const char* (*describe)(void* self);
  /* 0: usable here. Non-zero: refuses, error() says why ("OpenBLAS fell back to Prescott") */
  int32_t (*plan)(void* self, const forge_tensor* inputs, int32_t input_count, const forge_tensor* outputs, int32_t output_count);
  int32_t (*prepare)(void* self);
  int32_t (*run)(void* self); /* on the tensors given to plan() */
  const char* (*error)(void* self);
  void (*destroy)(void* self);
  /* GPU experts only, else NULL: called once after create(), with a context current. All work of run() goes to this CUstream;
   * the tensors given to plan() are device memory. */
  int32_t (*use_stream)(void* self, void* cuda_stream);
} forge_expert_v1;
const forge_expert_v1* forge_expert(void);
#ifdef __cplusplus
}
#endif
#endif
