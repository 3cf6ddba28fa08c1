// SPDX-License-Identifier: Apache-2.0
#include "report/web.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <vector>

#include "util/fs.h"
#include "util/hash.h"
#include "util/library.h"
#include "util/progress.h"

namespace forge {

namespace {

constexpr unsigned kConnections = 64;
// From so many on, each new one ends the one of which a request was awaited longest. A limit by address would not help: on loopback all
// have the same one.
constexpr std::size_t kComfortable = 48;
constexpr unsigned kIdleSeconds = 30;  // a client that says nothing for so long is let go

struct Microhttpd {
  MHD_Daemon* (*start)(unsigned, std::uint16_t, MHD_AcceptPolicyCallback, void*, MHD_AccessHandlerCallback, void*, ...) = nullptr;
  decltype(&::MHD_stop_daemon) stop = nullptr;
  decltype(&::MHD_run_wait) run_wait = nullptr;
  decltype(&::MHD_get_connection_values) values = nullptr;
  decltype(&::MHD_create_response_from_buffer) response = nullptr;
  decltype(&::MHD_add_response_header) header = nullptr;
  decltype(&::MHD_queue_response) queue = nullptr;
  decltype(&::MHD_destroy_response) destroy = nullptr;
  decltype(&::MHD_get_connection_info) info = nullptr;
  bool ready = false;
};

const Microhttpd& microhttpd() {
  static const Microhttpd opened = [] {
    Microhttpd m;
    Library library("libmicrohttpd.so.12");
    library.find(m.start, "MHD_start_daemon");
    library.find(m.stop, "MHD_stop_daemon");
    library.find(m.run_wait, "MHD_run_wait");
    library.find(m.values, "MHD_get_connection_values");
    library.find(m.response, "MHD_create_response_from_buffer");
    library.find(m.header, "MHD_add_response_header");
    library.find(m.queue, "MHD_queue_response");
    library.find(m.destroy, "MHD_destroy_response");
    library.find(m.info, "MHD_get_connection_info");
    m.ready = library.whole();
    return m;
  }();
  return opened;
}

// Own scripts and styles only, nothing framed, nothing guessed, nothing told to others.
constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action "
     "'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-cache"},
};

struct AskedHeaders {
  int hosts = 0;
  std::string host, if_none_match;
};
MHD_Result take_header(void* self, MHD_ValueKind, const char* key, const char* value) {
  auto& h = *static_cast<AskedHeaders*>(self);
  if (strcasecmp(key, "Host") == 0) ++h.hosts, h.host = value ? value : "";
  if (strcasecmp(key, "If-None-Match") == 0) h.if_none_match = value ? value : "";
  return MHD_YES;
}

std::string name_of_this_machine() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "";
  return name;
}

}  // namespace

struct WebServer::Impl {
  std::string address, own_name;
  int port = 0;
  Handler handler;
  MHD_Daemon* daemon = nullptr;
  struct Client {
    MHD_Connection* connection;
    int fd;
    bool awaited;  // its request is not whole yet, or none came since the last answer
  };
  std::vector<Client> clients;  // the one heard of last is last
  ~Impl() {
    if (daemon) microhttpd().stop(daemon);
  }

  WebReply answer(const char* path, const char* method, const AskedHeaders& h) const {
    if (h.hosts != 1 || !host_is_ours(h.host, address, own_name))
      return {.status = 403, .body = "forge serve does not answer to this name; use the address that it printed\n"};
    if (std::string_view(method) != "GET") return {.status = 405, .body = "GET only\n"};
    WebReply r = handler(WebRequest{.path = path, .if_none_match = h.if_none_match});
    if (r.status != 200) return r;
    if (r.etag.empty()) r.etag = sha256_hex(r.body).substr(0, 16);
    r.etag = "\"" + r.etag + "\"";
    if (r.etag == h.if_none_match) r.status = 304, r.body.clear();
    return r;
  }

  static void on_connection(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode what) {
    auto& clients = static_cast<Impl*>(self)->clients;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      std::erase_if(clients, [&](const Client& c) { return c.connection == connection; });
      return;
    }
    if (clients.size() >= kComfortable) {
      const auto oldest = std::ranges::find(clients, true, &Client::awaited);
      if (oldest != clients.end()) {
        shutdown(oldest->fd, SHUT_RDWR);  // libmicrohttpd then sees the end of it, and closes it
        oldest->awaited = false;
      }
    }
    const MHD_ConnectionInfo* info = microhttpd().info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info) clients.push_back({.connection = connection, .fd = info->connect_fd, .awaited = true});
  }
  void heard_of(MHD_Connection* connection, bool awaited) {
    const auto it = std::ranges::find(clients, connection, &Client::connection);
    if (it == clients.end()) return;
    it->awaited = awaited;
    std::rotate(it, it + 1, clients.end());
  }
  static void on_answered(void* self, MHD_Connection* connection, void**, MHD_RequestTerminationCode) {
    static_cast<Impl*>(self)->heard_of(connection, true);
  }

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method, const char*, const char*,
                               std::size_t* upload, void**) {
    const Microhttpd& m = microhttpd();
    static_cast<Impl*>(self)->heard_of(connection, false);
    *upload = 0;
    AskedHeaders h;
    m.values(connection, MHD_HEADER_KIND, take_header, &h);
    WebReply r = static_cast<Impl*>(self)->answer(path, method, h);
    MHD_Response* response = m.response(r.body.size(), r.body.data(), MHD_RESPMEM_MUST_COPY);
    if (!response) return MHD_NO;
    for (const auto& [name, value] : kHeaders) m.header(response, name, value);
    m.header(response, "Content-Type", r.type.c_str());
    if (!r.etag.empty()) m.header(response, "ETag", r.etag.c_str());
    if (r.status == 405) m.header(response, "Allow", "GET");
    const MHD_Result queued = m.queue(connection, static_cast<unsigned>(r.status), response);
    m.destroy(response);
    return queued;
  }
};

namespace {

struct Bound {
  Fd fd;
  int port = 0;
};

Result<Bound> bind_to(const std::string& address, int port) {
  sockaddr_storage where{};
  socklen_t size = 0;
  auto* four = reinterpret_cast<sockaddr_in*>(&where);
  auto* six = reinterpret_cast<sockaddr_in6*>(&where);
  if (inet_pton(AF_INET, address.c_str(), &four->sin_addr) == 1)
    four->sin_family = AF_INET, four->sin_port = htons(static_cast<std::uint16_t>(port)), size = sizeof *four;
  else if (inet_pton(AF_INET6, address.c_str(), &six->sin6_addr) == 1)
    six->sin6_family = AF_INET6, six->sin6_port = htons(static_cast<std::uint16_t>(port)), size = sizeof *six;
  else
    return fail(Code::bad_input, "'" + address + "' is not an address in figures", "as in --listen 192.0.2.7, or 0.0.0.0 for all");
  const std::string what = address + " port " + std::to_string(port);
  Bound b;
  b.fd = Fd(socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!b.fd) return fail_errno("cannot make a socket for", what, errno);
  const int on = 1;  // a server that was stopped a moment ago does not keep its port
  (void)setsockopt(b.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(b.fd.get(), reinterpret_cast<sockaddr*>(&where), size) != 0 || ::listen(b.fd.get(), 64) != 0) {
    if (errno == EADDRINUSE)
      return fail(Code::io, "something else listens on " + what, "choose another with --port, or --port 0 for a free one");
    if (errno == EADDRNOTAVAIL) return fail(Code::bad_input, address + " is no address of this machine", "`ip address` lists them");
    if (errno == EACCES) return fail(Code::io, "this user may not listen on " + what, "choose a port from 1024 on, or --port 0");
    return fail_errno("cannot listen on", what, errno);
  }
  if (getsockname(b.fd.get(), reinterpret_cast<sockaddr*>(&where), &size) != 0) return fail_errno("cannot listen on", what, errno);
  b.port = ntohs(where.ss_family == AF_INET ? four->sin_port : six->sin6_port);
  return b;
}

}  // namespace

WebServer::WebServer(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}
WebServer::WebServer(WebServer&&) noexcept = default;
WebServer& WebServer::operator=(WebServer&&) noexcept = default;
WebServer::~WebServer() = default;

Status find_web_library() {
  if (microhttpd().ready) return {};
  return fail(Code::unsupported, "no libmicrohttpd.so.12 here, which serves the pages", "apt-get install libmicrohttpd12");
}

Result<WebServer> WebServer::listen(const std::string& address, int port, Handler handler) {
  FORGE_TRY(find_web_library());
  const Microhttpd& m = microhttpd();
  auto impl = std::make_unique<Impl>();
  impl->address = address == "localhost" ? "127.0.0.1" : address;
  impl->own_name = name_of_this_machine();
  impl->handler = std::move(handler);
  FORGE_TRY_ASSIGN(Bound bound, bind_to(impl->address, port));
  impl->port = bound.port;
  signal(SIGPIPE, SIG_IGN);  // a client that went away is not our end
  impl->daemon =
      m.start(MHD_USE_EPOLL, 0, nullptr, nullptr, &Impl::on_request, impl.get(), MHD_OPTION_LISTEN_SOCKET, bound.fd.get(),
              MHD_OPTION_CONNECTION_LIMIT, kConnections, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_NOTIFY_CONNECTION,
              &Impl::on_connection, impl.get(), MHD_OPTION_NOTIFY_COMPLETED, &Impl::on_answered, impl.get(), MHD_OPTION_END);
  if (!impl->daemon) return fail(Code::internal, "libmicrohttpd did not start");
  bound.fd.release();  // the daemon closes it
  return WebServer(std::move(impl));
}

int WebServer::port() const { return m_impl->port; }

std::string WebServer::url() const {
  std::string host = m_impl->address;
  if (host == "0.0.0.0" || host == "::") host = m_impl->own_name.empty() ? "localhost" : m_impl->own_name;
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return "http://" + host + ":" + std::to_string(m_impl->port) + "/";
}

Status WebServer::serve_for(double seconds) {
  const double end = monotonic_seconds() + seconds;
  for (double left = seconds; left > 0 && !stop_requested(); left = end - monotonic_seconds())
    if (microhttpd().run_wait(m_impl->daemon, std::max(1, static_cast<int>(left * 1e3))) != MHD_YES && errno != EINTR)
      return fail(Code::internal, std::string("the web server cannot go on: ") + std::strerror(errno));
  return {};
}

}  // namespace forge
