// SPDX-License-Identifier: Apache-2.0
#include "build/compiler_log.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "util/text.h"

namespace forge {

namespace {

constexpr std::size_t kCap = 16 << 10;

bool says(std::string_view log, std::initializer_list<std::string_view> phrases) {
  for (std::string_view p : phrases)
    if (log.find(p) != std::string_view::npos) return true;
  return false;
}

// g++ "kernel.cpp:2:5: error: ...", nvcc "kernel.cu(2): error: ...", ptxas "ptxas ..., line 7; error   : ...".
// Neither in a quoted line of the source nor in the words of a warning, which may come from the source too.
bool is_error(const std::string& line) {
  const std::size_t bar = line.find_first_not_of(" 0123456789");
  if (bar != std::string::npos && line[bar] == '|') return false;  // "   12 | code", "      | ^~~"
  std::size_t at = std::string::npos;
  for (const char* phrase : {"error:", "Error:", "error   :", "fatal   :"}) at = std::min(at, line.find(phrase));
  return at < std::min(line.find(" warning:"), line.find(" note:"));
}

// "kernel.cu:2:10: fatal error: /usr/include/x.h: Permission denied", then a line that quotes the directive.
std::string missing_header(const std::vector<std::string>& lines, std::size_t at) {
  const std::string& line = lines[at];
  const std::size_t fatal = line.find("fatal error: ");
  if (fatal == std::string::npos || !says(line, {"Permission denied", "No such file or directory", "file not found"})) return {};
  std::string what = trim(line.substr(fatal + 13));
  if (at + 1 < lines.size())
    if (const std::size_t quoted = lines[at + 1].find("include"); quoted != std::string::npos)
      what = "#include " + trim(lines[at + 1].substr(quoted + 7));
  return fmt::format(
      "{}{} is out of view: a kernel has forge_args.h, the compiler's own headers and the C and C++ standard library's (on a "
      "GPU also the toolkit's: cuda_fp16.h, cuda/ptx, cuda/barrier, cooperative_groups.h; not CUB, Thrust or any library's)",
      line.substr(0, fatal), what);
}

std::string first_error(const std::string& log) {
  std::string first;
  const std::vector<std::string> lines = split(log, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (first.empty()) first = trim(lines[i]);
    if (!is_error(lines[i])) continue;
    if (std::string header = missing_header(lines, i); !header.empty()) return header;
    first = trim(lines[i]);
    // The assembler reads a pipe, and an asm outside of functions carries no line of the source.
    constexpr std::string_view kPipe = "{standard input}:";
    if (const std::size_t error = first.find("rror: "); first.starts_with(kPipe) && error != std::string::npos)
      return fmt::format("in an asm of the kernel: {} (line {} of the assembly)", first.substr(error + 6),
                         first.substr(kPipe.size(), first.find(':', kPipe.size()) - kPipe.size()));
    if (first.starts_with("kernel.")) return first;
    // In a header: say where the kernel led there.
    for (std::size_t k = i + 1; k < lines.size() && !is_error(lines[k]); ++k)
      if (const std::size_t of = lines[k].find(" of kernel.cu"), line = lines[k].find("at line "); of != std::string::npos && line < of)
        return fmt::format("{} (kernel.cu, {})", first, trim(lines[k].substr(line + 3, of - line - 3)));
    return first;
  }
  return first.empty() ? "the compiler failed and said nothing" : first;
}

}  // namespace

bool renames_lines(std::string_view source) {
  for (const std::string& line : split(std::string(source), '\n')) {
    std::string_view rest = line;
    const auto skip_blanks = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(" \t\f\v"), rest.size())); };
    skip_blanks();
    if (!rest.starts_with('#') && !rest.starts_with("%:")) continue;
    rest.remove_prefix(rest.starts_with('#') ? 1 : 2);
    skip_blanks();
    if (rest.starts_with("line") || (!rest.empty() && rest[0] >= '0' && rest[0] <= '9')) return true;
  }
  return false;
}

std::string clean_log(std::string_view output, const std::string& build_folder) {
  std::string text(output);
  if (!build_folder.empty()) {
    const std::string prefix = build_folder + "/";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) text.erase(at, prefix.size());
    for (std::size_t at = text.find(build_folder); at != std::string::npos; at = text.find(build_folder, at))
      text.replace(at, build_folder.size(), ".");
  }
  // nvcc numbers its temporary files by process: "tmpxft_00002ea4_00000000-6_kernel.ptx".
  for (std::size_t at = text.find("tmpxft_"); at != std::string::npos; at = text.find("tmpxft_", at + 1)) {
    const std::size_t end = text.find_first_not_of("0123456789abcdef_-", at + 7);
    if (end != std::string::npos && text[end - 1] == '_') text.erase(at, end - at);
  }
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t n = utf8_length(rest);
    if (out.size() + std::max<std::size_t>(n, 1) > kCap) {
      out += fmt::format("\n... ({} more bytes)\n", rest.size());
      break;
    }
    const unsigned char c = static_cast<unsigned char>(rest[0]);
    if (n == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
      out += '?';
    else
      out.append(rest.substr(0, n));
    rest.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

// A compiler that a limit of ours ended calls that its own fault, and wants a bug report.
static std::string without_blame(const std::string& log) {
  std::string out;
  for (const std::string& line : split(log, '\n'))
    if (!line.empty() && !says(line, {"internal compiler error", "ubmit a full bug report", "bugs/", "README.Bugs",
                                      "with preprocessed source", "PLEASE submit a bug report", "Stack dump:"}))
      out += line + '\n';
  return out;
}

bool was_killed(const ProcessResult& run) {
  constexpr int kBySignal9 = 128 + SIGKILL;  // as bubblewrap reports its child
  return !run.timed_out && (run.signal == SIGKILL || run.exit_code == kBySignal9 ||
                            (run.exit_code != 0 && says(run.output, {"Killed signal terminated", "died due to signal 9"})));
}

// The words alone could be the source's own, so the disk is asked too. What the compiler had written is gone by now, so it has as much
// space again as one object takes.
std::optional<Error> disk_filled(const ProcessResult& run, const fs::path& folder, const CompileLimits& limits) {
  if (run.exit_code == 0 || !says(run.output, {"No space left on device", "Disk quota exceeded"})) return std::nullopt;
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0 || std::uint64_t(disk.f_bavail) * disk.f_frsize > limits.object_bytes) return std::nullopt;
  return fail_errno("the compiler cannot write", folder.parent_path().string(), ENOSPC).value();
}

std::optional<BuildFailure> explain_failure(const ProcessResult& run, const std::string& full_log, const CompileLimits& limits) {
  const std::string simpler = "write simpler code: fewer template instances, shorter unrolling, smaller tables";
  if (run.timed_out)
    return BuildFailure{Reason::build_timeout, fmt::format("the compiler ran longer than {:g} s; {}", limits.seconds, simpler),
                        without_blame(full_log)};
  if (!run.signal && run.exit_code == 0) return std::nullopt;
  const std::string ended_log = without_blame(full_log);
  // The driver reports how its own children died in words only.
  if (run.signal == SIGXCPU || says(full_log, {"CPU time limit exceeded", "died due to signal 24"}))
    return BuildFailure{Reason::build_timeout,
                        fmt::format("the compiler used more than {:g} s of processor time; {}", limits.seconds, simpler), ended_log};
  if (run.signal == SIGXFSZ || says(full_log, {"File size limit exceeded", "File too large", "file too big", "died due to signal 25"}))
    return BuildFailure{Reason::build_failed,
                        fmt::format("the object is larger than {} MiB; make the tables smaller", limits.object_bytes >> 20), ended_log};
  if (says(full_log, {"virtual memory exhausted", "out of memory", "Cannot allocate memory", "std::bad_alloc", "memory exhausted",
                      "Killed signal terminated", "Memory allocation failure", "died due to signal 9"}))
    return BuildFailure{Reason::build_timeout,
                        fmt::format("the compiler needed more than {} MiB of memory; {}", limits.memory_bytes >> 20, simpler), ended_log};
  if (run.signal)
    return BuildFailure{Reason::build_failed, fmt::format("the compiler died on signal {}; {}", run.signal, simpler), ended_log};
  return BuildFailure{Reason::build_failed, first_error(full_log), full_log};
}

}  // namespace forge
