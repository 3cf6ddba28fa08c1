// SPDX-License-Identifier: Apache-2.0
// The messages that only a GPU's runner knows, over the channel and with the header of protocol.h. hello, load, ready, go, profile,
// reply, samples and fault are protocol.h's. Judge and runner see one allocation at different addresses, so a call names its
// memory by (allocation, offset), and the runner fills the addresses in. Format: docs/formats/runner-protocol.md, "On a GPU".
#pragma once
#include "runner/protocol.h"

namespace forge::wire {

constexpr int k_max_places = 96, k_max_maps = 24, k_max_map_rank = 5, k_max_batch = 4096;

// Memory of the judge's: byte `offset` of an imported allocation. Allocation 0: none.
struct Place {
  std::uint64_t allocation = 0, offset = 0;
};

// -> runner, one descriptor beside it. Answer: placed. An allocation that is imported already may be imported again with more rights.
struct CudaImport {
  Header header;
  std::uint64_t allocation = 0, bytes = 0;  // the judge's number, never 0, never used twice
  std::uint32_t writable = 0, reserved = 0;
};
// -> runner: unmap. Answer: reply. Slots that used it must be prepared anew.
struct CudaForget {
  Header header;
  std::uint64_t allocation = 0;
};

enum CudaLaunchFlag : std::uint32_t { launch_cooperative = 1, launch_pdl = 2 };
struct CudaLaunch {
  std::uint32_t entry = 0, block = 1, cluster = 1, flags = 0;
  std::int64_t grid = 0, shared_bytes = 0;
};
struct CudaPatch {  // args[args_offset ..] = the 8-byte address of `place`
  std::uint32_t args_offset = 0, reserved = 0;
  Place place;
};
struct CudaZero {  // zero-filled inside the clock, before the first launch
  Place place;
  std::uint64_t bytes = 0;
};
struct CudaMap {  // a tensor map, encoded by the runner into args[args_offset .. +128]
  std::uint32_t args_offset = 0;
  std::uint32_t type = 0;  // CUtensorMapDataType
  std::uint32_t rank = 0;
  std::uint32_t im2col = 0;           // 1: lower, upper, channels, pixels; 0: box
  std::uint32_t swizzle = 0, l2 = 0;  // CUtensorMapSwizzle, CUtensorMapL2promotion
  std::uint32_t channels = 0, pixels = 0;
  Place place;
  std::uint64_t dims[k_max_map_rank] = {};     // elements, innermost first
  std::uint64_t strides[k_max_map_rank] = {};  // bytes, of dimensions 1..
  std::uint32_t box[k_max_map_rank] = {};
  std::int32_t lower[k_max_map_rank] = {}, upper[k_max_map_rank] = {};
  std::uint32_t reserved = 0;
};
struct CudaTensor {  // experts
  char name[64] = {};
  Place place;
  std::uint64_t scalar = 0;  // a scalar's bytes; then place.allocation is 0
  std::uint8_t code = 0, bits = 0;
  std::uint16_t reserved = 0;
  std::int32_t rank = 0;
  std::int64_t shape[k_max_rank] = {};
};

// -> runner: what slot `slot` does, replacing what it did. Slot 0 is what go runs; slots 1.. are a batch's calls. Answer: reply.
struct CudaPrepare {
  Header header;
  std::uint32_t slot = 0, launch_count = 0, patch_count = 0, zero_count = 0, map_count = 0, input_count = 0, output_count = 0,
                args_bytes = 0;
  CudaLaunch launches[k_max_launches];
  CudaPatch patches[k_max_places];
  CudaZero zeros[k_max_buffers];
  CudaMap maps[k_max_maps];
  CudaTensor tensors[k_max_tensors];    // experts: inputs, then outputs
  unsigned char args[k_max_args] = {};  // the argument struct; addresses and maps still zero
};

// -> runner: `calls` calls, pipelined, then one wait. Each is a CUDA graph of a flush and of the next of slots 1..graphs, recorded first
// where it is not. Answer: cuda_done. An expert has slot 0 alone, which every graph repeats.
struct CudaBatch {
  Header header;
  std::uint32_t calls = 0;       // at most k_max_batch
  std::uint32_t flush_only = 0;  // 1: the flushes alone, as graphs too
  std::uint32_t graphs = 0;      // at most k_max_batch
  std::uint32_t reserved = 0;
};

// Answer to an import.
struct CudaPlaced {
  Header header;
  Outcome outcome = Outcome::ok;
  std::uint32_t reserved = 0;
  std::uint64_t address = 0;  // of the allocation in the runner: a fault's address is looked up with it
  char text[256] = {};
};

// Answer to go and to a batch.
struct CudaDone {
  Header header;
  Outcome outcome = Outcome::ok;
  std::int32_t error = 0;          // CUresult of what went wrong
  double inside_s = 0;             // between two events around zeros and launches; a batch: 0
  double sm_mhz = 0;               // read in a kernel right behind the call
  double host_s = 0;               // the host's clock around queueing the call
  std::uint32_t hold_expired = 0;  // 1: the stream could not be held until all was queued; the time includes the host's
  std::uint32_t reserved = 0;
  char text[256] = {};
};

template <>
constexpr Kind kind_of<CudaImport>() {
  return Kind::cuda_import;
}
template <>
constexpr Kind kind_of<CudaForget>() {
  return Kind::cuda_forget;
}
template <>
constexpr Kind kind_of<CudaPrepare>() {
  return Kind::cuda_prepare;
}
template <>
constexpr Kind kind_of<CudaBatch>() {
  return Kind::cuda_batch;
}
template <>
constexpr Kind kind_of<CudaPlaced>() {
  return Kind::cuda_placed;
}
template <>
constexpr Kind kind_of<CudaDone>() {
  return Kind::cuda_done;
}

static_assert(sizeof(CudaPrepare) <= k_largest, "channel.h's packets hold the largest message");
static_assert(std::is_trivially_copyable_v<CudaPrepare> && std::is_trivially_copyable_v<CudaDone>);

}  // namespace forge::wire
