// SPDX-License-Identifier: Apache-2.0
#include "util/result.h"

#include <cerrno>
#include <cstring>

namespace forge {

const char* name(Code code) {
  switch (code) {
    case Code::bad_input:
      return "bad_input";
    case Code::not_found:
      return "not_found";
    case Code::io:
      return "io";
    case Code::disk_full:
      return "disk_full";
    case Code::unsupported:
      return "unsupported";
    case Code::build_failed:
      return "build_failed";
    case Code::timeout:
      return "timeout";
    case Code::crashed:
      return "crashed";
    case Code::interrupted:
      return "interrupted";
    case Code::diverged:
      return "diverged";
    case Code::internal:
      return "internal";
    case Code::out_of_range:
      return "out_of_range";
  }
  return "internal";
}

std::string Error::text() const {
  std::string out;
  if (!file.empty()) {
    out += file;
    if (line > 0) out += ":" + std::to_string(line);
    out += ": ";
  }
  if (!field.empty()) out += field + ": ";
  out += message;
  if (!fix.empty()) out += " (" + fix + ")";
  return out;
}

tl::unexpected<Error> fail_errno(const std::string& what, const std::string& file, int saved_errno) {
  Error e;
  e.file = file;
  e.message = what + ": " + std::strerror(saved_errno);
  switch (saved_errno) {
    case ENOSPC:
    case EDQUOT:
      e.code = Code::disk_full;
      e.fix = "free some space, then try again; nothing was lost";
      break;
    case ENOENT:
      e.code = Code::not_found;
      break;
    case EROFS:
    case EACCES:
    case EPERM:
      e.code = Code::io;
      if (what.starts_with("cannot read") || what.starts_with("cannot list"))
        e.fix = "let this user read it";
      else
        e.fix = "make it writable, or set FORGE_HOME to a folder that is";
      break;
    default:
      e.code = Code::io;
  }
  return fail(std::move(e));
}

}  // namespace forge
