// SPDX-License-Identifier: Apache-2.0
// One exported kernel of gemm_f32 behind a plain C function, so that it can be linked into a program or opened as a shared object.
#include "gemm_f32.h"

// C[rows, 1024] = A[rows, 1024] B[1024, 1024]^T. 0: done.
extern "C" __attribute__((visibility("default"))) int beside_call(const float* a, const float* b, float* c, long rows) {
  namespace k = forge_export::gemm_f32;
  static k::Launcher launcher;  // threads and workspaces are made at the first call
  k::Arguments arguments;
  arguments.A = a, arguments.B = b, arguments.C = c, arguments.M = rows;
  return launcher.run(arguments) == k::Outcome::done ? 0 : 1;
}
