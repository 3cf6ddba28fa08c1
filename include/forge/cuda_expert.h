// SPDX-License-Identifier: Apache-2.0
// For experts on a GPU: the driver and CUDA libraries opened at run time, device memory, and the choice of the fastest of many
// algorithms by measurement on operands of our own (the real ones hold nothing yet) with cold L2. Nothing of CUDA is linked; the
// caller has made a context current. Adapted by adapt() of expert_plugin.h; such a class has use_stream(void*) too.
#pragma once
#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "forge/expert_plugin.h"

namespace forge::cuda_expert {

// ---- libraries ----

// Folders where CUDA libraries lie: $FORGE_CUDA_LIBS (separated by ':'), the wheels of Python packages, "" for where the linker
// looks, the toolkit. A runner may start no process, so Python is not asked: its usual places are looked at.
inline std::vector<std::string> library_folders() {
  std::vector<std::string> folders;
  const auto expand = [&folders](const std::string& pattern) {
    glob_t found{};
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
      for (std::size_t i = 0; i < found.gl_pathc; i++) folders.emplace_back(found.gl_pathv[i]);
    globfree(&found);
  };
  const std::string own = std::getenv("FORGE_CUDA_LIBS") ? std::getenv("FORGE_CUDA_LIBS") : "";
  for (std::size_t at = 0; at < own.size();) {
    const std::size_t end = std::min(own.find(':', at), own.size());
    if (end > at) folders.push_back(own.substr(at, end - at));
    at = end + 1;
  }
  std::vector<std::string> roots;
  // Beside the python3 that the shell would take: environments are usually found this way.
  const std::string path = std::getenv("PATH") ? std::getenv("PATH") : "";
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string bin = path.substr(at, end - at);
    if (bin.ends_with("/bin") && access((bin + "/python3").c_str(), X_OK) == 0)
      roots.push_back(bin.substr(0, bin.size() - 3) + "lib/python3*/site-packages");
    at = end + 1;
  }
  for (const char* root :
       {"/usr/local/lib/python3*/dist-packages", "/usr/local/lib/python3*/site-packages", "/usr/lib/python3*/dist-packages",
        "/usr/lib/python3*/site-packages", "/opt/*/lib/python3*/site-packages", "/opt/*/.venv/lib/python3*/site-packages"})
    roots.emplace_back(root);
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* value = std::getenv(variable)) roots.push_back(std::string(value) + "/lib/python3*/site-packages");
  if (const char* home = std::getenv("HOME")) roots.push_back(std::string(home) + "/.local/lib/python3*/site-packages");
  for (const std::string& root : roots) expand(root + "/nvidia/*/lib");
  folders.emplace_back();  // the linker's own answer
  for (const char* root : {"/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/local/cuda/targets/x86_64-linux/lib"}) expand(root);
  return folders;
}

class Library {
 public:
  // The first that has `name` of $FORGE_CUDA_LIBS, the wheels of Python packages, the linker's own answer and the toolkit: what
  // PyTorch brings is usually newer than what a machine was set up with. `also` are opened before it, because it wants them by name.
  Library(const std::string& name, const std::vector<std::string>& also) {
    const std::vector<std::string> folders = library_folders();
    for (const std::string& folder : folders) {
      const std::string prefix = folder.empty() ? "" : folder + "/";
      if (!folder.empty()) {
        if (FILE* file = std::fopen((prefix + name).c_str(), "rb"))
          std::fclose(file);
        else
          continue;
        for (const std::string& other : also)
          if (!open(prefix + other))
            for (const std::string& place : folders)
              if (open(place.empty() ? other : place + "/" + other)) break;
      }
      m_handle = open(prefix + name);
      if (!m_handle) continue;
      m_folder = folder;
      return;
    }
    const char* why = dlerror();
    throw std::runtime_error(name + " is not here (set FORGE_CUDA_LIBS to its folder)" + (why ? std::string(": ") + why : ""));
  }
  template <class F>
  F* symbol(const char* name) const {
    void* address = dlsym(m_handle, name);
    if (!address) throw std::runtime_error(std::string("the library has no ") + name);
    return reinterpret_cast<F*>(address);
  }

 private:
  static void* open(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL); }
  void* m_handle = nullptr;
  std::string m_folder;
};

// ---- the driver ----

using Address = std::uint64_t;  // CUdeviceptr

// The few calls that experts need, declared here so that cuda.h is not needed. Handles are opaque pointers.
class Driver {
 public:
  static Driver& get() {
    static Driver driver;
    return driver;
  }
  int (*event_create)(void**, unsigned);
  int (*event_record)(void*, void*);
  int (*event_synchronize)(void*);
  int (*event_elapsed)(float*, void*, void*);
  int (*allocate)(Address*, std::size_t);
  int (*release)(Address);
  int (*to_device)(Address, const void*, std::size_t);
  int (*copy)(Address, Address, std::size_t, void*);
  int (*module_load)(void**, const void*);
  int (*module_function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  int (*stream_synchronize)(void*);
  int (*error_name)(int, const char**);

  void check(int result, const char* what) const {
    if (result == 0) return;
    const char* name = nullptr;
    error_name(result, &name);
    throw std::runtime_error(std::string(what) + ": " + (name ? name : "CUDA error " + std::to_string(result)));
  }

 private:
  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) throw std::runtime_error("libcuda.so.1 is not here: install the NVIDIA driver");
    const auto find = [library](auto& to, const char* name) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
      if (!to) throw std::runtime_error(std::string("libcuda.so.1 has no ") + name);
    };
    find(event_create, "cuEventCreate"), find(event_record, "cuEventRecord"), find(event_synchronize, "cuEventSynchronize");
    find(event_elapsed, "cuEventElapsedTime"), find(allocate, "cuMemAlloc_v2"), find(release, "cuMemFree_v2");
    find(to_device, "cuMemcpyHtoD_v2"), find(copy, "cuMemcpyDtoDAsync_v2"), find(module_load, "cuModuleLoadData");
    find(module_function, "cuModuleGetFunction"), find(launch, "cuLaunchKernel"), find(stream_synchronize, "cuStreamSynchronize");
    find(error_name, "cuGetErrorName");
  }
};

class DeviceBlock {
 public:
  DeviceBlock() = default;
  explicit DeviceBlock(std::size_t bytes) : m_bytes(bytes) {
    if (bytes) Driver::get().check(Driver::get().allocate(&m_data, bytes), "device memory");
  }
  DeviceBlock(DeviceBlock&& o) noexcept { *this = std::move(o); }
  DeviceBlock& operator=(DeviceBlock&& o) noexcept {
    std::swap(m_data, o.m_data), std::swap(m_bytes, o.m_bytes);
    return *this;
  }
  ~DeviceBlock() {
    if (m_data) Driver::get().release(m_data);
  }
  void* data() const { return reinterpret_cast<void*>(m_data); }
  Address address() const { return m_data; }
  std::size_t bytes() const { return m_bytes; }

 private:
  Address m_data = 0;
  std::size_t m_bytes = 0;
};

// ---- choosing by measurement ----

// Device memory in place of the tensors of a plan, N(0, 1) in all of them: power, and so the clock, depends on the data.
class StandIns {
 public:
  StandIns(const std::vector<forge_tensor>& tensors, void* stream) : m_views(tensors) {
    Driver& driver = Driver::get();
    constexpr std::size_t kPattern = 1048573;  // a prime, so that rows differ
    std::vector<std::uint16_t> halves[2];
    std::vector<float> floats(kPattern);
    fill::Source source(7);
    for (float& v : floats) v = static_cast<float>(source.normal());
    for (const float v : floats) halves[0].push_back(fill::float_to_f16(v)), halves[1].push_back(fill::float_to_bf16(v));
    for (forge_tensor& t : m_views) {
      const std::size_t size = t.bits / 8, bytes = expert::byte_count(t);
      const DeviceBlock& block = m_blocks.emplace_back(bytes);
      t.data = block.data();
      const void* pattern = size == 2 ? static_cast<const void*>(halves[t.code == 4].data()) : floats.data();
      const std::size_t first = std::min(bytes, kPattern * size);
      if (first) driver.check(driver.to_device(block.address(), pattern, first), "filling stand-ins");
      for (std::size_t done = first; done < bytes;) {
        const std::size_t piece = std::min(done, bytes - done);
        driver.check(driver.copy(block.address() + done, block.address(), piece, stream), "filling stand-ins");
        done += piece;
      }
    }
    driver.check(driver.stream_synchronize(stream), "filling stand-ins");
  }
  const std::vector<forge_tensor>& views() const { return m_views; }

 private:
  std::vector<forge_tensor> m_views;
  std::vector<DeviceBlock> m_blocks;
};

// A clock with cold L2: a read-only pass over 160 MB, more than twice any L2 of these cards, before each call.
class ColdClock {
 public:
  explicit ColdClock(void* stream) : m_stream(stream), m_buffer(std::size_t(160) << 20) {
    Driver& driver = Driver::get();
    void* module = nullptr;
    driver.check(driver.module_load(&module, kFlush), "loading the flush kernel");
    driver.check(driver.module_function(&m_flush, module, "flush"), "loading the flush kernel");
    for (void*& event : m_events) driver.check(driver.event_create(&event, 0), "event");
  }
  // Seconds of one call, or negative when the call refuses.
  double seconds(const std::function<bool()>& call) const {
    Driver& driver = Driver::get();
    Address data = m_buffer.address();
    std::uint64_t count = m_buffer.bytes() / 16;
    void* arguments[] = {&data, &count};
    driver.check(driver.launch(m_flush, 1056, 1, 1, 256, 1, 1, 0, m_stream, arguments, nullptr), "flushing L2");
    driver.check(driver.event_record(m_events[0], m_stream), "event");
    const bool good = call();
    driver.check(driver.event_record(m_events[1], m_stream), "event");
    driver.check(driver.event_synchronize(m_events[1]), "waiting for a call");
    float milliseconds = 0;
    driver.check(driver.event_elapsed(&milliseconds, m_events[0], m_events[1]), "event");
    return good ? static_cast<double>(milliseconds) * 1e-3 : -1;
  }

 private:
  static constexpr const char* kFlush = R"PTX(
.version 8.0
.target sm_80
.address_size 64
.visible .entry flush(.param .u64 data, .param .u64 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<10>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [data];
  ld.param.u64 %d1, [count];
  cvta.to.global.u64 %d0, %d0;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %nctaid.x;
  cvt.u64.u32 %d2, %r2;
  mad.wide.u32 %d3, %r0, %r1, %d2;
  mul.wide.u32 %d4, %r3, %r1;
  mov.u32 %r4, 0;
again:
  setp.ge.u64 %p0, %d3, %d1;
  @%p0 bra done;
  shl.b64 %d5, %d3, 4;
  add.u64 %d5, %d0, %d5;
  ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d5];
  xor.b32 %r5, %r5, %r6;
  xor.b32 %r7, %r7, %r8;
  add.u32 %r5, %r5, %r7;
  add.u32 %r4, %r4, %r5;
  add.u64 %d3, %d3, %d4;
  bra again;
done:
  setp.eq.u32 %p1, %r4, 0x5bd1e995;
  @!%p1 bra end;
  st.global.u32 [%d0], %r4;
end:
  ret;
}
)PTX";
  void* m_stream;
  DeviceBlock m_buffer;
  void* m_flush = nullptr;
  void* m_events[2] = {};
};

struct Picked {
  int index = -1;          // of the fastest
  int usable = 0;          // how many ran
  double seconds = 0;      // of the fastest, median
  double first_guess = 0;  // time of the first usable candidate over that of the fastest
};

// Each candidate once to warm up and twice on the clock; then the eight best turn and turn about, medians of nine. A candidate
// that refuses (returns false or throws) is left out. The first is the library's own first guess.
inline Picked pick_fastest(int count, const std::function<bool(int)>& run, const ColdClock& clock) {
  struct Entry {
    int index;
    double seconds;
  };
  std::vector<Entry> entries;
  for (int i = 0; i < count; i++) {
    const auto call = [&] {
      try {
        return run(i);
      } catch (const std::exception&) {
        return false;
      }
    };
    if (clock.seconds(call) < 0) continue;
    entries.push_back({i, std::min(clock.seconds(call), clock.seconds(call))});
  }
  if (entries.empty()) throw std::runtime_error("the library offers no algorithm that runs");
  const int first = entries.front().index;
  std::vector<Entry> finalists = entries;
  std::sort(finalists.begin(), finalists.end(), [](const Entry& a, const Entry& b) { return a.seconds < b.seconds; });
  if (finalists.size() > 8) finalists.resize(8);
  if (std::none_of(finalists.begin(), finalists.end(), [&](const Entry& e) { return e.index == first; })) finalists.push_back(entries[0]);
  std::vector<std::vector<double>> samples(finalists.size());
  for (int round = 0; round < 9; round++)
    for (std::size_t e = 0; e < finalists.size(); e++) samples[e].push_back(clock.seconds([&] { return run(finalists[e].index); }));
  Picked best;
  double first_seconds = 0;
  for (std::size_t e = 0; e < finalists.size(); e++) {
    std::nth_element(samples[e].begin(), samples[e].begin() + 4, samples[e].end());
    const double median = samples[e][4];
    if (finalists[e].index == first) first_seconds = median;
    if (best.index < 0 || median < best.seconds) best.index = finalists[e].index, best.seconds = median;
  }
  best.usable = static_cast<int>(entries.size());
  best.first_guess = first_seconds / best.seconds;
  return best;
}

}  // namespace forge::cuda_expert
