// SPDX-License-Identifier: Apache-2.0
// One live line on stderr for anything that takes longer than 2 s; silent when stderr is not a terminal.
// Also the stop flag that Ctrl-C sets. Thread-safe.
#pragma once
#include <string>

namespace forge {

class Progress {
 public:
  static void show(const std::string& line);  // replaces the live line
  static void clear();                        // wipes it, before ordinary output
  static void keep(const std::string& line);  // prints a line that stays (stderr, terminal only)
  static void enable(bool on);                // --quiet, --json
};

void install_stop_handler();  // SIGINT, SIGTERM: first asks to stop, second ends at once
bool stop_requested();
void request_stop();  // tests
void reset_stop();    // tests

double monotonic_seconds();
std::string utc_now();  // "2026-11-30T01:36:07Z"

}  // namespace forge
