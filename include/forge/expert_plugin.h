// SPDX-License-Identifier: Apache-2.0
// For experts written in C++: adapts a class to the C ABI of expert.h, and picks the fastest of several ways to call a library.
// An expert on a GPU also has use_stream(void* stream).
// The class has: T(int threads, const int32_t* cores); void plan(const std::vector<forge_tensor>& inputs, ... outputs);
// void prepare(); void run(); std::string describe() const. It throws std::exception to refuse.
#pragma once
#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "forge/expert.h"
#include "forge/fill.h"

namespace forge::expert {

inline std::size_t byte_count(const forge_tensor& t) {
  std::size_t bytes = t.bits / 8;
  for (int32_t i = 0; i < t.rank; i++) bytes *= static_cast<std::size_t>(t.shape[i]);
  return bytes;
}

// A 4,096-byte aligned block of memory.
class Block {
 public:
  Block() = default;
  explicit Block(std::size_t bytes)
      : m_bytes(bytes), m_data(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4096) / 4096 * 4096))) {
    if (!m_data) throw std::bad_alloc();
  }
  std::byte* data() const { return m_data.get(); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(m_data.get());
  }
  std::size_t bytes() const { return m_bytes; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::size_t m_bytes = 0;
  std::unique_ptr<std::byte, Free> m_data;
};

// Stand-ins for the tensors of a plan, with N(0, 1) in the inputs: plan() may time ways of calling a library on them, since the
// real operands hold nothing yet. The views share names and shapes with the tensors they stand for.
class StandIns {
 public:
  explicit StandIns(const std::vector<forge_tensor>& tensors) : m_views(tensors) {
    for (forge_tensor& t : m_views) {
      const Block& block = m_blocks.emplace_back(byte_count(t));
      t.data = block.data();
      fill::Source source(m_blocks.size());
      float pattern[1021];  // a prime length, so that rows differ
      for (float& v : pattern) v = static_cast<float>(source.normal());
      const std::size_t count = block.bytes() / (t.bits / 8);
      for (std::size_t i = 0; i < count; i++) {
        if (t.bits == 16)
          block.as<std::uint16_t>()[i] = fill::float_to_bf16(pattern[i % 1021]);
        else
          block.as<float>()[i] = pattern[i % 1021];
      }
    }
  }
  const std::vector<forge_tensor>& views() const { return m_views; }
  // Out of the caches, as the gate does before every call.
  void flush() const {
    for (const Block& block : m_blocks)
      for (std::size_t i = 0; i < block.bytes(); i += 64) _mm_clflush(block.data() + i);
    _mm_mfence();
  }

 private:
  std::vector<forge_tensor> m_views;
  std::vector<Block> m_blocks;
};

// One way of calling a library. `make` binds it to tensors (inputs, then outputs) and returns what runs it.
struct Way {
  std::string how;
  std::function<std::function<void()>(const std::vector<forge_tensor>&)> make;
};

struct Choice {
  std::function<void()> run;  // bound to the real tensors
  std::string how;            // the way chosen, and how it compares: "matmul, B as given (best of 6 ways; next: dnnl_sgemm, 1.04x)"
};

// Times every way on stand-ins, turn and turn about with cold operands, and binds the fastest to the real tensors. A later way must
// be 3 % faster than an earlier one to be preferred, so that noise does not give two processes two references: list the usual
// winner first. A way that throws while it is made is left out. Spends about `budget_s` beyond one warm-up of each.
inline Choice fastest(const std::vector<Way>& ways, const std::vector<forge_tensor>& tensors, double budget_s = 0.4) {
  using Clock = std::chrono::steady_clock;
  const StandIns stand_ins(tensors);
  struct Entry {
    const Way* way;
    std::function<void()> run;
    double best = 1e300;
  };
  std::vector<Entry> entries;
  std::string refused;
  for (const Way& way : ways) {
    try {
      Entry entry{&way, way.make(stand_ins.views())};
      entry.run();
      entries.push_back(std::move(entry));
    } catch (const std::exception& e) {
      refused += (refused.empty() ? "" : ", ") + way.how + ": " + e.what();
    }
  }
  if (entries.empty()) throw std::runtime_error("the library supports no way of computing this: " + refused);
  const auto start = Clock::now();
  for (int round = 0; round < 15 && entries.size() > 1; round++) {
    if (round >= 5 && std::chrono::duration<double>(Clock::now() - start).count() > budget_s) break;
    for (Entry& entry : entries) {
      stand_ins.flush();
      const auto begin = Clock::now();
      entry.run();
      entry.best = std::min(entry.best, std::chrono::duration<double>(Clock::now() - begin).count());
    }
  }
  const Entry* best = &entries.front();
  for (const Entry& entry : entries)
    if (entry.best < best->best * 0.97) best = &entry;
  const Entry* next = nullptr;
  for (const Entry& entry : entries)
    if (&entry != best && (!next || entry.best < next->best)) next = &entry;
  Choice choice{best->way->make(tensors), best->way->how};
  if (next) {
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "%.2fx", next->best / best->best);
    choice.how += " (best of " + std::to_string(entries.size()) + " ways; next: " + next->way->how + ", " + ratio + ")";
  }
  return choice;
}

// Pins the calling thread to one core; a refusal leaves it where it is.
inline void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// The C ABI around a class.
template <class T>
struct Adapter {
  std::unique_ptr<T> expert;
  std::string error, description;

  template <class F>
  int32_t guarded(F&& f) {
    try {
      f();
      return 0;
    } catch (const std::exception& e) {
      error = e.what();
    } catch (...) {
      error = "unknown exception";
    }
    return 1;
  }
  static Adapter& self(void* p) { return *static_cast<Adapter*>(p); }

  static void* create(int32_t threads, const int32_t* cores) {
    auto adapter = std::make_unique<Adapter>();
    // A class that refuses the machine is kept, so that plan() can say why.
    adapter->guarded([&] { adapter->expert = std::make_unique<T>(threads, cores); });
    return adapter.release();
  }
  static const char* describe(void* p) {
    Adapter& a = self(p);
    a.description = a.expert ? a.expert->describe() : a.error;
    return a.description.c_str();
  }
  static int32_t plan(void* p, const forge_tensor* in, int32_t inputs, const forge_tensor* out, int32_t outputs) {
    Adapter& a = self(p);
    if (!a.expert) return 1;
    return a.guarded([&] { a.expert->plan({in, in + inputs}, {out, out + outputs}); });
  }
  static int32_t prepare(void* p) {
    return self(p).guarded([&] { self(p).expert->prepare(); });
  }
  static int32_t run(void* p) {
    return self(p).guarded([&] { self(p).expert->run(); });
  }
  static int32_t use_stream(void* p, void* stream) {
    Adapter& a = self(p);
    if constexpr (requires(T & t) { t.use_stream(stream); }) {
      if (!a.expert) return 1;
      return a.guarded([&] { a.expert->use_stream(stream); });
    }
    return 1;
  }
  static const char* error_text(void* p) { return self(p).error.c_str(); }
  static void destroy(void* p) { delete static_cast<Adapter*>(p); }
};

template <class T>
const forge_expert_v1* adapt(const char* operator_name, const char* name, bool composed, bool allocates_in_run) {
  using A = Adapter<T>;
  constexpr bool on_gpu = requires(T & t, void* stream) { t.use_stream(stream); };
  static const forge_expert_v1 table{FORGE_EXPERT_VERSION,
                                     operator_name,
                                     name,
                                     composed,
                                     allocates_in_run,
                                     A::create,
                                     A::describe,
                                     A::plan,
                                     A::prepare,
                                     A::run,
                                     A::error_text,
                                     A::destroy,
                                     on_gpu ? A::use_stream : nullptr};
  return &table;
}

}  // namespace forge::expert
