// SPDX-License-Identifier: Apache-2.0
// The NVIDIA driver's C interface as far as we call it, declared here so that the program builds without the toolkit, and opened
// at run time (libcuda.so.1). Layouts and values are the CUDA 12 driver API's; a test compares them with cuda.h where that is found.
// The table is the edge of the world: tests put functions of their own into it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "util/result.h"

namespace forge::cu {

using Device = int;
using Pointer = std::uint64_t;  // CUdeviceptr
using Handle = void*;           // CUcontext, CUmodule, CUfunction, CUstream, CUevent
using Status = int;             // CUresult

constexpr Status kSuccess = 0, kOutOfMemory = 2, kIllegalAddress = 700, kLaunchOutOfResources = 701, kLaunchTimeout = 702,
                 kLaunchFailed = 719, kInvalidValue = 1, kCooperativeTooLarge = 720;
// CUdevice_attribute
constexpr int kMaxSharedPerBlockOptin = 97, kSmCount = 16, kClockKHz = 13, kL2Bytes = 38, kSharedPerSm = 81, kRegistersPerSm = 82,
              kMajor = 75, kMinor = 76, kMemoryClockKHz = 36, kMemoryBusBits = 37, kEcc = 32, kMaxPersistingL2 = 108;
// CUfunction_attribute
constexpr int kFunctionRegisters = 4, kFunctionLocalBytes = 3, kFunctionSharedBytes = 1, kFunctionMaxDynamicShared = 8;
constexpr int kLimitPersistingL2 = 6;
constexpr unsigned kHostMapped = 2;  // CU_MEMHOSTALLOC_DEVICEMAP; one address for host and card (unified addressing)
// CUlaunchAttributeID
constexpr int kAttributeCooperative = 2, kAttributeCluster = 4, kAttributePdl = 6;

struct Location {
  int type = 1, id = 0;  // 1: a device
};
struct AllocationProp {
  int type = 1, handle_types = 1;  // pinned; POSIX file descriptor
  Location location;
  void* win32 = nullptr;
  struct {
    unsigned char compression = 0, rdma = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } flags;
};
struct AccessDesc {
  Location location;
  int flags = 0;  // 1 read, 3 read and write
};
union LaunchValue {
  char pad[64];
  int number;
  struct {
    unsigned x, y, z;
  } cluster;
};
struct LaunchAttribute {
  int id = 0;
  char pad[4] = {};
  LaunchValue value{};
};
struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1, block_x = 1, block_y = 1, block_z = 1, shared_bytes = 0;
  Handle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
struct alignas(128) TensorMap {
  unsigned char opaque[128];
};

// Name in the library, name here, parameters.
#define FORGE_CUDA_FUNCTIONS(F)                                                                                                          \
  F(cuInit, init, (unsigned))                                                                                                            \
  F(cuDriverGetVersion, driver_version, (int*))                                                                                          \
  F(cuDeviceGetCount, device_count, (int*))                                                                                              \
  F(cuDeviceGet, device_get, (Device*, int))                                                                                             \
  F(cuDeviceGetName, device_name, (char*, int, Device))                                                                                  \
  F(cuDeviceGetAttribute, device_attribute, (int*, int, Device))                                                                         \
  F(cuDeviceTotalMem_v2, device_memory, (std::size_t*, Device))                                                                          \
  F(cuDeviceGetPCIBusId, device_bus_id, (char*, int, Device))                                                                            \
  F(cuDevicePrimaryCtxRetain, context_retain, (Handle*, Device))                                                                         \
  F(cuDevicePrimaryCtxRelease_v2, context_release, (Device))                                                                             \
  F(cuCtxSetCurrent, context_set, (Handle))                                                                                              \
  F(cuCtxSynchronize, context_synchronize, ())                                                                                           \
  F(cuCtxSetLimit, context_limit, (int, std::size_t))                                                                                    \
  F(cuCtxResetPersistingL2Cache, reset_persisting, ())                                                                                   \
  F(cuMemGetInfo_v2, memory_info, (std::size_t*, std::size_t*))                                                                          \
  F(cuMemAlloc_v2, memory_allocate, (Pointer*, std::size_t))                                                                             \
  F(cuMemHostAlloc, host_allocate, (void**, std::size_t, unsigned))                                                                      \
  F(cuMemFreeHost, host_free, (void*))                                                                                                   \
  F(cuMemFree_v2, memory_free, (Pointer))                                                                                                \
  F(cuMemcpyHtoD_v2, copy_to_device, (Pointer, const void*, std::size_t))                                                                \
  F(cuMemcpyDtoH_v2, copy_to_host, (void*, Pointer, std::size_t))                                                                        \
  F(cuMemsetD8Async, fill, (Pointer, unsigned char, std::size_t, Handle))                                                                \
  F(cuMemGetAllocationGranularity, granularity, (std::size_t*, const AllocationProp*, int))                                              \
  F(cuMemCreate, vm_create, (std::uint64_t*, std::size_t, const AllocationProp*, unsigned long long))                                    \
  F(cuMemRelease, vm_release, (std::uint64_t))                                                                                           \
  F(cuMemAddressReserve, vm_reserve, (Pointer*, std::size_t, std::size_t, Pointer, unsigned long long))                                  \
  F(cuMemAddressFree, vm_free, (Pointer, std::size_t))                                                                                   \
  F(cuMemMap, vm_map, (Pointer, std::size_t, std::size_t, std::uint64_t, unsigned long long))                                            \
  F(cuMemUnmap, vm_unmap, (Pointer, std::size_t))                                                                                        \
  F(cuMemSetAccess, vm_access, (Pointer, std::size_t, const AccessDesc*, std::size_t))                                                   \
  F(cuMemExportToShareableHandle, vm_export, (void*, std::uint64_t, int, unsigned long long))                                            \
  F(cuMemImportFromShareableHandle, vm_import, (std::uint64_t*, void*, int))                                                             \
  F(cuModuleLoadData, module_load, (Handle*, const void*))                                                                               \
  F(cuModuleUnload, module_unload, (Handle))                                                                                             \
  F(cuModuleGetFunction, module_function, (Handle*, Handle, const char*))                                                                \
  F(cuFuncGetAttribute, function_attribute, (int*, int, Handle))                                                                         \
  F(cuFuncSetAttribute, function_set, (Handle, int, int))                                                                                \
  F(cuOccupancyMaxActiveBlocksPerMultiprocessor, occupancy_blocks, (int*, Handle, int, std::size_t))                                     \
  F(cuOccupancyMaxActiveClusters, occupancy_clusters, (int*, Handle, const LaunchConfig*))                                               \
  F(cuLaunchKernelEx, launch, (const LaunchConfig*, Handle, void**, void**))                                                             \
  F(cuStreamCreate, stream_create, (Handle*, unsigned))                                                                                  \
  F(cuStreamSynchronize, stream_synchronize, (Handle))                                                                                   \
  F(cuStreamBeginCapture_v2, capture_begin, (Handle, int))                                                                               \
  F(cuStreamEndCapture, capture_end, (Handle, Handle*))                                                                                  \
  F(cuGraphInstantiateWithFlags, graph_make, (Handle*, Handle, unsigned long long))                                                      \
  F(cuGraphLaunch, graph_launch, (Handle, Handle))                                                                                       \
  F(cuGraphExecDestroy, graph_release, (Handle))                                                                                         \
  F(cuGraphDestroy, recording_release, (Handle))                                                                                         \
  F(cuEventCreate, event_create, (Handle*, unsigned))                                                                                    \
  F(cuEventRecord, event_record, (Handle, Handle))                                                                                       \
  F(cuEventElapsedTime, event_elapsed, (float*, Handle, Handle))                                                                         \
  F(cuTensorMapEncodeTiled, map_tiled,                                                                                                   \
    (TensorMap*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, int, int, \
     int, int))                                                                                                                          \
  F(cuTensorMapEncodeIm2col, map_im2col,                                                                                                 \
    (TensorMap*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const int*, const int*, std::uint32_t, std::uint32_t, \
     const std::uint32_t*, int, int, int, int))                                                                                          \
  F(cuProfilerStart, profiler_start, ())                                                                                                 \
  F(cuProfilerStop, profiler_stop, ())                                                                                                   \
  F(cuGetErrorName, error_name, (Status, const char**))                                                                                  \
  F(cuGetErrorString, error_text, (Status, const char**))

struct Driver {
#define FORGE_CUDA_MEMBER(symbol, name, parameters) Status(*name) parameters = nullptr;
  FORGE_CUDA_FUNCTIONS(FORGE_CUDA_MEMBER)
#undef FORGE_CUDA_MEMBER
};

// Opened, complete and initialised, or unsupported with what is missing. The same answer for the life of the process.
Result<const Driver*> driver();
// Tests: this table instead, until called with null.
void set_driver(const Driver*);
// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered".
std::string describe(const Driver&, Status);
// An error value of a call that failed: Code::crashed; out of memory: Code::io.
forge::Status check(const Driver&, Status, const std::string& what);

}  // namespace forge::cu
