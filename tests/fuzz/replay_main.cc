// SPDX-License-Identifier: Apache-2.0
// fuzz_replay CORPUS: every file of CORPUS/<target>/ through that target, in an ordinary build, so that inputs which once broke
// something stay mended wherever there is no clang. Fails when a target has no corpus, or a corpus no target.
#include <algorithm>
#include <map>

#include "fuzz/target.h"

namespace forge::fuzz {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

std::map<std::string, Function>& targets() {
  static std::map<std::string, Function> all;
  return all;
}

int replay(const fs::path& corpus) {
  int failures = 0, inputs = 0;
  for (const auto& entry : fs::directory_iterator(corpus))
    if (!targets().count(entry.path().filename().string())) {
      std::fprintf(stderr, "no target is called %s\n", entry.path().filename().c_str());
      ++failures;
    }
  for (const auto& [name, function] : targets()) {
    if (kThreadSanitizer && name == "runner_serve") {
      std::printf("runner_serve is left out: the thread sanitizer ends a program that maps where it was told to\n");
      continue;
    }
    std::vector<fs::path> files;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(corpus / name, missing)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    if (files.empty()) std::fprintf(stderr, "%s has no corpus\n", name.c_str()), ++failures;
    for (const fs::path& file : files) {
      std::fprintf(stderr, "%s %s\n", name.c_str(), file.filename().c_str());  // the last line names the input that broke it
      const auto bytes = read_file(file);
      if (!bytes) return std::fprintf(stderr, "%s\n", bytes.error().text().c_str()), 1;
      function(*bytes);
      function("");
      ++inputs;
    }
  }
  std::printf("%zu targets, %d inputs, %d failures\n", targets().size(), inputs, failures);
  return failures == 0 && inputs > 0 ? 0 : 1;
}

}  // namespace

Registered::Registered(const char* name, Function function) { targets()[name] = function; }

}  // namespace forge::fuzz

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "fuzz_replay CORPUS\n"), 2;
  return forge::fuzz::replay(argv[1]);
}
