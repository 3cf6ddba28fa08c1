// SPDX-License-Identifier: Apache-2.0
// HTTP for one person who looks: GET only, one thread, libmicrohttpd (Debian's libmicrohttpd12) opened at run time. What is asked goes
// to a function, so that the pages are tested without a socket.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "util/result.h"

namespace forge {

struct WebRequest {
  std::string path;  // decoded, without the query
  std::string if_none_match;
};
struct WebReply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::string etag;  // empty: made from the body
};

// A name that a page of somebody else could point at this machine (DNS rebinding) must not be served: on loopback only loopback's names
// are, elsewhere also addresses in figures, `own_name` and the address listened on.
bool host_is_ours(const std::string& host_header, const std::string& listen_address, const std::string& own_name);
bool is_loopback(const std::string& address);  // 127.0.0.0/8 or ::1, in figures

Status find_web_library();  // unsupported, naming the package, where libmicrohttpd is not installed

class WebServer {
 public:
  using Handler = std::function<WebReply(const WebRequest&)>;
  // address: in figures, or "localhost". port 0: the system picks one.
  static Result<WebServer> listen(const std::string& address, int port, Handler);
  WebServer(WebServer&&) noexcept;
  WebServer& operator=(WebServer&&) noexcept;
  ~WebServer();
  int port() const;
  std::string url() const;           // "http://127.0.0.1:7420/"
  Status serve_for(double seconds);  // answers what comes meanwhile; returns early on a signal

 private:
  struct Impl;
  explicit WebServer(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> m_impl;
};

}  // namespace forge
