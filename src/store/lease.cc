// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "store/store.h"
#include "util/progress.h"

namespace forge {

Result<Lease> Lease::take(Kind kind, const char* file) {
  // One well-known file for all users of the machine: the device is one, whoever measures on it.
  Fd fd(open(file, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd) return fail_errno("cannot open the device's lock", file, errno);
  fchmod(fd.get(), 0666);  // against the umask; fails harmlessly for another user's file
  const double start = monotonic_seconds();
  const int how = kind == Kind::measure ? LOCK_EX : LOCK_SH;
  while (flock(fd.get(), how | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno("cannot lock", file, errno);
    if (stop_requested()) return fail(Code::interrupted, "interrupted while waiting for the device");
    const double waited = monotonic_seconds() - start;
    if (waited > 2)
      Progress::show("waiting for another forge process to release the device, " + std::to_string(static_cast<int>(waited)) + " s");
    const timespec pause{0, 5'000'000};
    nanosleep(&pause, nullptr);
  }
  return Lease(std::move(fd), monotonic_seconds() - start);
}

}  // namespace forge
