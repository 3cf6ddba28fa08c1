// SPDX-License-Identifier: Apache-2.0
// The messages between judge and runner: fixed-size plain structs over a SOCK_SEQPACKET pair, one struct a packet, file
// descriptors beside it. Both sides are the same build; the version guards against a stale program on disk.
// Format: docs/formats/runner-protocol.md.
#pragma once
#include <cstdint>
#include <type_traits>

namespace forge::wire {

constexpr std::uint32_t k_magic = 0x52475246;  // "FRGR"
constexpr std::uint16_t k_version = 5;
constexpr int k_channel_fd = 3;  // the runner's end, inherited

constexpr int k_max_cores = 256, k_max_buffers = 64, k_max_launches = 64, k_max_entries = 64, k_max_tensors = 32;
constexpr int k_max_rank = 8, k_max_args = 3968, k_max_mappings = 48, k_max_hot = 3, k_hot_bytes = 4096, k_max_sampled = 256;

enum class Kind : std::uint16_t {
  hello = 1,    // runner -> judge, first of all
  load = 2,     // -> runner: one image or one expert. fd: the image file
  prepare = 3,  // -> runner: map these buffers, forget the earlier ones. fds: one a buffer
  ready = 4,    // -> runner: be wide awake, and scrub if there is a pattern
  go = 5,       // -> runner: one timed call
  profile = 6,  // -> runner: sample an expert's run()
  cuda_import = 7,
  cuda_forget = 8,
  cuda_prepare = 9,
  cuda_batch = 10,  // -> runner: cuda_protocol.h
  reply = 16,       // runner -> judge: the request of the same sequence number is done, or refused
  done = 17,        // runner -> judge: answer to go
  samples = 18,     // runner -> judge: answer to profile
  cuda_placed = 20,
  cuda_done = 21,  // runner -> judge: cuda_protocol.h
  fault = 32,      // runner -> judge: last words from a signal handler
};

struct Header {
  std::uint32_t magic = k_magic;
  std::uint16_t version = k_version;
  Kind kind = Kind::reply;
  std::uint32_t sequence = 0;
  std::uint32_t bytes = 0;  // of the whole struct
};

enum class Subject : std::uint32_t { image = 1, expert = 2, cuda_image = 3, cuda_expert = 4 };

struct Load {
  Header header;
  Subject subject = Subject::image;
  std::uint32_t core_count = 0;
  std::int32_t cores[k_max_cores] = {};
  std::uint64_t object_bytes = 0;  // image: size of the file that is passed
  std::uint32_t entry_count = 0;
  char entries[k_max_entries][128] = {};  // launches name entries by index
  char plugin[1024] = {};                 // expert: path
};

struct Buffer {
  std::uint64_t address = 0, file_bytes = 0;
  std::uint32_t writable = 0, reserved = 0;
};
struct Launch {
  std::uint32_t entry = 0, reserved = 0;
  std::int64_t grid = 0;
};
struct Range {
  std::uint64_t address = 0, bytes = 0;
};
struct Tensor {
  char name[64] = {};
  std::uint64_t address = 0;
  std::uint8_t code = 0, bits = 0;
  std::uint16_t reserved = 0;
  std::int32_t rank = 0;
  std::int64_t shape[k_max_rank] = {};
  std::uint64_t scalar = 0;  // a scalar's bytes; then address is 0
};

struct Prepare {
  Header header;
  std::uint32_t buffer_count = 0, launch_count = 0, zero_count = 0, input_count = 0, output_count = 0, args_bytes = 0;
  std::uint64_t scratch_bytes = 0;
  Buffer buffers[k_max_buffers];
  Launch launches[k_max_launches];
  Range zeros[k_max_buffers];           // zero-filled inside the clock, before the first launch
  Tensor tensors[k_max_tensors];        // experts: inputs, then outputs
  unsigned char args[k_max_args] = {};  // the argument struct, addresses filled in
};

struct Ready {
  Header header;
  std::uint64_t pattern = 0;  // 0: no scrub
};
struct Go {
  Header header;
};
struct Profile {
  Header header;
  double seconds = 0;
};

// faulted: a kernel broke the context, or the driver refused its launch (a GPU's runner); nothing more can be asked of it.
enum class Outcome : std::uint32_t { ok = 0, load_failed = 1, out_of_memory = 2, refused = 3, broken = 4, faulted = 5 };

struct Reply {
  Header header;
  Outcome outcome = Outcome::ok;
  std::uint32_t features = 0;                 // Feature bits, answer to load
  std::uint32_t composed = 0, allocates = 0;  // experts, answer to load and prepare
  char text[1024] = {};                       // why not; or an expert's description
};
enum Feature : std::uint32_t {
  feature_no_new_privs = 1,
  feature_seccomp = 2,
  feature_all_threads = 4,
  feature_no_speculation_cost = 8,
  feature_limits = 16,
  feature_read_only_files = 32,
};

struct Done {
  Header header;
  Outcome outcome = Outcome::ok;
  std::uint32_t reserved = 0;
  double inside_s = 0;
  char text[256] = {};
};

struct Mapping {
  char name[96] = {};
  std::uint32_t samples = 0;
};
struct HotCode {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0, samples = 0;
  unsigned char code[k_hot_bytes] = {};
};
struct Samples {
  Header header;
  Outcome outcome = Outcome::ok;
  std::uint32_t samples = 0, mapping_count = 0, hot_count = 0, place_count = 0;
  std::uint64_t places[k_max_sampled] = {};  // distinct sampled addresses in the hot code: instructions start there
  Mapping mappings[k_max_mappings];
  HotCode hot[k_max_hot];
  char note[256] = {};
};

struct Fault {
  Header header;
  std::int32_t signal = 0, code = 0, system_call = -1, wrote = -1;  // wrote: 1 a store, 0 a load, -1 unknown
  std::uint64_t address = 0, instruction = 0;
  char place[64] = {};  // a guard page of the runner's own, by name; may be empty
};

template <class T>
constexpr Kind kind_of() = delete;
template <>
constexpr Kind kind_of<Load>() {
  return Kind::load;
}
template <>
constexpr Kind kind_of<Prepare>() {
  return Kind::prepare;
}
template <>
constexpr Kind kind_of<Ready>() {
  return Kind::ready;
}
template <>
constexpr Kind kind_of<Go>() {
  return Kind::go;
}
template <>
constexpr Kind kind_of<Profile>() {
  return Kind::profile;
}
template <>
constexpr Kind kind_of<Reply>() {
  return Kind::reply;
}
template <>
constexpr Kind kind_of<Done>() {
  return Kind::done;
}
template <>
constexpr Kind kind_of<Samples>() {
  return Kind::samples;
}
template <>
constexpr Kind kind_of<Fault>() {
  return Kind::fault;
}

constexpr std::size_t k_largest = 24 * 1024;  // a packet must fit the default socket buffer, with room
static_assert(sizeof(Samples) <= k_largest && sizeof(Prepare) <= k_largest);
static_assert(std::is_trivially_copyable_v<Prepare> && std::is_trivially_copyable_v<Samples> && std::is_trivially_copyable_v<Load>);

}  // namespace forge::wire
