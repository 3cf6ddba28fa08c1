// SPDX-License-Identifier: Apache-2.0
// Preloaded: the wall clock, moved by as many seconds as the file $FORGE_TEST_CLOCK says at that moment. Nothing else changes.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

long offset() {
  const char* file = getenv("FORGE_TEST_CLOCK");
  const int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
  char text[32] = {};
  if (fd < 0) return 0;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  return n > 0 ? atol(text) : 0;
}

int real_clock_gettime(clockid_t id, timespec* t) {
  static const auto real = reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
  return real(id, t);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t id, timespec* t) noexcept {
  const int result = real_clock_gettime(id, t);
  if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI)) t->tv_sec += offset();
  return result;
}

time_t time(time_t* out) noexcept {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  if (out) *out = t.tv_sec;
  return t.tv_sec;
}

int gettimeofday(timeval* tv, void*) noexcept {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  tv->tv_sec = t.tv_sec, tv->tv_usec = t.tv_nsec / 1000;
  return 0;
}
}
