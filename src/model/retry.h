// SPDX-License-Identifier: Apache-2.0
// When a request to a model is worth repeating, and after which wait: exponential with jitter, never less than the server asks for,
// never beyond the seconds that the caller grants. Time is an edge, so that a test of an hour's waiting takes none.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "model/model.h"

namespace forge {

class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual double now() = 0;               // seconds, monotonic
  virtual bool wait(double seconds) = 0;  // false: interrupted, sooner than that
  virtual double uniform() = 0;           // [0, 1): the jitter
};
Waiter& real_waiter();

// Why one attempt came to nothing.
struct Setback {
  Error error;
  bool again = false;      // the same request may do better later
  double retry_after = 0;  // seconds that the server asks for
  TokenUse spent;          // as far as the server told: it bills a stream that was cut
};

bool worth_retrying(int status);
// Before attempt 2, 3, ...: half a second doubled each time, at most 30, of which the upper half is jitter.
double backoff_seconds(int attempt, double retry_after, double uniform);
std::optional<long long> parse_http_date(const std::string& header);  // seconds since 1970
// Of a retry-after header: seconds or an HTTP date; 0 when it says nothing.
double parse_retry_after(const std::string& header, long long unix_now);

using Attempt = std::function<tl::expected<ModelReply, Setback>(double seconds_left)>;
// The reply's use includes what earlier attempts spent.
Result<ModelReply> ask_with_retries(const Attempt&, double seconds, int attempts, Waiter&);

}  // namespace forge
