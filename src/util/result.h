// SPDX-License-Identifier: Apache-2.0
// Expected failures are values: Result<T> carries either a T or an Error that says what went wrong,
// where (file, line, field) and what the user can do. Exceptions are for bugs only.
#pragma once
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace forge {

// The kind of a failure; the CLI turns it into an exit code (docs/cli.md). Values are stable.
enum class Code {
  bad_input = 1,     // a file, flag or value that the user gave is malformed, unknown or out of range
  not_found = 2,     // a file, operator, run, entry that was named does not exist
  io = 3,            // the operating system refused (permission, read-only file system, ...)
  disk_full = 4,     // no space left where we must write
  unsupported = 5,   // this machine or this target cannot do it (missing CPU feature, tool, library)
  build_failed = 6,  // the compiler refused foreign source
  timeout = 7,       // a process ran past its limit
  crashed = 8,       // a process died, or broke its protocol
  interrupted = 9,   // Ctrl-C; the run can be resumed
  diverged = 10,     // a replay did not repeat the recorded decisions
  internal = 11,     // a broken invariant: a bug in forge
  out_of_range = 12  // more than a limit of others allows: a prompt beyond its model's context
};
const char* name(Code);

struct Error {
  Code code = Code::internal;
  std::string message;  // one sentence, no trailing newline
  std::string file;     // the file at fault, if any
  int line = 0;         // 1-based; 0 when unknown
  std::string field;    // the key or argument at fault, dotted ("launch[0].grid")
  std::string fix;      // what to do, imperative; may be empty

  // "file:line: field: message (fix)", leaving out what is empty.
  std::string text() const;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(Code code, std::string message, std::string fix = {}) {
  return tl::unexpected<Error>(
      Error{.code = code, .message = std::move(message), .file = {}, .line = 0, .field = {}, .fix = std::move(fix)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
// For errno after a system call: maps ENOSPC/EDQUOT to disk_full, ENOENT to not_found, the rest to io.
tl::unexpected<Error> fail_errno(const std::string& what, const std::string& file, int saved_errno);

}  // namespace forge

#define FORGE_CONCAT_(a, b) a##b
#define FORGE_CONCAT(a, b) FORGE_CONCAT_(a, b)
// Returns the error of a Status or Result expression, or goes on.
#define FORGE_TRY(expr)                                                   \
  do {                                                                    \
    auto&& forge_try_ = (expr);                                           \
    if (!forge_try_) return ::forge::fail(std::move(forge_try_).error()); \
  } while (0)
#define FORGE_TRY_ASSIGN_(tmp, var, expr)                 \
  auto&& tmp = (expr);                                    \
  if (!tmp) return ::forge::fail(std::move(tmp).error()); \
  var = std::move(*tmp)
// FORGE_TRY_ASSIGN(auto x, f()): x = the value of f(), or return its error.
#define FORGE_TRY_ASSIGN(var, expr) FORGE_TRY_ASSIGN_(FORGE_CONCAT(forge_result_, __LINE__), var, expr)
