// SPDX-License-Identifier: Apache-2.0
// An exported softmax_f32 for a GPU, without one: the driver below says what it is asked to do, and fails when told to.
#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "softmax_f32.h"

namespace {
CUcontext current = nullptr;
CUresult load_result = CUDA_SUCCESS;
const char* names[8];
int name_count = 0;
CUdeviceptr next_memory = 1 << 20;
}  // namespace

extern "C" {
CUresult cuCtxGetCurrent(CUcontext* c) { return *c = current, CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* d) { return *d = 0, CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return std::puts("synchronize"), CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* v, CUdevice_attribute, CUdevice) { return *v = 10, CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult, const char** s) { return *s = "an error", CUDA_SUCCESS; }
CUresult cuModuleLoadData(CUmodule* m, const void* image) {
  *m = reinterpret_cast<CUmodule>(&names);
  std::printf("load %s\n", std::memcmp(image, "\177ELF", 4) == 0 ? "an ELF" : "WRONG");
  return load_result;
}
CUresult cuModuleUnload(CUmodule) { return std::puts("unload"), CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction* f, CUmodule, const char* name) {
  names[name_count] = name;
  *f = reinterpret_cast<CUfunction>(&names[name_count++]);
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute, int v) {
  return std::printf("%s may have %d bytes of shared memory\n", *reinterpret_cast<const char**>(f), v), CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, CUfunction, int, size_t) { return *n = 3, CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveClusters(int* n, CUfunction, const CUlaunchConfig* c) {
  return *n = c->numAttrs == 1 && c->gridDimX == 2 ? 7 : 0, CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* p, size_t bytes) {
  std::printf("allocate %zu\n", bytes);
  *p = next_memory += 4096;
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr) { return std::puts("free"), CUDA_SUCCESS; }
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char v, size_t n, CUstream) {
  return std::printf("set %zu bytes to %d\n", n, v), CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap* m, CUtensorMapDataType type, cuuint32_t rank, void* at, const cuuint64_t* dims,
                                const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t*, CUtensorMapInterleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill) {
  std::memset(m, 0x5a, sizeof *m);
  std::printf("map at %p type %d rank %u dims %llu %llu stride %llu box %u %u swizzle %d l2 %d\n", at, type, rank,
              static_cast<unsigned long long>(dims[0]), static_cast<unsigned long long>(dims[1]),
              static_cast<unsigned long long>(strides[0]), box[0], box[1], swizzle, l2);
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeIm2col(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const int*,
                                 const int*, cuuint32_t, cuuint32_t, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** parameters, void**) {
  struct Args {  // forge_args of this plan
    unsigned char map[128];
    CUdeviceptr x, y, sums, seen;
    int rows, half;
  } a;
  std::memcpy(&a, parameters[0], sizeof a);
  std::printf("launch %s grid %u block %u shared %u stream %p", *reinterpret_cast<const char**>(f), c->gridDimX, c->blockDimX,
              c->sharedMemBytes, static_cast<void*>(c->hStream));
  for (unsigned i = 0; i < c->numAttrs; i++) {
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) std::printf(" cluster %u", c->attrs[i].value.clusterDim.x);
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) std::printf(" cooperative");
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) std::printf(" early");
  }
  std::printf("; map %s, x %llu y %llu rows %d half %d\n", a.map[0] == 0x5a && a.map[127] == 0x5a ? "set" : "WRONG", a.x, a.y, a.rows,
              a.half);
  return CUDA_SUCCESS;
}
}  // extern "C"

namespace k = forge_export::softmax_f32;

int main() {
  k::Arguments a;
  a.x = 4096, a.y = 8192, a.rows = 5;
  const auto call = [&](k::Launcher& launcher) {
    const k::Outcome o = launcher.run(a, reinterpret_cast<CUstream>(0x70));
    std::printf("-> %d %s\n", static_cast<int>(o), launcher.why());
  };
  k::Launcher launcher;
  call(launcher);
  current = reinterpret_cast<CUcontext>(0x10);
  call(launcher);
  a.rows = 2;
  call(launcher);
  a.rows = 40;
  call(launcher);
  a.rows = 0;
  call(launcher);
  current = reinterpret_cast<CUcontext>(0x20);
  call(launcher);
  load_result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  k::Launcher other;
  call(other);
}
