// SPDX-License-Identifier: Apache-2.0
// HTTP as a model's client needs it: one POST, whose answer may arrive as a stream. The edge of the world; the real one opens libcurl
// at run time, so that a machine without it only lacks the agents that need a network. Thread-safe: every post has its own connection.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/result.h"

namespace forge {

struct HttpRequest {
  std::string url;  // http or https; redirects are not followed: a key must not travel on
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  double connect_seconds = 20;
  double idle_seconds = 300;   // without a byte
  double total_seconds = 900;  // the whole exchange
};

struct HttpReply {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;                                          // where the status is not 2xx; at most 64 KB of it
  std::string header(const std::string& name) const;         // "" when absent
};

class Http {
 public:
  virtual ~Http() = default;
  // `take` gets the body of a 2xx answer piece by piece; false: it has all it wants, and the exchange ends there, well.
  // Errors: unsupported (no libcurl, no TLS), bad_input (the URL), timeout, interrupted (stop_requested()), io (no connection, or one
  // that broke off before its end).
  virtual Result<HttpReply> post(const HttpRequest&, const std::function<bool(std::string_view)>& take) = 0;
};

std::unique_ptr<Http> make_http();

}  // namespace forge
