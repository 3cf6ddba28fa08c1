// SPDX-License-Identifier: Apache-2.0
// Our declarations of the driver's interface against cuda.h, where the toolkit is installed.
#include "device/cuda_driver.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace forge {
namespace {

#ifdef CUDA_VERSION
#define SAME(ours, theirs) static_assert(int(ours) == int(theirs), #theirs)
SAME(cu::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME(cu::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME(cu::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(cu::kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(cu::kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(cu::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
SAME(cu::kCooperativeTooLarge, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
SAME(cu::kMaxSharedPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(cu::kSmCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(cu::kClockKHz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(cu::kL2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(cu::kSharedPerSm, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(cu::kRegistersPerSm, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME(cu::kMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(cu::kMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(cu::kMemoryClockKHz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(cu::kMemoryBusBits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(cu::kEcc, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
SAME(cu::kMaxPersistingL2, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
SAME(cu::kFunctionRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(cu::kFunctionLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(cu::kFunctionSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(cu::kFunctionMaxDynamicShared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(cu::kLimitPersistingL2, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
SAME(cu::kHostMapped, CU_MEMHOSTALLOC_DEVICEMAP);
SAME(cu::kAttributeCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME(cu::kAttributeCluster, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(cu::kAttributePdl, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(sizeof(cu::AllocationProp), sizeof(CUmemAllocationProp));
SAME(offsetof(cu::AllocationProp, location), offsetof(CUmemAllocationProp, location));
SAME(sizeof(cu::AccessDesc), sizeof(CUmemAccessDesc));
SAME(offsetof(cu::AccessDesc, flags), offsetof(CUmemAccessDesc, flags));
SAME(sizeof(cu::LaunchAttribute), sizeof(CUlaunchAttribute));
SAME(offsetof(cu::LaunchAttribute, value), offsetof(CUlaunchAttribute, value));
SAME(sizeof(cu::LaunchConfig), sizeof(CUlaunchConfig));
SAME(offsetof(cu::LaunchConfig, stream), offsetof(CUlaunchConfig, hStream));
SAME(offsetof(cu::LaunchConfig, attributes), offsetof(CUlaunchConfig, attrs));
SAME(offsetof(cu::LaunchConfig, attribute_count), offsetof(CUlaunchConfig, numAttrs));
SAME(sizeof(cu::TensorMap), sizeof(CUtensorMap));
#undef SAME
TEST(CudaDriverTest, DeclarationsAreThoseOfCudaH) { SUCCEED() << "cuda.h " << CUDA_VERSION; }
#else
TEST(CudaDriverTest, DeclarationsAreThoseOfCudaH) { GTEST_SKIP() << "no cuda.h here"; }
#endif

TEST(CudaDriverTest, WithoutADriverItSaysWhatIsMissing) {
  const auto d = cu::driver();
  if (d) GTEST_SKIP() << "this machine has a card";
  EXPECT_EQ(d.error().code, Code::unsupported);
  EXPECT_FALSE(d.error().message.empty());
  EXPECT_FALSE(d.error().fix.empty());
}

}  // namespace
}  // namespace forge
