// SPDX-License-Identifier: Apache-2.0
// A fuzz target is one function of the bytes, in a file of its own: FORGE_FUZZ_TARGET(name) { ... bytes ... }. With clang it becomes
// libFuzzer's entry point, one program a target; in an ordinary build all targets are linked into fuzz_replay, which goes through the
// corpus once. A target may hold for more than survival: HOLDS(condition) ends the process, as a crash does.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "util/fs.h"

namespace forge::fuzz {

using Function = void (*)(std::string_view bytes);
struct Registered {
  Registered(const char* name, Function);  // replay_main.cc
};

[[noreturn]] inline void broken(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
  std::abort();
}

// Inputs of several texts: lines "====" stand between them. What is missing is empty; the last one is the rest.
inline std::vector<std::string> parts(std::string_view bytes, std::size_t count) {
  constexpr std::string_view kLine = "\n====\n";
  std::vector<std::string> out;
  while (out.size() + 1 < count) {
    const std::size_t at = bytes.find(kLine);
    out.emplace_back(bytes.substr(0, at));
    bytes.remove_prefix(at == std::string_view::npos ? bytes.size() : at + kLine.size());
  }
  out.emplace_back(bytes);
  return out;
}

// For what is read from files: a folder of this process's own, gone at its end. No fsync: there are thousands of inputs a second.
inline const fs::path& folder() {
  static const TempDir dir = TempDir::make("forge-fuzz").value();
  return dir.path();
}
inline fs::path put(const fs::path& name, std::string_view content) {
  const fs::path file = folder() / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
  return file;
}

}  // namespace forge::fuzz

#define HOLDS(condition) \
  if (!(condition)) ::forge::fuzz::broken(#condition, __FILE__, __LINE__)

#ifdef FORGE_LIBFUZZER
#define FORGE_FUZZ_TARGET(name)                                                        \
  static void fuzz_##name(std::string_view);                                           \
  extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) { \
    fuzz_##name({reinterpret_cast<const char*>(data), size});                          \
    return 0;                                                                          \
  }                                                                                    \
  static void fuzz_##name([[maybe_unused]] std::string_view bytes)
#else
#define FORGE_FUZZ_TARGET(name)                                                 \
  static void fuzz_##name(std::string_view);                                    \
  static const ::forge::fuzz::Registered registered_##name(#name, fuzz_##name); \
  static void fuzz_##name([[maybe_unused]] std::string_view bytes)
#endif
