// SPDX-License-Identifier: Apache-2.0
#include "model/retry.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "util/progress.h"
#include "util/random.h"
#include "util/text.h"

namespace forge {
namespace {

class RealWaiter : public Waiter {
 public:
  double now() override { return monotonic_seconds(); }
  bool wait(double seconds) override {
    for (const double end = now() + seconds; now() < end;) {
      if (stop_requested()) return false;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::clamp(end - now(), 0.0, 0.1)));
    }
    return !stop_requested();
  }
  double uniform() override { return static_cast<double>(os_entropy() >> 11) * 0x1p-53; }
};

tl::unexpected<Error> give_up(const Error& last, const std::string& why) {
  Error e = last;
  e.code = Code::timeout;  // whatever kept it from answering: it did not answer in time
  e.message = why + ": " + e.message;
  return fail(std::move(e));
}

}  // namespace

Waiter& real_waiter() {
  static RealWaiter waiter;
  return waiter;
}

bool worth_retrying(int status) {
  switch (status) {
    case 429:  // too many requests
    case 500:
    case 502:
    case 503:
    case 504:
    case 529:  // overloaded (Anthropic)
      return true;
    default:
      return false;
  }
}

double backoff_seconds(int attempt, double retry_after, double uniform) {
  const double full = std::min(30.0, 0.5 * std::pow(2.0, std::clamp(attempt - 2, 0, 20)));
  const double wait = full * (0.5 + 0.5 * uniform);
  return retry_after > 0 ? retry_after + wait * 0.1 : wait;  // a little later than asked, so that not all come back at once
}

std::optional<long long> parse_http_date(const std::string& header) {
  std::tm date{};
  if (!strptime(header.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date)) return std::nullopt;
  return static_cast<long long>(timegm(&date));
}

double parse_retry_after(const std::string& header, long long unix_now) {
  char* end = nullptr;
  const double seconds = std::strtod(header.c_str(), &end);
  if (end != header.c_str()) return std::isfinite(seconds) ? std::max(0.0, seconds) : 0;
  const auto date = parse_http_date(header);
  return date ? std::max(0.0, static_cast<double>(*date - unix_now)) : 0;
}

Result<ModelReply> ask_with_retries(const Attempt& attempt, double seconds, int attempts, Waiter& waiter) {
  const double end = waiter.now() + seconds;
  TokenUse spent;
  for (int n = 1;; ++n) {
    auto reply = attempt(std::max(0.001, end - waiter.now()));
    if (reply) {
      reply->use += spent;
      return std::move(*reply);
    }
    const Setback& setback = reply.error();
    spent += setback.spent;
    if (!setback.again) return fail(setback.error);
    if (n >= attempts) return give_up(setback.error, fmt::format("no answer in {} attempts", n));
    const double wait = backoff_seconds(n + 1, setback.retry_after, waiter.uniform());
    if (waiter.now() + wait >= end)
      return give_up(setback.error, fmt::format("no answer within {} ({} attempts)", format_seconds(seconds), n));
    if (!waiter.wait(wait)) return fail(Code::interrupted, "stopped between two attempts to reach the model");
  }
}

}  // namespace forge
