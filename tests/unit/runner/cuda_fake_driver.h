// SPDX-License-Identifier: Apache-2.0
// A card without a card: the driver's table filled with functions over host memory that write down what was asked of them.
#pragma once
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "device/cuda_driver.h"

namespace forge::fake_card {

struct State {
  std::vector<std::string> log;  // "launch copy grid=4 block=512 shared=0 cooperative", "event", "reset", ...
  std::set<std::string> entries = {"copy"};
  std::vector<std::string> handles;  // functions by number
  int modules = 0, live_modules = 0, frame = 0, blocks_per_sm = 2;
  int graphs = 0;  // that are held
  cu::Status synchronize = cu::kSuccess, launch = cu::kSuccess, capture = cu::kSuccess;
  std::uint64_t next_address = 0x7000'0000'0000;
  std::vector<unsigned char> last_args, first_copy;
  std::vector<std::string> rights;
  alignas(16) unsigned char host[4096] = {};
};
inline State& state() {
  static State s;
  return s;
}

inline const cu::Driver& driver() {
  static const cu::Driver table = [] {
    cu::Driver d;
    d.device_attribute = [](int* v, int which, cu::Device) -> cu::Status {
      *v = which == cu::kSmCount                  ? 4
           : which == cu::kMaxSharedPerBlockOptin ? 227 * 1024
           : which == cu::kL2Bytes                ? 1 << 20
           : which == cu::kMajor                  ? 9
                                                  : 0;
      return 0;
    };
    d.context_retain = [](cu::Handle* h, cu::Device) -> cu::Status { return *h = &state(), 0; };
    d.context_release = [](cu::Device) -> cu::Status { return 0; };
    d.context_set = [](cu::Handle) -> cu::Status { return 0; };
    d.context_synchronize = []() -> cu::Status {
      state().log.push_back("wait");
      return state().synchronize;
    };
    d.context_limit = [](int, std::size_t) -> cu::Status { return state().log.push_back("limit"), 0; };
    d.reset_persisting = []() -> cu::Status { return state().log.push_back("reset"), 0; };
    d.memory_allocate = [](cu::Pointer* p, std::size_t bytes) -> cu::Status {
      *p = state().next_address;
      state().next_address += (bytes + 0xfffff) & ~std::size_t(0xfffff);
      return 0;
    };
    d.memory_free = [](cu::Pointer) -> cu::Status { return 0; };
    d.host_allocate = [](void** p, std::size_t, unsigned) -> cu::Status { return *p = state().host, 0; };
    d.host_free = [](void*) -> cu::Status { return 0; };
    d.fill = [](cu::Pointer, unsigned char, std::size_t bytes, cu::Handle) -> cu::Status {
      state().log.push_back("fill " + std::to_string(bytes));
      return 0;
    };
    d.copy_to_device = [](cu::Pointer, const void* from, std::size_t bytes) -> cu::Status {
      state().log.push_back("copy in " + std::to_string(bytes));
      const auto* b = static_cast<const unsigned char*>(from);
      if (state().first_copy.empty()) state().first_copy.assign(b, b + bytes);
      return 0;
    };
    d.profiler_start = []() -> cu::Status { return state().log.push_back("profiler start"), 0; };
    d.profiler_stop = []() -> cu::Status { return state().log.push_back("profiler stop"), 0; };
    d.granularity = [](std::size_t* n, const cu::AllocationProp*, int) -> cu::Status { return *n = 2 << 20, 0; };
    d.vm_create = [](std::uint64_t* h, std::size_t, const cu::AllocationProp*, unsigned long long) -> cu::Status { return *h = 1, 0; };
    d.vm_import = [](std::uint64_t* h, void*, int) -> cu::Status { return *h = 1, 0; };
    d.vm_release = [](std::uint64_t) -> cu::Status { return 0; };
    d.vm_reserve = [](cu::Pointer* p, std::size_t bytes, std::size_t align, cu::Pointer, unsigned long long) -> cu::Status {
      state().next_address = (state().next_address + align - 1) / align * align;
      *p = state().next_address;
      state().next_address += bytes;
      return 0;
    };
    d.vm_free = [](cu::Pointer, std::size_t) -> cu::Status { return 0; };
    d.vm_map = [](cu::Pointer, std::size_t, std::size_t, std::uint64_t, unsigned long long) -> cu::Status { return 0; };
    d.vm_unmap = [](cu::Pointer, std::size_t) -> cu::Status { return 0; };
    d.vm_access = [](cu::Pointer, std::size_t, const cu::AccessDesc* a, std::size_t) -> cu::Status {
      return state().rights.push_back(a->flags == 1 ? "read" : "write"), 0;
    };
    d.vm_export = [](void* fd, std::uint64_t, int, unsigned long long) -> cu::Status { return *static_cast<int*>(fd) = -1, 0; };
    d.module_load = [](cu::Handle* m, const void*) -> cu::Status {
      ++state().live_modules;
      *m = reinterpret_cast<void*>(static_cast<std::intptr_t>(++state().modules));
      return 0;
    };
    d.module_unload = [](cu::Handle) -> cu::Status { return --state().live_modules, 0; };
    d.module_function = [](cu::Handle* f, cu::Handle, const char* name) -> cu::Status {
      if (std::strncmp(name, "forge_", 6) != 0 && !state().entries.count(name)) return 500;
      state().handles.push_back(name);
      *f = reinterpret_cast<void*>(state().handles.size());
      return 0;
    };
    d.function_attribute = [](int* v, int, cu::Handle) -> cu::Status { return *v = state().frame, 0; };
    d.function_set = [](cu::Handle, int, int v) -> cu::Status { return v > 227 * 1024 ? cu::kInvalidValue : 0; };
    d.occupancy_blocks = [](int* n, cu::Handle, int, std::size_t) -> cu::Status { return *n = state().blocks_per_sm, 0; };
    d.launch = [](const cu::LaunchConfig* c, cu::Handle f, void** parameters, void**) -> cu::Status {
      const std::string name = state().handles[reinterpret_cast<std::size_t>(f) - 1];
      std::string line = "launch " + name + " grid=" + std::to_string(c->grid_x) + " block=" + std::to_string(c->block_x) +
                         " shared=" + std::to_string(c->shared_bytes);
      for (unsigned i = 0; i < c->attribute_count; ++i)
        line += c->attributes[i].id == cu::kAttributeCluster ? " cluster=" + std::to_string(c->attributes[i].value.cluster.x)
                : c->attributes[i].id == cu::kAttributePdl   ? " pdl"
                                                             : " cooperative";
      state().log.push_back(line);
      if (state().entries.count(name))
        state().last_args.assign(static_cast<unsigned char*>(parameters[0]), static_cast<unsigned char*>(parameters[0]) + 256);
      return state().entries.count(name) ? state().launch : 0;
    };
    d.stream_create = [](cu::Handle* h, unsigned) -> cu::Status { return *h = &state(), 0; };
    d.capture_begin = [](cu::Handle, int) -> cu::Status { return 0; };
    d.capture_end = [](cu::Handle, cu::Handle* h) -> cu::Status { return state().log.push_back("record"), *h = &state(), state().capture; };
    d.graph_make = [](cu::Handle* h, cu::Handle, unsigned long long) -> cu::Status { return ++state().graphs, *h = &state(), 0; };
    d.graph_launch = [](cu::Handle, cu::Handle) -> cu::Status { return state().log.push_back("play"), 0; };
    d.graph_release = [](cu::Handle) -> cu::Status { return --state().graphs, 0; };
    d.recording_release = [](cu::Handle) -> cu::Status { return 0; };
    d.event_create = [](cu::Handle* h, unsigned) -> cu::Status { return *h = &state(), 0; };
    d.event_record = [](cu::Handle, cu::Handle) -> cu::Status { return state().log.push_back("event"), 0; };
    d.event_elapsed = [](float* ms, cu::Handle, cu::Handle) -> cu::Status { return *ms = 0.25f, 0; };
    d.map_tiled = [](cu::TensorMap* m, int type, unsigned rank, void* at, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*,
                     const std::uint32_t*, int, int swizzle, int l2, int) -> cu::Status {
      std::memset(m, 0, sizeof *m);
      std::memcpy(m, &at, sizeof at);
      m->opaque[8] = static_cast<unsigned char>(type);
      m->opaque[9] = static_cast<unsigned char>(rank);
      m->opaque[10] = static_cast<unsigned char>(swizzle);
      m->opaque[11] = static_cast<unsigned char>(l2);
      return 0;
    };
    d.error_name = [](cu::Status, const char** text) -> cu::Status { return *text = "CUDA_ERROR", 0; };
    d.error_text = [](cu::Status, const char** text) -> cu::Status { return *text = "what it says", 0; };
    return d;
  }();
  return table;
}

}  // namespace forge::fake_card
