// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "device/cuda.h"
#include "device/cuda_driver.h"
#include "device/nvml.h"
#include "util/progress.h"

namespace forge {

Status wait_for_clean_card(int gone, double patience_s) {
  const auto opened = cu::driver();
  if (!opened) return {};
  const cu::Driver& d = **opened;
  const double until = monotonic_seconds() + patience_s;
  auto memory = DeviceMemory::make(4096);
  int prompt = 0;  // answers in a row within a millisecond; a kernel that still runs elsewhere costs one its slice of 2.5 ms
  double last = 0;
  std::string why = "no context of our own to ask with";
  while (memory && prompt < 3) {
    const double begin = monotonic_seconds();
    FORGE_TRY(cu::check(d, d.fill(memory->data(), 0, memory->bytes(), nullptr), "filling memory on the card"));
    FORGE_TRY(cu::check(d, d.context_synchronize(), "the judge's own context"));
    last = monotonic_seconds() - begin;
    const std::vector<int> users = card_processes();
    const bool there = std::find(users.begin(), users.end(), gone) != users.end();
    prompt = last < 1e-3 && !there ? prompt + 1 : 0;
    why = there ? fmt::format("process {} still holds it", gone) : fmt::format("a tiny operation took {:.2f} ms", last * 1e3);
    if (prompt == 0 && monotonic_seconds() > until) break;
    if (prompt == 0) usleep(2000);
  }
  if (prompt >= 3) return {};
  return fail(Code::io, fmt::format("the card is not clean {:g} s after a runner ended: {}", patience_s, why),
              "see nvidia-smi; reset nothing while others use the card");
}

}  // namespace forge
