// SPDX-License-Identifier: Apache-2.0
// Source of the part of a CUDA launcher that is the same for every kernel; C++17 over the driver API. Private to this layer.
#pragma once

namespace forge {

inline constexpr const char* kCudaState = R"text(
struct Planned {
  int entry;
  std::int64_t grid, shared_bytes;
  int block, cluster;
  bool cooperative, early;  // early: may begin before the launch ahead of it has ended
};

struct Map {  // a tensor map in numbers, innermost dimension first
  CUdeviceptr tensor;
  std::int64_t tensor_bytes, unit, offset;  // bytes, bytes of an element, elements
  CUtensorMapDataType type;
  int rank, swizzle, l2;
  std::int64_t dims[5], strides[5];  // elements; strides[i] is dimension i's, 0: packed
  cuuint32_t box[5];
  bool im2col;
  int lower[3], upper[3];
  cuuint32_t channels, pixels;
};

struct Launcher::State {
  Outcome say(Outcome outcome, const char* what) {
    std::snprintf(text, sizeof text, "%s", what);
    return outcome;
  }
  Outcome failed(CUresult result, const char* what) {
    const char* name = nullptr;
    cuGetErrorString(result, &name);
    std::snprintf(text, sizeof text, "%s: %s", what, name ? name : "unknown error of the driver");
    return result == CUDA_ERROR_OUT_OF_MEMORY                                               ? Outcome::out_of_memory
           : result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_INVALID_IMAGE ? Outcome::unsupported
                                                                                            : Outcome::driver_error;
  }
  bool wrong(const char* field, const char* what) {
    std::snprintf(text, sizeof text, "%s: %s", field, what);
    return false;
  }
  bool fits(const forge_math& e, std::int64_t value, std::int64_t low, std::int64_t high, const char* field) {
    return (!e.wrong && value >= low && value <= high) || wrong(field, e.wrong ? e.wrong : "out of range");
  }
  bool tensor(const forge_math& e, CUdeviceptr data, std::int64_t elements, const char* field) {
    if (e.wrong) return wrong(field, e.wrong);
    if (!data && elements != 0) return wrong(field, "is null");
    return data % 16 == 0 || wrong(field, "is not aligned to 16 bytes");
  }

  // The image is loaded into the context that is current at the first call; the others must come from there too.
  Outcome load() {
    CUcontext here = nullptr;
    CUresult r = cuCtxGetCurrent(&here);
    if (r != CUDA_SUCCESS) return failed(r, "asking for the current context");
    if (!here) return say(Outcome::bad_argument, "no context is current: call cuInit and cuCtxSetCurrent, or cudaSetDevice, first");
    if (context) return here == context ? Outcome::done : say(Outcome::bad_argument, "another context is current than at the first call");
    CUdevice device = 0;
    if ((r = cuCtxGetDevice(&device)) != CUDA_SUCCESS) return failed(r, "asking for the device");
    if ((r = cuDeviceGetAttribute(&sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device)) != CUDA_SUCCESS)
      return failed(r, "asking for the multiprocessors");
    if ((r = cuModuleLoadData(&module, k_image)) != CUDA_SUCCESS) return failed(r, "loading the kernel (it is for one architecture)");
    for (int i = 0; i < k_entries; i++)
      if ((r = cuModuleGetFunction(&functions[i], module, k_entry_names[i])) != CUDA_SUCCESS) {
        cuModuleUnload(module);
        return failed(r, k_entry_names[i]);
      }
    context = here;
    return Outcome::done;
  }

  // The limit belongs to the function, so it only grows.
  Outcome allow_shared(int entry, std::int64_t bytes) {
    if (bytes <= shared_limit[entry]) return Outcome::done;
    const CUresult r = cuFuncSetAttribute(functions[entry], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes));
    if (r != CUDA_SUCCESS) return failed(r, "shared memory");
    shared_limit[entry] = bytes;
    return Outcome::done;
  }
  // How many blocks run at once.
  Outcome resident(const Planned& p, std::int64_t& blocks) {
    if (Outcome o = allow_shared(p.entry, p.shared_bytes); o != Outcome::done) return o;
    int count = 0;
    CUresult r = CUDA_SUCCESS;
    if (p.cluster == 1) {
      r = cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, functions[p.entry], p.block, static_cast<std::size_t>(p.shared_bytes));
      blocks = std::int64_t{count} * sm_count;
    } else {
      CUlaunchAttribute attributes[3];
      CUlaunchConfig config = config_of(p, p.cluster, nullptr, attributes);
      r = cuOccupancyMaxActiveClusters(&count, functions[p.entry], &config);
      blocks = std::int64_t{count} * p.cluster;
    }
    if (r != CUDA_SUCCESS) return failed(r, "occupancy");
    return blocks > 0 ? Outcome::done : say(Outcome::unsupported, "not one block fits this device");
  }

  static CUlaunchConfig config_of(const Planned& p, std::int64_t grid, CUstream stream, CUlaunchAttribute* attributes) {
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(grid);
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = static_cast<unsigned>(p.block);
    config.sharedMemBytes = static_cast<unsigned>(p.shared_bytes);
    config.hStream = stream;
    config.attrs = attributes;
    const auto add = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
      attributes[config.numAttrs] = CUlaunchAttribute{};
      attributes[config.numAttrs].id = id;
      return attributes[config.numAttrs++].value;
    };
    if (p.cluster > 1) {
      CUlaunchAttributeValue& value = add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
      value.clusterDim.x = static_cast<unsigned>(p.cluster);
      value.clusterDim.y = value.clusterDim.z = 1;
    }
    if (p.cooperative) add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
    if (p.early) add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).programmaticStreamSerializationAllowed = 1;
    return config;
  }
  Outcome launch(const Planned& p, unsigned char* args, CUstream stream) {
    CUlaunchAttribute attributes[3];
    const CUlaunchConfig config = config_of(p, p.grid, stream, attributes);
    void* parameters[] = {args};
    const CUresult r = cuLaunchKernelEx(&config, functions[p.entry], parameters, nullptr);
    return r == CUDA_SUCCESS ? Outcome::done : failed(r, k_entry_names[p.entry]);
  }
)text";

inline constexpr const char* kCudaMemory = R"text(
  // Kept from call to call; a new one is clear, because the kernel may count on finding it as it left it.
  Outcome reserve(int index, std::int64_t bytes, CUstream stream) {
    Workspace& w = workspaces[index];
    if (bytes <= w.bytes) return Outcome::done;
    CUresult r = cuCtxSynchronize();  // a call under way may still use the old one
    if (r != CUDA_SUCCESS) return failed(r, "waiting for earlier work");
    if (w.data) cuMemFree(w.data);
    w = {};
    if ((r = cuMemAlloc(&w.data, static_cast<std::size_t>(bytes))) != CUDA_SUCCESS) return failed(r, "a workspace");
    w.bytes = bytes;
    return zero(index, bytes, stream);
  }
  Outcome zero(int index, std::int64_t bytes, CUstream stream) {
    if (bytes == 0) return Outcome::done;
    const CUresult r = cuMemsetD8Async(workspaces[index].data, 0, static_cast<std::size_t>(bytes), stream);
    return r == CUDA_SUCCESS ? Outcome::done : failed(r, "clearing a workspace");
  }

  bool encode(forge_math& e, const Map& map, const char* field, void* out) {
    if (e.wrong) return wrong(field, e.wrong);
    cuuint64_t dims[5], strides[5];
    cuuint32_t ones[5] = {1, 1, 1, 1, 1};
    const std::int64_t offset = e.times(map.offset, map.unit);
    std::int64_t packed = map.unit, end = e.plus(offset, e.times(map.dims[0], map.unit));
    for (int i = 0; i < map.rank; i++) {
      if (map.dims[i] < 1 || map.dims[i] > std::int64_t{1} << 32) return wrong(field, "a dimension is out of range");
      dims[i] = static_cast<cuuint64_t>(map.dims[i]);
      if (i > 0) {
        const std::int64_t stride = map.strides[i] ? e.times(map.strides[i], map.unit) : packed;
        if (stride < 1 || stride >= std::int64_t{1} << 40 || stride % 16 != 0) return wrong(field, "a stride is no multiple of 16 bytes, or too long");
        strides[i - 1] = static_cast<cuuint64_t>(stride);
        end = e.plus(end, e.times(map.dims[i] - 1, stride));
        packed = stride;
      }
      packed = e.times(packed, map.dims[i]);
    }
    if (map.im2col)
      for (int i = 0; i + 2 < map.rank; i++)
        if (map.dims[i + 1] + map.upper[i] - map.lower[i] < 1) return wrong(field, "the corners leave no pixel");
    if (e.wrong) return wrong(field, e.wrong);
    if (offset < 0 || offset % 16 != 0) return wrong(field, "the offset is no multiple of 16 bytes");
    if (end > map.tensor_bytes) return wrong(field, "reaches beyond its tensor");
    static const CUtensorMapSwizzle swizzles[] = {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B,
                                                  CU_TENSOR_MAP_SWIZZLE_128B};
    static const CUtensorMapL2promotion promotions[] = {CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
                                                        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
    const CUtensorMapSwizzle swizzle = swizzles[map.swizzle == 128 ? 3 : map.swizzle == 64 ? 2 : map.swizzle == 32 ? 1 : 0];
    const CUtensorMapL2promotion l2 = promotions[map.l2 == 256 ? 3 : map.l2 == 128 ? 2 : map.l2 == 64 ? 1 : 0];
    void* address = reinterpret_cast<void*>(map.tensor + static_cast<CUdeviceptr>(offset));
    alignas(64) CUtensorMap encoded;
    const auto rank = static_cast<cuuint32_t>(map.rank);
    const CUresult r =
        map.im2col ? cuTensorMapEncodeIm2col(&encoded, map.type, rank, address, dims, strides, map.lower, map.upper, map.channels, map.pixels,
                                             ones, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, l2, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
                   : cuTensorMapEncodeTiled(&encoded, map.type, rank, address, dims, strides, map.box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                            swizzle, l2, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (r != CUDA_SUCCESS) {
      failed(r, field);
      return false;
    }
    std::memcpy(out, &encoded, sizeof encoded);
    return true;
  }

  ~State() {
    if (!context) return;
    for (Workspace& w : workspaces)
      if (w.data) cuMemFree(w.data);
    cuModuleUnload(module);
  }

  struct Workspace {
    CUdeviceptr data = 0;
    std::int64_t bytes = 0;
  };
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  int sm_count = 0;
  CUfunction functions[k_entries] = {};
  std::int64_t shared_limit[k_entries] = {};
  Workspace workspaces[k_workspaces + 1];
  char text[256] = {};
};

Launcher::Launcher() : m_state(std::make_unique<State>()) {}
Launcher::~Launcher() = default;
const char* Launcher::why() const { return m_state->text; }
)text";

}  // namespace forge
