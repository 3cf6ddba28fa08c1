// SPDX-License-Identifier: Apache-2.0
#include "util/progress.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <mutex>

namespace forge {

namespace {
std::atomic<bool> g_enabled{true};
std::atomic<int> g_stop{0};
std::mutex g_line_mutex;
bool g_line_shown = false;

bool on_terminal() {
  static const bool tty = isatty(STDERR_FILENO) == 1;
  return tty && g_enabled;
}
int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}
void wipe() {
  if (g_line_shown) std::fputs("\r\033[K", stderr);
  g_line_shown = false;
}
void on_signal(int signal) {
  if (signal == SIGHUP) {  // a closed terminal sends it more than once
    if (g_stop.load() == 0) g_stop = 1;
    return;
  }
  if (g_stop.fetch_add(1) >= 1) _exit(130);  // asked twice: the journal is safe at any point
}
}  // namespace

void Progress::show(const std::string& line) {
  if (!on_terminal()) return;
  std::lock_guard lock(g_line_mutex);
  std::fprintf(stderr, "\r\033[K%.*s", terminal_width() - 1, line.c_str());
  std::fflush(stderr);
  g_line_shown = true;
}
void Progress::clear() {
  std::lock_guard lock(g_line_mutex);
  wipe();
  std::fflush(stderr);
}
void Progress::keep(const std::string& line) {
  if (!on_terminal()) return;
  std::lock_guard lock(g_line_mutex);
  wipe();
  std::fprintf(stderr, "%s\n", line.c_str());
}
void Progress::enable(bool on) { g_enabled = on; }

void install_stop_handler() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // no SA_RESTART: a blocked wait must come back and see the flag
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  if (sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup keeps it off
  signal(SIGPIPE, SIG_IGN);
}
bool stop_requested() { return g_stop.load() > 0; }
void request_stop() { g_stop = 1; }
void reset_stop() { g_stop = 0; }

double monotonic_seconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace forge
